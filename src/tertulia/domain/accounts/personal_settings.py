"""Checking and changing personal settings."""

import zoneinfo
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import addresses, signing_out, users
from tertulia.domain.accounts.addresses import NewAddress
from tertulia.domain.messages import drafts
from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.model.changes import AnyChange, CredentialChanged, SessionConfirmed, SettingsChanged
from tertulia.model.errors import Refused
from tertulia.model.mail import Mail, MailKind
from tertulia.model.settings import declared_settings
from tertulia.model.users import NewApiKey, PersonalSettings, User
from tertulia.state.decision import CommandContext, Decision

NOTIFICATION_SOUNDS: Final = ("ding", "zulip")
"""Names of notification sounds, which clients contain."""
SILENCE: Final = "none"
"""The name that turns the sound off."""

RULES: Final[Mapping[str, Any]] = {
    name: setting.type for name, setting in declared_settings(PersonalSettings).items()
}
"""The type of each personal setting. `default_language` and `notification_sound` accept only listed
values."""


def checked_value(name: str, value: Any) -> Any:
    """Return the setting's value with the type that `PersonalSettings` declares. Raise Refused if
    it's invalid; KeyError for unknown settings."""
    kind = RULES[name]
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"Invalid value for a setting: {error}") from None
    if name == "default_language" and converted not in LANGUAGES:
        raise Refused("This language isn't available.")
    if name == "notification_sound" and converted not in {*NOTIFICATION_SOUNDS, SILENCE}:
        raise Refused("This notification sound doesn't exist.")
    return converted


def all_checked(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: checked_value(name, value) for name, value in values.items()}


# Changing


class Targets(Struct, frozen=True, kw_only=True):
    """Accounts, and groups with their active members, whose settings an administrator changes."""

    user_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    skip_if_already_edited: bool = False
    """Skip accounts that have changed any setting themselves."""


class PasswordChange(Struct, frozen=True, kw_only=True):
    """The hashes of a new password and of the password that it replaces."""

    old_hash: str | None
    new_hash: str
    site: str
    """The server's URL, for the email about it."""
    session_id: int | None = None
    """The session that sent the request, the only one that stays signed in; None if no session sent
    it."""
    key: NewApiKey | None = None
    """A new API key, which ends the previous one and all access keys; None to keep them."""


class PersonalSettingsUpdate(Struct, frozen=True, kw_only=True):
    """New values for settings and account fields. Others keep their values."""

    settings: Mapping[str, Any] = {}
    full_name: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    password: PasswordChange | UnsetType = UNSET
    address: NewAddress | UnsetType = UNSET


class ChangedSettings(Struct, frozen=True, kw_only=True):
    """The names of changed settings and fields, by account."""

    names: Mapping[int, frozenset[str]]

    def users_with(self, name: str) -> list[int]:
        """Return the accounts whose setting or field with this name changed."""
        return [user_id for user_id, names in self.names.items() if name in names]


def change(context: CommandContext, update: PersonalSettingsUpdate) -> Decision[ChangedSettings]:
    """Change the actor's own settings.

    Raise Refused for invalid values, a name that the organization doesn't let people change, and a
    wrong old password.
    """
    actor = context.actor
    changes = settings_changes(context, actor, all_checked(update.settings))
    values: dict[str, Any] = {}
    if update.full_name is not UNSET:
        values["full_name"] = _own_name(context, update.full_name)
    if update.timezone is not UNSET:
        values["timezone"] = timezone(update.timezone)
    changes += users.account_changes(context, actor, values)
    names = _names(changes)
    if update.password is not UNSET:
        changes += _password_changes(context, update.password)
        names |= {"password"}
    mails: list[Mail] = []
    if update.password is not UNSET:
        ends_keys = update.password.key is not None
        kind = MailKind.CREDENTIAL_CHANGED if ends_keys else MailKind.PASSWORD_CHANGED
        mails += users.emails_to(kind, actor, update.password.site)
    if update.address is not UNSET:
        requested = addresses.ask_change(context, update.address)
        changes += requested.changes
        mails += requested.mails
        names |= {"email"} if requested.changes else set()
    return Decision(ChangedSettings(names={actor.id: names}), changes, mails)


