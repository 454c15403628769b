"""What can be asked before signing in, and signing in."""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import names, permissions
from tertulia.domain.accounts import account_emails, users
from tertulia.model.errors import Refused, WrongPassword
from tertulia.model.users import User
from tertulia.service import credentials
from tertulia.service.credentials import BadToken
from tertulia.service.mailing import send_test_mail
from tertulia.wire.api import versions
from tertulia.wire.api.organization.objects import picture_url
from tertulia.wire.api.users.objects import UserFormat, UserObject, user_shown
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Alias, NoParams, Params
from tertulia.wire.http.routing import ApiResponse, Call


class ServerSettings(ApiResponse, kw_only=True):
    """What a client must know before it signs in."""

    authentication_methods: dict[str, bool]
    external_authentication_methods: list[dict[str, str]]
    zulip_version: str
    zulip_merge_base: str
    zulip_feature_level: int
    service_feature_level: int
    push_notifications_enabled: bool
    is_incompatible: bool
    email_auth_enabled: bool
    require_email_format_usernames: bool
    realm_url: str
    realm_uri: str
    realm_name: str
    realm_icon: str
    realm_description: str
    realm_web_public_access_enabled: bool


_METHODS = (
    "password",
    "dev",
    "email",
    "ldap",
    "remoteuser",
    "github",
    "azuread",
    "gitlab",
    "google",
    "apple",
    "saml",
    "openid connect",
)


async def get_server_settings(call: Call, params: NoParams) -> ServerSettings:
    """The server's version, the organization's name, and how one can sign in."""
    realm = call.state.realm
    offered = {"password": realm.password_sign_in, "email": realm.password_sign_in}
    offered["dev"] = call.node.config.dev
    return ServerSettings(
        authentication_methods={name: offered.get(name, False) for name in _METHODS},
        external_authentication_methods=[],
        zulip_version=versions.SERVICE_VERSION,
        zulip_merge_base=versions.MERGE_BASE,
        zulip_feature_level=versions.FEATURE_LEVEL,
        service_feature_level=versions.FEATURE_LEVEL,
        push_notifications_enabled=False,
        is_incompatible=False,
        email_auth_enabled=realm.password_sign_in,
        require_email_format_usernames=True,
        realm_url=call.url,
        realm_uri=call.url,
        realm_name=realm.name,
        realm_icon=picture_url(realm, "icon"),
        realm_description=realm.rendered_description,
        realm_web_public_access_enabled=call.node.admits_spectators,
    )


class FetchApiKey(Params, kw_only=True, frozen=True):
    """Signing in."""

    username: Annotated[str, Meta(description="The account's e-mail address.")]
    password: Annotated[str, Meta(description="Its password.")]


class ApiKey(ApiResponse, kw_only=True):
    """What a client authenticates with from then on."""

    api_key: str
    email: str
    user_id: int


async def fetch_api_key(call: Call, params: FetchApiKey) -> ApiKey:
    """The account's API key, for its address and password."""
    address = names.address(params.username)
    checked = await sign_in.by_password(call.node, call.request, address, params.password)
    if checked.is_new_place:
        place = sign_in.place_of(call.node, call.request)
        await call.node.log.submit(checked.user.id, account_emails.email_new_sign_in, place)
    return await signed_in(call, checked.user, "password")


async def signed_in(call: Call, user: User, way: str) -> ApiKey:
    """What a client gets that has signed in as the account; `way` is how."""
    if user.awaits_arrival:
        await call.node.log.submit(user.id, users.arrive)
    sign_in.note_signed_in(call.request, way, user.id)
    key = call.node.vault.api_key(call.state.credentials[user.id])
    return ApiKey(api_key=key, email=user.address, user_id=user.id)


class DevFetchApiKey(Params, kw_only=True, frozen=True):
    """Signing in without a password."""

    username: Annotated[str, Meta(description="The account's e-mail address.")]


async def dev_fetch_api_key(call: Call, params: DevFetchApiKey) -> ApiKey:
    """The account's API key, for its address alone. On development servers only."""
    user = call.state.user_with_address(names.address(params.username))
    if user is None or user.id not in call.state.credentials:
        raise WrongPassword("Incorrect email address or password.")
    return await signed_in(call, sign_in.require_usable(call.node, user.id), "development")


