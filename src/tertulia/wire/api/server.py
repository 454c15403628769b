"""Server settings and API keys, which clients use before they have signed in."""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.model.errors import Refused, WrongPassword
from tertulia.model.users import User
from tertulia.service import credentials, mailing
from tertulia.service.credentials import BadToken
from tertulia.wire.api import events as versions
from tertulia.wire.api.organization.objects import picture_url, server_methods
from tertulia.wire.api.users.objects import UserFormat, UserObject, shared_user_object
from tertulia.wire.http import authentication, sign_in
from tertulia.wire.http.errors import MissingParameter
from tertulia.wire.http.parameters import Alias, Doc
from tertulia.wire.http.routing import ApiResponse, Call
from tertulia.wire.http.sign_in import CheckedPassword


class ExternalMethod(Struct, kw_only=True):
    """A sign-in method other than passwords."""

    name: Annotated[str, Doc("Identifies the method, such as `oidc:company`.")]
    display_name: Annotated[str, Doc("The title of its button.")]
    display_icon: Annotated[str | None, Doc("The path of its icon on this server; null for none.")]
    login_url: Annotated[
        str,
        Doc(
            "The path where a browser signs in. A mobile app adds `mobile_flow_otp`, 64 random"
            " hexadecimal digits, and is opened with"
            " `zulip://login?otp_encrypted_api_key=…&email=…&user_id=…&realm=…`. The desktop app"
            " adds `desktop_flow_otp`."
        ),
    ]
    signup_url: Annotated[str, Doc("The path where someone without an account signs up.")]


class ServerSettingsResponse(ApiResponse, kw_only=True):
    """The information that clients need before signing in."""

    authentication_methods: dict[str, bool]
    external_authentication_methods: list[ExternalMethod]
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


async def get_server_settings(call: Call) -> ServerSettingsResponse:
    """Get the server's version, the organization's name, and the available sign-in methods."""
    realm = call.state.realm
    password = sign_in.takes_passwords(call.node)
    methods = call.node.config.sign_in
    offered = {"password": password, "email": realm.password_sign_in, "dev": call.node.config.dev}
    offered |= {name.lower(): True for name in server_methods(call.node.config)}
    return ServerSettingsResponse(
        authentication_methods={name: offered.get(name, False) for name in _METHODS},
        external_authentication_methods=[
            ExternalMethod(
                name=f"{method.kind}:{method.name}",
                display_name=method.label,
                display_icon=method.icon_path,
                login_url=method.path,
                signup_url=method.path,
            )
            for method in methods
            if method.HAS_BUTTON
        ],
        zulip_version=versions.SERVICE_VERSION,
        zulip_merge_base=versions.MERGE_BASE,
        zulip_feature_level=versions.FEATURE_LEVEL,
        service_feature_level=versions.FEATURE_LEVEL,
        push_notifications_enabled=bool(call.node.config.push_bouncer_url),
        is_incompatible=False,
        email_auth_enabled=password,
        require_email_format_usernames=not call.node.config.has_directories,
        realm_url=call.url,
        realm_uri=call.url,
        realm_name=realm.name,
        realm_icon=picture_url(realm, "icon"),
        realm_description=realm.rendered_description,
        realm_web_public_access_enabled=call.node.admits_spectators
        and any(map(channel_access.open_to_spectators, call.state.channels)),
    )


Code = Annotated[
    str | None,
    Doc("A code of the account's authenticator app, or a recovery code. Each works once."),
]


class FetchApiKeyResponse(ApiResponse, kw_only=True):
    """The account's API key."""

    api_key: str
    email: str
    user_id: int


async def fetch_api_key(
    call: Call,
    password: Annotated[str, Doc("The account's password.")],
    username: Annotated[
        str | None,
        Doc(
            "The account's email address, or the person's name in an LDAP directory. Only a browser"
            " session can leave it out: for its own account."
        ),
    ] = None,
    code: Code = None,
) -> FetchApiKeyResponse:
    """Get your API key with your email address and password.

    If the account has a second factor, a `code` is also needed. Without it, the error is
    SECOND_FACTOR_REQUIRED.
    """
    if username is None:
        owner = authentication.authenticated(call.node, call.request)
        if owner is None:
            raise MissingParameter("username")
        username = owner.address
    if not call.node.config.has_directories:
        names.address(username)
    with sign_in.naming_contact(call.node):
        checked = await sign_in.check_password(call.node, call.request, username, password)
    await sign_in.finish_with_code(call.node, call.request, checked, code)
    return await signed_in(call, checked.user, "password", checked)