def change_for(
    context: CommandContext, targets: Targets, update: PersonalSettingsUpdate
) -> Decision[ChangedSettings]:
    """Change settings of others, as an administrator.

    Raise Refused for unknown or deactivated accounts and groups, and for a name, an address, or a
    password.
    """
    permissions.require_administrator(context.state, context.actor)
    permissions.require(
        update.full_name is UNSET and update.password is UNSET and update.address is UNSET,
        "You can't change names, email addresses, and passwords for several accounts at a"
        " time. Change them one by one.",
    )
    settings = all_checked(update.settings)
    values: dict[str, Any] = {}
    if update.timezone is not UNSET:
        values["timezone"] = timezone(update.timezone)
    changes: list[AnyChange] = []
    names: dict[int, frozenset[str]] = {}
    for user in _targeted_users(context, targets):
        changed = settings_changes(context, user, settings) + users.account_changes(
            context, user, values
        )
        names[user.id] = _names(changed)
        changes += changed
    return Decision(ChangedSettings(names=names), changes)


def timezone(text: str) -> str:
    """Return a valid IANA time zone name, or an empty string. Raise Refused for unknown names."""
    name = text.strip()
    if name and name not in _zones():
        raise Refused("This time zone doesn't exist.")
    return name


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _own_name(context: CommandContext, text: str) -> str:
    state, actor = context.state, context.actor
    if text.strip() == actor.full_name:
        return actor.full_name
    permissions.require(
        permissions.is_administrator(state, actor) or not state.realm.name_changes_disabled,
        "This organization doesn't allow people to change their name. Ask an administrator"
        " to change it.",
    )
    return users.free_name(state, text, actor.id)


def settings_changes(
    context: CommandContext, user: User, values: Mapping[str, Any]
) -> list[AnyChange]:
    """Return the changes that set these checked values, if they differ. Turning off draft syncing
    also deletes the synced drafts."""
    before = context.state.settings[user.id]
    new = {name: value for name, value in values.items() if getattr(before, name) != value}
    if not new:
        return []
    changed = SettingsChanged(
        user_id=user.id,
        values=new,
        was={name: getattr(before, name) for name in new},
        by_owner=user.id == context.actor_id,
    )
    if new.get("enable_drafts_synchronization", True):
        return [changed]
    return [changed, *drafts.deletion_changes(context.state, user.id)]


def _names(changes: Iterable[AnyChange]) -> frozenset[str]:
    return frozenset(name for change in changes for name in getattr(change, "values", ()))


def _password_changes(context: CommandContext, password: PasswordChange) -> list[AnyChange]:
    credential = context.state.credentials[context.actor.id]
    if credential.password_hash != password.old_hash:
        raise Refused("The password has changed in the meantime.")
    state, user_id = context.state, context.actor.id
    changed: list[AnyChange]
    if password.key is not None:
        changed = users.key_changes(state, user_id, password.key, password.new_hash)
    else:
        same = msgspec.structs.replace(credential, password_hash=password.new_hash)
        changed = [CredentialChanged(credential=same, same_key=True)]
    over = signing_out.all_session_end_changes(state, user_id, but=password.session_id)
    session = state.sessions.get(password.session_id)
    if session is None:
        return [*changed, *over]
    return [*changed, *over, SessionConfirmed(session_id=session.id, at=int(context.now))]


def _targeted_users(context: CommandContext, targets: Targets) -> list[User]:
    state = context.state
    users: dict[int, User] = {}
    for user_id in targets.user_ids:
        user = permissions.visible_user(state, context.actor, user_id)
        if not user.is_active or user.is_bot:
            raise Refused(f"User {user_id} isn't an active person.")
        users[user.id] = user
    for group_id in targets.group_ids:
        group = state.groups.get(group_id)
        if group is None or group.deactivated:
            raise Refused(f"No user group with ID {group_id} exists.")
        for user in state.users:
            if user.is_active and not user.is_bot and state.memberships.holds(user, group_id):
                users[user.id] = user
    if targets.skip_if_already_edited:
        return [u for u in users.values() if not state.settings[u.id].edited_by_owner]
    return list(users.values())
