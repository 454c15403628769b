"""The audit log's records of each kind of change. Every kind of change is in `AUDITED` or in
`NOT_AUDITED`. A record has IDs, names of channels, groups, and keys, and old and new values of
settings. It has no secrets, and no content of messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from tertulia.model import changes
from tertulia.model.audit_log import AuditKind, AuditRecord, Origin
from tertulia.model.change import Change
from tertulia.model.changes import Entry
from tertulia.model.imports import ImportState
from tertulia.model.invitations import InvitationStatus
from tertulia.model.users import User
from tertulia.state.state import State

C = TypeVar("C", bound=Change)
Facts = Iterable["Fact"]

MAX_LISTED: Final = 200
"""The most IDs in one record. More are split into several records."""
_MAX_TEXT: Final = 200
"""The most characters of a value."""


class Fact(NamedTuple):
    """A record without its time, actor, and origin."""

    kind: AuditKind
    user_id: int | None = None
    details: Mapping[str, Any] = {}


class Before(NamedTuple):
    """The context in which a change is described."""

    state: State
    """The state before the change."""
    is_routine: bool
    """Whether the server makes the change by itself, such as ending expired sessions."""


Describe = Callable[[Before, Any], Facts]


def audited(state: State, entry: Entry, origin: Origin | None) -> Iterator[AuditRecord]:
    """Yield the records of an entry that is about to be folded into the state. `origin` is None for
    the server's jobs."""
    describe = AUDITED.get(type(entry.change))
    if describe is None:
        return
    before = Before(state, origin is None and entry.actor_id is None)
    for fact in describe(before, entry.change):
        yield AuditRecord(
            kind=fact.kind,
            at=entry.at,
            actor_id=entry.actor_id,
            user_id=fact.user_id,
            origin=origin or Origin(),
            details=dict(fact.details),
        )


# Values


def shown(value: Any) -> Any:
    """Return a value that can be encoded as JSON, with long texts cut."""
    plain = msgspec.to_builtins(value, str_keys=True)
    return f"{plain[:_MAX_TEXT]}…" if isinstance(plain, str) and len(plain) > _MAX_TEXT else plain


def _differences(
    record: Any, values: Mapping[str, Any], *, but: frozenset[str] = frozenset()
) -> dict[str, list[Any]]:
    """Return the old and new value of each field that changes, except those in `but`."""
    changed = {}
    for name, value in values.items():
        old = shown(getattr(record, name, None))
        if name not in but and old != shown(value):
            changed[name] = [old, shown(value)]
    return changed


def _parts(ids: Iterable[int]) -> Iterator[list[int]]:
    every = list(ids)
    for begin in range(0, len(every), MAX_LISTED):
        yield every[begin : begin + MAX_LISTED]


def _about(kind: AuditKind, user_ids: Iterable[int], details: Mapping[str, Any]) -> Facts:
    """Yield facts about any number of accounts."""
    for some in _parts(user_ids):
        if len(some) == 1:
            yield Fact(kind, some[0], details)
        else:
            yield Fact(kind, None, {**details, "user_ids": some})


# Signing in, keys


def _session_begun(before: Before, change: changes.SessionBegun) -> Facts:
    session = change.session
    details = {"session_id": session.id, "method": session.method}
    return [Fact("signed_in", session.user_id, details)]


def _sessions_ended(before: Before, change: changes.SessionsEnded) -> Facts:
    if before.is_routine:
        return
    of_user: dict[int, list[int]] = {}
    for session_id in change.session_ids:
        session = before.state.sessions.get(session_id)
        if session is not None:
            of_user.setdefault(session.user_id, []).append(session_id)
    for user_id, ids in of_user.items():
        yield Fact("sessions_ended", user_id, {"session_ids": ids})


def _credential_changed(before: Before, change: changes.CredentialChanged) -> Facts:
    new = change.credential
    old = before.state.credentials.get(new.user_id)
    if old is None or old.password_hash != new.password_hash:
        yield Fact("password_changed" if new.password_hash else "password_removed", new.user_id)
    if old is None or old.key_digest != new.key_digest:
        yield Fact("api_key_changed", new.user_id)