async def signed_in(
    call: Call, user: User, method: str, checked: CheckedPassword | None = None
) -> FetchApiKeyResponse:
    """Sign the user in with `method`, and return their API key."""
    key = await sign_in.sign_in_program(call.node, call.request, user, method, checked)
    return FetchApiKeyResponse(api_key=key, email=user.address, user_id=user.id)


async def dev_fetch_api_key(
    call: Call, username: Annotated[str, Doc("The account's email address.")]
) -> FetchApiKeyResponse:
    """Get an account's API key without a password."""
    user = call.state.user_with_address(names.address(username))
    if user is None or user.id not in call.state.credentials:
        raise WrongPassword("Incorrect email address or password.")
    return await signed_in(call, sign_in.require_usable(call.node, user.id), "development")


class DevUser(Struct, kw_only=True):
    """A development account."""

    email: str
    realm_url: str


class DevUsersResponse(ApiResponse, kw_only=True):
    """The active accounts, by role."""

    direct_admins: list[DevUser]
    direct_users: list[DevUser]


async def dev_list_users(call: Call) -> DevUsersResponse:
    """List the accounts that you can sign in to without a password."""
    people = [u for u in call.state.users if u.is_active and not u.is_bot]
    return DevUsersResponse(
        direct_admins=[
            DevUser(email=u.address, realm_url=call.url) for u in people if u.is_administrator
        ],
        direct_users=[
            DevUser(email=u.address, realm_url=call.url) for u in people if not u.is_administrator
        ],
    )


class ApiKeyWithUserResponse(FetchApiKeyResponse, kw_only=True):
    """The account's API key and, on request, the account."""

    user: UserObject | UnsetType = UNSET


async def fetch_api_key_by_token(
    call: Call,
    token: Annotated[
        str,
        Alias("json_web_token"),
        Doc("A JSON web token whose claim `email` is the account's address."),
    ],
    include_profile: Annotated[bool, Doc("Whether to return the account as `user`.")] = False,
) -> ApiKeyWithUserResponse:
    """Get an account's API key with a JSON web token.

    The token must be signed with the server's setting `jwt_secret`.
    """
    secret = call.node.config.jwt_secret
    if not secret:
        raise Refused("Signing in with JSON web tokens is turned off on this server.")
    try:
        claims = credentials.claims_of(token, secret, call.now)
    except BadToken as error:
        raise Refused(str(error)) from None
    address = claims.get("email")
    user = None
    if isinstance(address, str):
        user = call.state.user_with_address(names.address(address))
    with sign_in.naming_contact(call.node):
        if user is None or user.is_bot or user.id not in call.state.credentials:
            sign_in.log_failed_sign_in(call.request, "token", None)
            raise WrongPassword("No account has the email address in the token.")
        user = sign_in.require_usable(call.node, user.id)
    api_key = await signed_in(call, user, "token")
    profile: UserObject | UnsetType = UNSET
    if include_profile:
        host = call.node.config.address_host
        form = UserFormat(with_profile=True)
        profile = shared_user_object(
            call.state, call.state.users[user.id], host, form, sees_address=True
        )
    return ApiKeyWithUserResponse(**msgspec.structs.asdict(api_key), user=profile)


TEST_MAILS: Final = 5
TEST_MAIL_SECONDS: Final = 300.0


class TestMailResponse(ApiResponse, kw_only=True):
    """The result of sending a test email."""

    outcome: Annotated[
        str,
        Doc(
            "`sent` (the mail server accepted it), `not_set_up` (no `smtp_host` is configured, so"
            " nothing was sent), `unreachable` (the mail server couldn't be reached, or took too"
            " long), `not_encrypted` (the configured encryption isn't available, or the"
            " certificate isn't trusted), `not_signed_in` (the mail server rejected the name and"
            " password), or `refused` (the mail server rejected the email)."
        ),
    ]
    to: Annotated[str, Doc("Your email address.")]
    reply: Annotated[
        str,
        Doc(
            "The mail server's response if it rejected something, without email addresses and"
            " host names. Otherwise empty."
        ),
    ]


async def send_test_mail(call: Call) -> TestMailResponse:
    """Send a test email to your address, and return the result within 30 seconds. Requires an
    owner. This endpoint is a Tertulia extension."""
    permissions.require_owner(call.state, call.user)
    if call.user.is_bot:
        raise Refused("Bots don't receive email.")
    to = call.user.address
    if not call.node.config.smtp_host:
        return TestMailResponse(outcome="not_set_up", to=to, reply="")
    call.node.limits.limiters.limiter("test mails", TEST_MAILS, TEST_MAIL_SECONDS).require(
        call.user.id
    )
    result = await mailing.send_test_mail(call.node, to)
    outcome = "sent" if result.trouble is None else result.trouble.value
    return TestMailResponse(outcome=outcome, to=to, reply=result.reply)