class DevUser(Struct, kw_only=True):
    """An account that a developer can sign in as."""

    email: str
    realm_url: str


class DevUsers(ApiResponse, kw_only=True):
    """Everybody, by what they may do."""

    direct_admins: list[DevUser]
    direct_users: list[DevUser]


async def dev_list_users(call: Call, params: NoParams) -> DevUsers:
    """The accounts that can be signed in to without a password. On development servers only."""
    people = [u for u in call.state.users if u.is_active and not u.is_bot]
    return DevUsers(
        direct_admins=[
            DevUser(email=u.address, realm_url=call.url) for u in people if u.is_administrator
        ],
        direct_users=[
            DevUser(email=u.address, realm_url=call.url) for u in people if not u.is_administrator
        ],
    )


class FetchApiKeyByToken(Params, kw_only=True, frozen=True):
    """A token."""

    token: Annotated[
        str,
        Alias("json_web_token"),
        Meta(description="A JSON web token whose claim `email` is the account's address."),
    ]
    include_profile: Annotated[bool, Meta(description="Whether to show the account.")] = False


class ApiKeyAndProfile(ApiKey, kw_only=True):
    """What a client authenticates with from then on."""

    user: UserObject | UnsetType = UNSET


async def fetch_api_key_by_token(call: Call, params: FetchApiKeyByToken) -> ApiKeyAndProfile:
    """The account's API key, for a token that a program has signed which shares a secret with this
    server (the setting `jwt_secret`)."""
    secret = call.node.config.jwt_secret
    if not secret:
        raise Refused("Signing in with JSON web tokens is turned off on this server.")
    try:
        claims = credentials.claims_of(params.token, secret, call.now)
    except BadToken as error:
        raise Refused(str(error)) from None
    address = claims.get("email")
    user = None
    if isinstance(address, str):
        user = call.state.user_with_address(names.address(address))
    if user is None or user.is_bot or user.id not in call.state.credentials:
        sign_in.note_failed(call.request, "token", None)
        raise WrongPassword("No account has the email address in the token.")
    known = await signed_in(call, sign_in.require_usable(call.node, user.id), "token")
    profile: UserObject | UnsetType = UNSET
    if params.include_profile:
        host = call.node.config.address_host
        form = UserFormat(with_profile=True)
        profile = user_shown(call.state, call.state.users[user.id], host, form, sees_address=True)
    return ApiKeyAndProfile(**msgspec.structs.asdict(known), user=profile)


TRIALS: Final = 5
TRIAL_SECONDS: Final = 300.0
"""An owner may try so often, and as often again in so long."""


class TriedMail(ApiResponse, kw_only=True):
    """What became of a test mail."""

    outcome: Annotated[
        str,
        Meta(
            description="`sent`: the mail server took it; `not_set_up`: the server has no"
            " smtp_host, and nothing was sent; `unreachable`: the mail server could not be reached,"
            " or took too long; `not_encrypted`: not with the encryption that is set, or without a"
            " certificate that is trusted; `not_signed_in`: it does not take the name and the"
            " password; `refused`: it does not take the mail."
        ),
    ]
    to: Annotated[str, Meta(description="The caller's address.")]
    reply: Annotated[
        str,
        Meta(
            description="What the mail server answered where it refused something, without"
            " addresses and names of hosts; else empty."
        ),
    ]


async def try_mail(call: Call, params: NoParams) -> TriedMail:
    """Send a test mail to the caller's own address, and say what became of it, within 30 seconds;
    for owners. Not of the reference's interface: this server's."""
    permissions.require_owner(call.state, call.user)
    if call.user.is_bot:
        raise Refused("Bots don't receive email.")
    to = call.user.address
    if not call.node.config.smtp_host:
        return TriedMail(outcome="not_set_up", to=to, reply="")
    call.node.limits.limiters.limiter("test mails", TRIALS, TRIAL_SECONDS).require(call.user.id)
    trial = await send_test_mail(call.node, to)
    outcome = "sent" if trial.trouble is None else trial.trouble.value
    return TriedMail(outcome=outcome, to=to, reply=trial.reply)