def _key_made(before: Before, change: changes.AccessKeyMade) -> Facts:
    key = change.key
    details: dict[str, Any] = {"key_id": key.id, "name": key.name, "access": key.access.value}
    if key.reach.is_limited:
        details |= {"direct_messages": key.reach.directs}
        if key.reach.channel_ids is not None:
            details["channel_ids"] = list(key.reach.channel_ids[:MAX_LISTED])
    return [Fact("key_created", key.user_id, details)]


def _keys_ended(before: Before, change: changes.AccessKeysEnded) -> Facts:
    if not before.is_routine:
        yield Fact("keys_revoked", change.user_id, {"key_ids": list(change.key_ids)})


def _identity_linked(before: Before, change: changes.IdentityLinked) -> Facts:
    return [Fact("identity_linked", change.identity.user_id, {"method": change.identity.method})]


def _identities_unlinked(before: Before, change: changes.IdentitiesUnlinked) -> Facts:
    links = map(before.state.identities.get, change.identity_ids)
    details = {"methods": sorted({link.method for link in links if link is not None})}
    return [Fact("identities_unlinked", change.user_id, details)]


def _factor_added(before: Before, change: changes.SecondFactorAdded) -> Facts:
    factor = change.factor
    details = {"factor_id": factor.id, "type": factor.kind, "name": factor.name}
    return [Fact("second_factor_added", factor.user_id, details)]


def _factors_removed(before: Before, change: changes.SecondFactorsRemoved) -> Facts:
    details = {"factor_ids": list(change.factor_ids)}
    return [Fact("second_factors_removed", change.user_id, details)]


def _codes_changed(before: Before, change: changes.RecoveryCodesChanged) -> Facts:
    if change.codes.digests:  # Otherwise, they ended with the last second factor.
        yield Fact("recovery_codes_changed", change.codes.user_id)


def _confirmation_asked(before: Before, change: changes.ConfirmationAsked) -> Facts:
    asked = change.confirmation
    if asked.user_id is not None:
        yield Fact("address_change_requested", asked.user_id, {"addresses": [asked.address]})


# Accounts


def _user_created(before: Before, change: changes.UserCreated) -> Facts:
    return [Fact("account_created", change.user.id, _account(change.user))]


def _account(user: User) -> dict[str, Any]:
    details: dict[str, Any] = {"role": int(user.role)}
    if user.bot is not None:
        details |= {"bot_type": int(user.bot.kind), "bot_owner_id": user.bot.owner_id}
    return details


_OF_ACCOUNT: Final = frozenset({"full_name", "address", "is_placeholder", "upload_quota_mib"})


def _user_changed(before: Before, change: changes.UserChanged) -> Facts:
    user = before.state.users[change.user_id]
    if change.values.get("is_deleted"):
        yield Fact("account_erased", user.id)
        return
    different = _differences(user, change.values)
    if "role" in different:
        yield Fact("role_changed", user.id, {"changes": {"role": different["role"]}})
    others = {name: values for name, values in different.items() if name in _OF_ACCOUNT}
    bot = change.values.get("bot")
    if (
        user.bot is not None
        and bot is not None
        and user.bot.owner_id != getattr(bot, "owner_id", 0)
    ):
        others["bot_owner_id"] = [user.bot.owner_id, bot.owner_id]
    elif "bot" in different:  # The values may be secrets, such as a service's token.
        others["bot"] = [None, None]
    if others:
        yield Fact("account_changed", user.id, {"changes": others})


def _account_fact(kind: AuditKind) -> Describe:
    return lambda before, change: [Fact(kind, change.user_id)]


# The organization


_UNSAID: Final = frozenset({"rendered_description", "waiting_period_applied"})


def _realm_changed(before: Before, change: changes.RealmChanged) -> Facts:
    different = _differences(before.state.realm, change.values, but=_UNSAID)
    if different:
        yield Fact("settings_changed", None, {"changes": different})


