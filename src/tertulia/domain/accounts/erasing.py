"""Deleting accounts permanently, and erasing personal data."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from tertulia.domain.accounts import (
    admission,
    data_exports,
    deactivation,
    devices,
    identities,
    personal,
    profiles,
    second_factors,
    users,
)
from tertulia.domain.organization import exports, imports
from tertulia.model.changes import (
    AlertWordsChanged,
    AnyChange,
    AttachmentRemoved,
    CallAccountDisconnected,
    ConfirmationsEnded,
    CredentialChanged,
    DataExportsRemoved,
    DraftDeleted,
    NavigationViewRemoved,
    PushTokensRemoved,
    QuietTimesChanged,
    ReminderRemoved,
    ScheduledMessageRemoved,
    SettingsChanged,
    SnippetDeleted,
    UserTopicChanged,
    UserUnmuted,
)
from tertulia.model.errors import Refused
from tertulia.model.exports import ExportKind
from tertulia.model.personal import QuietTimes
from tertulia.model.settings import declared_settings
from tertulia.model.user_topics import Visibility
from tertulia.model.users import PersonalSettings, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

BATCH_SIZE: Final = 200
"""The number of records that one command deletes."""


def clear(context: CommandContext, user_id: int) -> Decision[bool]:
    """Delete up to `BATCH_SIZE` private records of a deactivated account that the actor manages,
    and its files that no message links. Return whether more may be left. Raise Refused as
    `delete`."""
    state, target = context.state, users.managed_user(context, user_id)
    if target.is_active:
        raise Refused("Deactivate this account first.")
    changes = [*islice(_clearing_changes(state, target), BATCH_SIZE)]
    return Decision(len(changes) == BATCH_SIZE, changes)


def clear_files(context: CommandContext, user_id: int) -> Decision[bool]:
    """Delete up to `BATCH_SIZE` files of an account that the actor manages, and of its bots. Return
    whether more may be left. Raise Refused as `delete`."""
    target = users.managed_user(context, user_id)
    changes = [*islice(_file_removal_changes(context.state, target), BATCH_SIZE)]
    return Decision(len(changes) == BATCH_SIZE, changes)


def _clearing_changes(state: State, target: User) -> Iterator[AnyChange]:
    user_id = target.id
    for topic in state.user_topics.of_user[user_id]:
        yield UserTopicChanged(
            user_id=user_id,
            channel_id=topic.channel_id,
            topic=topic.name,
            visibility=Visibility.INHERIT,
            was=topic.visibility,
            at=topic.changed_at,
        )
    for muted in state.muted_users.of_user[user_id]:
        yield UserUnmuted(user_id=user_id, muted_id=muted.muted_id)
    for view in state.navigation_views.of_user[user_id]:
        yield NavigationViewRemoved(user_id=user_id, view_id=view.id, fragment=view.fragment)
    for attachment in state.uploads.of_user[user_id]:
        if not state.uploads.claims_of.count(attachment.id):
            yield AttachmentRemoved(attachment_id=attachment.id, user_id=user_id)


def _file_removal_changes(state: State, target: User) -> Iterator[AnyChange]:
    for account_id in state.users.accounts_of(target):
        for attachment in state.uploads.of_user[account_id]:
            yield AttachmentRemoved(attachment_id=attachment.id, user_id=account_id)


def delete(context: CommandContext, user_id: int, host: str) -> Decision[str]:
    """Deactivate an account that the actor manages, and erase its name, address, avatar, profile,
    status, settings, and private records, the addresses that it invited, and the organization's
    data exports, which contain it. Messages stay.

    `host` is the host of its new address. Return the name of its avatar file, or an empty string.
    Raise Refused as `deactivation.deactivate`, and if it's already deleted.
    """
    target = users.managed_user(context, user_id)
    if target.is_deleted:
        raise Refused("This account is already deleted.")
    changes: list[AnyChange] = []
    if target.is_active:
        changes += deactivation.deactivate(context, user_id).changes
    blank = {
        "is_deleted": True,
        "full_name": f"Deleted user {target.id}",
        "address": f"deleteduser{target.id}@{host}",
        "avatar_source": "J",
        "avatar_file": "",
        "avatar_version": target.avatar_version + 1,
        "timezone": "",
    }
    changes += admission.invitation_acceptance_changes(context.state, target.address)
    changes += admission.invitation_redaction_changes(context.state, target)
    changes += [
        *users.account_changes(context, target, blank),
        *_profile_removal_changes(context, target),
    ]
    changes += _record_changes(context.state, target.id)
    for export in filter(lambda export: export.path, exports.organization_exports(context.state)):
        changes += data_exports.deletion_changes(context, export)
    return Decision(target.avatar_file, changes)


def _record_changes(state: State, user_id: int) -> list[AnyChange]:
    """Return the changes that delete the account's private records."""
    changes: list[AnyChange] = [*identities.unlink_changes(state, user_id)]
    changes += [
        DraftDeleted(user_id=user_id, draft_id=draft.id) for draft in state.drafts.of_user[user_id]
    ]
    changes += [
        SnippetDeleted(user_id=user_id, snippet_id=snippet.id)
        for snippet in state.snippets.of_user[user_id]
    ]
    changes += [
        ScheduledMessageRemoved(user_id=user_id, scheduled_id=scheduled.id)
        for scheduled in state.scheduled_messages.of_user[user_id]
    ]
    changes += [
        ReminderRemoved(user_id=user_id, reminder_id=reminder.id)
        for reminder in state.reminders.of_user[user_id]
    ]
    if own := state.data_exports.of_user[user_id]:
        export_ids = tuple(sorted(export.id for export in own if export.kind is ExportKind.PERSON))
        changes += [DataExportsRemoved(export_ids=export_ids)] if export_ids else []
    if user_id in state.alert_words:
        changes.append(AlertWordsChanged(user_id=user_id, words=()))
    if user_id in state.call_accounts:
        changes.append(CallAccountDisconnected(user_id=user_id))
    if user_id in state.quiet_times:
        changes.append(QuietTimesChanged(quiet_times=QuietTimes(user_id=user_id)))
    factors = list(state.second_factors.of_user[user_id])
    changes += second_factors.removal_changes(state, user_id, factors)
    if tokens := state.push_tokens.of_user[user_id]:
        ids = tuple(sorted(token.id for token in tokens))
        changes.append(PushTokensRemoved(user_id=user_id, token_ids=ids))
    for device in state.devices.of_user[user_id]:
        changes += devices.removal_changes(state, device)
    return [*changes, *imports.sample_removal_changes(state)]


