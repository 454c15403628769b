"""Personal settings: one's own, and for administrators those of others."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import personal_settings
from tertulia.domain.accounts.addresses import NewAddress
from tertulia.domain.accounts.personal_settings import NewPassword, Revision, Targets
from tertulia.model.errors import Refused
from tertulia.service.passwords import good_password
from tertulia.wire.api.objects.settings import SettingParams, settings_sent, wire_name
from tertulia.wire.api.resources.presence import follow_settings
from tertulia.wire.http import session_cookies, sign_in
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int
from tertulia.wire.http.routing import Answer


class TargetUsers(Struct, kw_only=True, frozen=True):
    """Whose settings are changed: these accounts, and all active members of these groups.

    `skip_if_already_edited` leaves out those who have ever changed settings of their own.
    """

    user_ids: list[Int] = []
    group_ids: list[Int] = []
    skip_if_already_edited: bool = False


class UpdateSettings(SettingParams, kw_only=True, frozen=True):
    """What is to be new; what is not sent stays as it is."""

    target_users: Annotated[
        TargetUsers | None, Meta(description="Others, for administrators. The caller by default.")
    ] = None
    full_name: str | UnsetType = UNSET
    email: Annotated[
        str | UnsetType,
        Meta(description="It is changed when the link is used that is mailed to this address."),
    ] = UNSET
    timezone: Annotated[str | UnsetType, Meta(description="An IANA name, or nothing.")] = UNSET
    old_password: str | UnsetType = UNSET
    new_password: Annotated[str | UnsetType, Meta(description="Needs the old one beside it.")] = (
        UNSET
    )


async def update_settings(call: Call, params: UpdateSettings) -> Answer:
    """Change personal settings. What has the value already is named among the ignored."""
    settings = settings_sent(params)
    revision = Revision(
        settings=settings,
        full_name=params.full_name,
        timezone=params.timezone,
        password=await _password(call, params),
        address=_address(call, params),
    )
    targets = params.target_users
    if targets is None:
        changed = await call.submit(personal_settings.change, revision)
    else:
        whom = Targets(
            user_ids=tuple(targets.user_ids),
            group_ids=tuple(targets.group_ids),
            skip_if_already_edited=targets.skip_if_already_edited,
        )
        changed = await call.submit(personal_settings.change_for, whom, revision)
    for user_id in changed.users_with("presence_enabled"):
        follow_settings(call.node, user_id, is_here=user_id == call.user.id)
    new = frozenset[str]().union(*changed.names.values())
    asked = [
        *settings,
        *(n for n in ("full_name", "email", "timezone") if getattr(params, n) is not UNSET),
    ]
    if "password" in new and call.session_id is not None:
        session_cookies.know_device(call.node, call.request, call.user.id)
    call.ignored.extend(wire_name(name) for name in asked if name not in new)
    if params.old_password is not UNSET and "password" not in new:
        call.ignored.append("old_password")
    return Answer()


def _address(call: Call, params: UpdateSettings) -> NewAddress | UnsetType:
    if isinstance(params.email, UnsetType):
        return UNSET
    if params.email.strip() != call.user.address:
        sign_in.require_confirmed(call)
    return NewAddress(
        text=params.email, nonce=call.node.vault.nonce(), site=call.node.config.mail_site
    )


async def _password(call: Call, params: UpdateSettings) -> NewPassword | UnsetType:
    """The new password as it is kept, where one was sent. Refused where the old one is not the
    present one, or the new one cannot be one."""
    if params.new_password is UNSET:
        return UNSET
    if params.target_users is not None:
        raise Refused("You can't change other people's passwords.")
    if params.old_password is UNSET:
        raise Refused("To set a new password, include your old one.")
    vault = call.node.vault
    if not call.state.realm.password_sign_in:
        raise Refused("Password sign-in is disabled in this organization.")
    credential = await sign_in.require_own_password(
        call, params.old_password, "The old password is incorrect."
    )
    user = call.user
    password = await good_password(call.node, params.new_password, user.address, user.full_name)
    hashed = await vault.hash_password(password)
    return NewPassword(
        old_hash=credential.password_hash,
        new_hash=hashed,
        session_id=call.session_id,
        site=call.node.config.mail_site,
    )