def _defaults_changed(before: Before, change: changes.RealmDefaultsChanged) -> Facts:
    different = _differences(before.state.default_settings, change.values)
    if different:
        yield Fact("default_settings_changed", None, {"changes": different})


def _simple(kind: AuditKind) -> Describe:
    return lambda before, change: [Fact(kind)]


def _domain_set(kind: AuditKind) -> Describe:
    return lambda before, change: [
        Fact(
            kind,
            None,
            {"domain": change.domain.name, "allow_subdomains": change.domain.allow_subdomains},
        )
    ]


def _domain_removed(before: Before, change: changes.DomainRemoved) -> Facts:
    return [Fact("domain_removed", None, {"domain": change.name})]


def _invited(before: Before, change: changes.InvitationsMade) -> Facts:
    for begin in range(0, len(change.invitations), MAX_LISTED):
        some = change.invitations[begin : begin + MAX_LISTED]
        addresses = [invitation.address for invitation in some if invitation.address is not None]
        details: dict[str, Any] = {
            "invitation_ids": [invitation.id for invitation in some],
            "role": int(some[0].role),
        }
        if addresses:
            details["addresses"] = addresses
        yield Fact("invited" if addresses else "invitation_link_created", None, details)


def _invitation_changed(before: Before, change: changes.InvitationChanged) -> Facts:
    details = {"invitation_ids": [change.invitation.id], "role": int(change.invitation.role)}
    yield Fact("invitation_link_changed", None, details)


def _invitations_ended(before: Before, change: changes.InvitationsEnded) -> Facts:
    if before.is_routine:
        return
    details = {"invitation_ids": list(change.invitation_ids[:MAX_LISTED])}
    is_used = change.status is InvitationStatus.USED
    yield Fact("invitation_used" if is_used else "invitation_revoked", None, details)


def _export_set(before: Before, change: changes.DataExportSet) -> Facts:
    export = change.export
    old = before.state.data_exports.get(export.id)
    details = {"export_id": export.id, "kind": export.kind.value}
    if old is None:
        yield Fact("export_requested", export.user_id, details)
    elif export.finished_at and not old.finished_at:
        yield Fact("export_finished", export.user_id, details)
    elif export.deleted_at and not old.deleted_at:
        yield Fact("export_deleted", export.user_id, details)


def _import_set(before: Before, change: changes.DataImportSet) -> Facts:
    data_import = change.data_import
    old = before.state.data_imports.get(data_import.id)
    if old is None or data_import.state is not old.state:
        details = {"import_id": data_import.id, "kind": data_import.kind.value}
        yield Fact(_IMPORTS[data_import.state], data_import.started_by, details)


_IMPORTS: Final[Mapping[ImportState, AuditKind]] = {
    ImportState.CHECKING: "import_requested",
    ImportState.CHECKED: "import_checked",
    ImportState.IMPORTING: "import_started",
    ImportState.FINISHED: "import_finished",
    ImportState.FAILED: "import_failed",
    ImportState.CANCELED: "import_canceled",
}


# Channels and groups


_UNSAID_OF_CHANNELS: Final = frozenset(
    {
        *("description", "rendered_description", "first_message_id", "last_message_at"),
        *("read_until", "is_recently_active"),
    }
)


def _channel(before: Before, channel_id: int) -> dict[str, Any]:
    channel = before.state.channels.get(channel_id)
    return {"channel_id": channel_id, "channel": channel.name if channel else ""}


def _channel_created(before: Before, change: changes.ChannelCreated) -> Facts:
    channel = change.channel
    details = {"channel_id": channel.id, "channel": channel.name, "is_private": channel.is_private}
    return [Fact("channel_created", None, details)]


def _channel_changed(before: Before, change: changes.ChannelChanged) -> Facts:
    channel = before.state.channels[change.channel_id]
    different = _differences(channel, change.values, but=_UNSAID_OF_CHANNELS)
    if different and not (before.is_routine and different.keys() <= {"is_recently_active"}):
        yield Fact(
            "channel_archived" if change.values.get("is_archived") else "channel_changed",
            None,
            {**_channel(before, channel.id), "changes": different},
        )


