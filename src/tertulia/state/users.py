"""Accounts, sessions, and keys: tables and folds, and the bots whose services a message calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.access_keys import AccessKey
from tertulia.model.identities import Identity
from tertulia.model.invitations import Invitation
from tertulia.model.messages import Message
from tertulia.model.nouns import Noun
from tertulia.model.second_factors import Passkey, SecondFactor
from tertulia.model.sessions import Session
from tertulia.model.users import Credential, Role, User
from tertulia.model.webhooks import ServiceCall
from tertulia.state.folds import FOLDS, revised
from tertulia.state.personal import PersonalTable
from tertulia.state.tables import FieldVersion, Grouped, Ordered, Subset, Table, Unique

if TYPE_CHECKING:
    from tertulia.state.state import State


class UserTable(Table[User]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_address = Unique(self, lambda user: user.address.casefold())
        self.by_name = Grouped(self, lambda user: user.full_name)
        self.active_by_role = Grouped(self, _active_role)
        """Active accounts by role, without the system's bots."""
        self.bots = Subset(self, lambda user: user.is_bot)
        """All bots, including deactivated ones and the system's."""
        self.people = Subset(self, _is_person)
        """All people, including deactivated ones, but without deleted ones and authors that imports
        created."""
        self.of_owner = Grouped(self, _owner_id)
        """The bots of each person, including deactivated ones."""
        self.services = Subset(self, _has_service)
        """Active bots that have a service: outgoing webhooks and embedded bots."""
        self.guests = Subset(self, lambda user: user.is_guest)
        """All guests, including deactivated ones."""
        self.usual = Subset(self, _is_usual)
        """Active people with the role of a member: most accounts."""
        self.members_by_joining = Ordered(self, _member_since)
        """Active accounts with the role of a member, oldest first."""
        self.activity = FieldVersion(self, lambda user: user.is_active)
        """Changes when an account is deactivated or reactivated."""

    @property
    def erased_count(self) -> int:
        """The number of erased accounts."""
        return sum(user.is_deleted for user in self)

    def bots_of(self, owner_id: int) -> list[User]:
        """Return the person's active bots, by ascending ID."""
        return [bot for bot in self.of_owner[owner_id] if bot.is_active]

    def person_of(self, user: User) -> User:
        """Return a bot's owner, or the account itself if it has none."""
        return self[user.person_id]

    def accounts_of(self, person: User) -> Iterator[int]:
        """Yield the IDs of the account and of its bots, including deactivated ones."""
        yield person.id
        yield from self.of_owner.keys(person.id)

    @property
    def maybe_guests(self) -> BitMap:
        """Accounts that can have only a guest's rights, including deactivated ones."""
        return self.guests.ids | self.bots.ids


def _owner_id(user: User) -> int | None:
    return None if user.bot is None else user.bot.owner_id


def _is_person(user: User) -> bool:
    return not (user.is_bot or user.is_deleted or user.is_placeholder)


def _has_service(user: User) -> bool:
    bot = user.bot if user.is_active else None
    return bot is not None and (bot.service is not None or bot.embedded is not None)


def _active_role(user: User) -> Role | None:
    return user.role if user.is_active and not user.is_system_bot else None


def _is_usual(user: User) -> bool:
    return user.bot is None and _active_role(user) is Role.MEMBER


def _member_since(user: User) -> int | None:
    return user.joined_at if _active_role(user) is Role.MEMBER else None