def _profile_removal_changes(context: CommandContext, target: User) -> list[AnyChange]:
    state = context.state
    changes: list[AnyChange] = []
    fields = [value.field_id for value in state.profile_values.of_user[target.id]]
    if fields:
        changes += profiles.profile_removal_changes(context, target, fields)
    if target.id in state.statuses:
        changes.append(personal.status_removal_change(state, target.id))
    pending = tuple(
        sorted(
            confirmation.id
            for confirmation in state.confirmations
            if confirmation.user_id == target.id
        )
    )
    if pending:
        changes.append(ConfirmationsEnded(confirmation_ids=pending))
    settings = state.settings[target.id]
    # With the address, its visibility doesn't matter, and changing it would send events.
    names = declared_settings(PersonalSettings).keys() - {"email_address_visibility"}
    was = {name: getattr(settings, name) for name in sorted(names)}
    blank = PersonalSettings(user_id=target.id)
    was = {name: value for name, value in was.items() if value != getattr(blank, name)}
    if was:
        values = {name: getattr(blank, name) for name in was}
        changes.append(SettingsChanged(user_id=target.id, values=values, was=was))
    credential = state.credentials[target.id]
    bare = msgspec.structs.replace(
        credential, password_hash=None, adopts_key=False, adopts_password=False
    )
    if bare != credential:
        changes.append(CredentialChanged(credential=bare, same_key=True))
    return changes