def _subscribed(before: Before, change: changes.Subscribed) -> Facts:
    channel = before.state.channels.get(change.channel_id)
    if channel is not None and channel.is_private:
        yield from _about(
            "channel_members_added", change.user_ids, _channel(before, change.channel_id)
        )


def _unsubscribed(before: Before, change: changes.Unsubscribed) -> Facts:
    channel = before.state.channels.get(change.channel_id)
    if channel is not None and channel.is_private:
        yield from _about(
            "channel_members_removed", change.user_ids, _channel(before, change.channel_id)
        )


def _group(before: Before, group_id: int) -> dict[str, Any]:
    group = before.state.groups.get(group_id)
    return {"group_id": group_id, "group": group.name if group else ""}


def _group_created(before: Before, change: changes.UserGroupCreated) -> Facts:
    group = change.group
    details = {"group_id": group.id, "group": group.name}
    yield Fact("group_created", None, details)
    yield from _about("group_members_added", group.members, details)


def _group_changed(before: Before, change: changes.UserGroupChanged) -> Facts:
    group = before.state.groups[change.group_id]
    different = _differences(group, change.values, but=frozenset({"description"}))
    if different:
        yield Fact("group_changed", None, {**_group(before, group.id), "changes": different})


def _members_changed(before: Before, change: changes.UserGroupMembersChanged) -> Facts:
    details = _group(before, change.group_id)
    yield from _about("group_members_added", change.added, details)
    yield from _about("group_members_removed", change.removed, details)
    for some in _parts(change.added_groups):
        yield Fact("group_members_added", None, {**details, "subgroup_ids": some})
    for some in _parts(change.removed_groups):
        yield Fact("group_members_removed", None, {**details, "subgroup_ids": some})


# Deletions


def _messages_deleted(before: Before, change: changes.MessagesDeleted) -> Facts:
    if before.is_routine:
        return
    place = {} if change.channel_id is None else _channel(before, change.channel_id)
    for some in _parts(change.message_ids):
        yield Fact("messages_deleted", None, {**place, "message_ids": some})


def _file_deleted(before: Before, change: changes.AttachmentRemoved) -> Facts:
    if not before.is_routine:
        yield Fact("file_deleted", change.user_id, {"file_id": change.attachment_id})


AUDITED: Final[Mapping[type[Change], Describe]] = {
    changes.SessionBegun: _session_begun,
    changes.SessionsEnded: _sessions_ended,
    changes.CredentialChanged: _credential_changed,
    changes.AccessKeyMade: _key_made,
    changes.AccessKeysEnded: _keys_ended,
    changes.IdentityLinked: _identity_linked,
    changes.IdentitiesUnlinked: _identities_unlinked,
    changes.SecondFactorAdded: _factor_added,
    changes.SecondFactorsRemoved: _factors_removed,
    changes.RecoveryCodesChanged: _codes_changed,
    changes.RecoveryCodeUsed: _account_fact("recovery_code_used"),
    changes.ConfirmationAsked: _confirmation_asked,
    changes.UserCreated: _user_created,
    changes.UserChanged: _user_changed,
    changes.UserDeactivated: _account_fact("account_deactivated"),
    changes.UserReactivated: _account_fact("account_reactivated"),
    changes.RealmCreated: _simple("organization_created"),
    changes.RealmChanged: _realm_changed,
    changes.RealmDefaultsChanged: _defaults_changed,
    changes.RealmDeactivated: _simple("organization_deactivated"),
    changes.RealmReactivated: _simple("organization_reactivated"),
    changes.QueuesEnded: _simple("event_queues_ended"),
    changes.DomainAdded: _domain_set("domain_added"),
    changes.DomainChanged: _domain_set("domain_changed"),
    changes.DomainRemoved: _domain_removed,
    changes.InvitationsMade: _invited,
    changes.InvitationChanged: _invitation_changed,
    changes.InvitationsEnded: _invitations_ended,
    changes.DataExportSet: _export_set,
    changes.DataImportSet: _import_set,
    changes.ChannelCreated: _channel_created,
    changes.ChannelChanged: _channel_changed,
    changes.Subscribed: _subscribed,
    changes.Unsubscribed: _unsubscribed,
    changes.UserGroupCreated: _group_created,
    changes.UserGroupChanged: _group_changed,
    changes.UserGroupMembersChanged: _members_changed,
    changes.MessagesDeleted: _messages_deleted,
    changes.AttachmentRemoved: _file_deleted,
}
"""The function that describes each kind of change."""