class CredentialTable(Table[Credential]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_key_digest = Unique(self, lambda credential: credential.key_digest)


class SessionTable(PersonalTable[Session]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_digest = Unique(self, lambda session: session.digest)
        self.by_use = Ordered(self, lambda session: session.used_at)
        """Sessions, the least recently used first."""
        self.of_provider = Grouped(self, _provider_session)
        """Sessions by sign-in method and the provider's ID of the session there."""


def _provider_session(session: Session) -> tuple[str, str] | None:
    return (session.method, session.provider_session) if session.provider_session else None


class AccessKeyTable(PersonalTable[AccessKey]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_digest = Unique(self, lambda key: key.digest)
        self.by_expiry = Ordered(self, lambda key: key.expires_at or None)
        """Keys that expire, the earliest first."""


class IdentityTable(PersonalTable[Identity]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_subject = Unique(self, lambda identity: (identity.method, identity.subject))


class InvitationTable(Table[Invitation]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_address = Grouped(
            self, lambda invitation: (invitation.address or "").casefold() or None
        )
        """Invitations by address in lowercase."""


class SecondFactorTable(PersonalTable[SecondFactor]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_credential = Unique(self, _credential_id)
        """Passkeys by their credential ID."""
        self.passkeys = Subset(self, lambda factor: isinstance(factor.proof, Passkey))


def _credential_id(factor: SecondFactor) -> str | None:
    return factor.proof.credential_id if isinstance(factor.proof, Passkey) else None


@FOLDS.of(changes.UserCreated)
def _(state: State, change: changes.UserCreated) -> None:
    state.users.put(change.user)
    state.credentials.put(change.credential)
    state.settings.put(change.settings)
    for group_id in change.group_ids:
        group = state.groups[group_id]
        if not group.is_system:  # The members of these groups follow from the role.
            state.groups.put(revised(group, {"members": (*group.members, change.user.id)}))


FOLDS.revises(changes.UserChanged, "users", "user_id")
FOLDS.revises(changes.UserDeactivated, "users", "user_id", lambda _: {"is_active": False})
FOLDS.revises(changes.UserReactivated, "users", "user_id", lambda _: {"is_active": True})


@FOLDS.of(changes.UserVisibilityChanged)
def _(state: State, change: changes.UserVisibilityChanged) -> None:
    pass  # It follows from other records. Its gains are recorded with all others.


FOLDS.puts(changes.CredentialChanged, "credentials", "credential")


@FOLDS.of(changes.SettingsChanged)
def _(state: State, change: changes.SettingsChanged) -> None:
    before = state.settings[change.user_id]
    values = dict(change.values)
    if change.by_owner:
        values["edited_by_owner"] = True
    state.settings.put(revised(before, values))


FOLDS.puts(changes.AccessKeyMade, "access_keys", "key")
FOLDS.revises(
    changes.AccessKeyUsed,
    "access_keys",
    "key_id",
    lambda change: {"used_at": change.at, "used_from": change.address},
)
FOLDS.puts(changes.CallAccountConnected, "call_accounts", "account")
FOLDS.removes(changes.CallAccountDisconnected, "call_accounts", "user_id")
FOLDS.puts(changes.IdentityLinked, "identities", "identity")
FOLDS.puts(changes.IdentityRevised, "identities", "identity")
FOLDS.removes(changes.IdentitiesUnlinked, "identities", "identity_ids")
FOLDS.puts(changes.SessionBegun, "sessions", "session")
FOLDS.revises(
    changes.SessionUsed,
    "sessions",
    "session_id",
    lambda change: {
        "used_at": change.at,
        **({} if change.address is None else {"address": change.address}),
    },
)
FOLDS.revises(
    changes.SessionConfirmed, "sessions", "session_id", lambda change: {"confirmed_at": change.at}
)


@FOLDS.of(changes.AccessKeysEnded)
def _(state: State, change: changes.AccessKeysEnded) -> None:
    for key_id in change.key_ids:
        for subscription in state.push_subscriptions.of_key[key_id]:
            state.push_subscriptions.remove(subscription.id)
        state.access_keys.remove(key_id)


@FOLDS.of(changes.SessionsEnded)
def _(state: State, change: changes.SessionsEnded) -> None:
    for session_id in change.session_ids:
        # Signing out of a browser ends its push notifications.
        for subscription in state.push_subscriptions.of_session[session_id]:
            state.push_subscriptions.remove(subscription.id)
        state.sessions.remove(session_id)


@FOLDS.of(changes.SecondFactorPrepared)
def _(state: State, change: changes.SecondFactorPrepared) -> None:
    for factor_id in change.replaced_ids:
        state.second_factors.remove(factor_id)
    state.second_factors.put(change.factor)


FOLDS.puts(changes.SecondFactorAdded, "second_factors", "factor")
FOLDS.revises(
    changes.SecondFactorUsed,
    "second_factors",
    "factor_id",
    lambda change: {"used_at": change.at, "proof": change.proof},
)
FOLDS.removes(changes.SecondFactorsRemoved, "second_factors", "factor_ids")


@FOLDS.of(changes.RecoveryCodesChanged)
def _(state: State, change: changes.RecoveryCodesChanged) -> None:
    if change.codes.digests:
        state.recovery_codes.put(change.codes)
    else:
        state.recovery_codes.remove(change.codes.user_id)


@FOLDS.of(changes.RecoveryCodeUsed)
def _(state: State, change: changes.RecoveryCodeUsed) -> None:
    codes = state.recovery_codes[change.user_id]
    left = tuple(digest for digest in codes.digests if digest != change.digest)
    state.recovery_codes.put(revised(codes, {"digests": left}))


FOLDS.puts(changes.InvitationsMade, "invitations", "invitations")
FOLDS.puts(changes.InvitationChanged, "invitations", "invitation")


@FOLDS.of(changes.InvitationSentAgain)
def _(state: State, change: changes.InvitationSentAgain) -> None:
    invitation = state.invitations[change.invitation_id]
    state.invitations.put(revised(invitation, {"sent_at": (*invitation.sent_at, change.at)}))


FOLDS.revises(
    changes.InvitationsEnded,
    "invitations",
    "invitation_ids",
    lambda change: {"status": change.status},
)
FOLDS.revises(
    changes.InvitationsRedacted, "invitations", "invitation_ids", lambda _: {"address": ""}
)
FOLDS.puts(changes.ConfirmationAsked, "confirmations", "confirmation")
FOLDS.removes(changes.ConfirmationsEnded, "confirmations", "confirmation_ids")

_NAMED: Final = re.compile(r'class="user-mention" data-user-id="(\d{1,15})"')
_COMMAND: Final = re.compile(r"/([a-z][a-z0-9_-]{0,29})(?:\s|$)")


def calls_for(state: State, message: Message) -> list[ServiceCall]:
    """Return the service calls for a message that was just sent: to bots that it's sent to
    directly, that it mentions by name, or whose command it contains. Bots' messages cause no calls,
    so that bots don't reply to each other forever. The bot's access is checked later."""
    if not state.users.services.ids:
        return []
    sender = state.users.get(message.sender_id)
    if sender is None or sender.is_bot:
        return []
    return list(_calls(state, message))


def _calls(state: State, message: Message) -> Iterator[ServiceCall]:
    called: set[int] = set()
    match = _COMMAND.match(message.content)
    bot = _with_command(state, match[1]) if match else None
    if bot is not None and match is not None:
        called.add(bot.id)
        yield ServiceCall(bot_id=bot.id, message_id=message.id, trigger="command", command=match[1])
    if message.direct_id is not None:
        members = state.directs[message.direct_id].members
        for bot_id in members:
            if bot_id in state.users.services and bot_id not in called:
                yield ServiceCall(bot_id=bot_id, message_id=message.id, trigger="direct_message")
        return
    named = {int(user_id) for user_id in _NAMED.findall(message.rendered)}
    for bot_id in sorted(named - called):
        if bot_id in state.users.services:
            yield ServiceCall(bot_id=bot_id, message_id=message.id, trigger="mention")


def _with_command(state: State, name: str) -> User | None:
    for bot_id in state.users.services:
        user = state.users[bot_id]
        service = user.bot.service if user.bot else None
        if service is not None and name in service.commands:
            return user
    return None