NOT_AUDITED: Final[frozenset[type[Change]]] = frozenset(
    {
        # Data from directories. Deactivations and changes of accounts are audited.
        changes.IdentityRevised,
        # Messages, and changes to them.
        *(changes.MessageSent, changes.MessageEdited, changes.PreviewsGivenUp),
        *(changes.MessagesMoved, changes.TopicMoveStarted, changes.TopicMoveEnded),
        *(changes.FlagsChanged, changes.MessagesRead, changes.MessagesUnread),
        *(changes.ReadStateImported, changes.ReactionAdded, changes.ReactionRemoved),
        *(changes.SubmessageAdded, changes.MessagePinned, changes.MessageUnpinned),
        *(changes.MessageScheduled, changes.ScheduledMessageChanged),
        *(changes.ScheduledMessageRemoved, changes.ReminderSet, changes.ReminderRemoved),
        *(changes.DraftsCreated, changes.DraftChanged, changes.DraftDeleted),
        *(changes.SnippetCreated, changes.SnippetChanged, changes.SnippetDeleted),
        *(changes.AttachmentAdded, changes.FilesDeleted),
        # Personal choices.
        *(changes.SettingsChanged, changes.SubscriptionChanged, changes.UserTopicChanged),
        *(changes.AlertWordsChanged, changes.UserMuted, changes.UserUnmuted),
        *(changes.QuietTimesChanged, changes.StatusChanged, changes.ProfileChanged),
        *(changes.NavigationViewAdded, changes.NavigationViewChanged),
        *(changes.CallAccountConnected, changes.CallAccountDisconnected),
        *(changes.NavigationViewRemoved, changes.OnboardingStepTaken),
        *(changes.DeviceAdded, changes.DeviceChanged, changes.DeviceRemoved),
        changes.PushTokenAdded,
        *(changes.PushTokensRemoved, changes.PushSubscribed, changes.PushUnsubscribed),
        # The organization's appearance.
        *(changes.CustomEmojiAdded, changes.CustomEmojiDeactivated),
        *(changes.LinkifierSet, changes.LinkifierRemoved, changes.LinkifiersOrdered),
        *(changes.PlaygroundAdded, changes.PlaygroundRemoved),
        *(changes.DefaultChannelGroupSet, changes.DefaultChannelGroupRemoved),
        *(changes.ChannelFolderCreated, changes.ChannelFolderChanged),
        *(changes.ChannelFoldersReordered, changes.BannerPosted, changes.BannersEnded),
        *(changes.ProfileFieldCreated, changes.ProfileFieldChanged),
        *(changes.ProfileFieldsOrdered, changes.ProfileFieldDeleted),
        *(changes.FeedAdded, changes.FeedChanged, changes.FeedRemoved),
        # Effects of other changes or of time, and records of use.
        *(changes.UserVisibilityChanged, changes.FullMembersChanged, changes.FeedRead),
        *(changes.SessionUsed, changes.SessionConfirmed, changes.AccessKeyUsed),
        *(changes.SecondFactorPrepared, changes.SecondFactorUsed),
        *(changes.InvitationSentAgain, changes.InvitationsRedacted),
        *(changes.ConfirmationsEnded, changes.DataExportsRemoved, changes.DataImportsRemoved),
        changes.EventIdsUsedUp,
    }
)
"""Kinds of changes that the audit log leaves out."""
