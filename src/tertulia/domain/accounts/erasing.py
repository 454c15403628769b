"""Deleting accounts: deactivating them for good, and erasing their person's data."""

import msgspec

from tertulia.domain.accounts import admission, deactivation, personal, profiles, users
from tertulia.model.changes import (
    AlertWordsChanged,
    AnyChange,
    ConfirmationsEnded,
    CredentialChanged,
    DeviceRemoved,
    DraftDeleted,
    PushTokensRemoved,
    QuietTimesChanged,
    ReminderRemoved,
    ScheduledMessageRemoved,
    SnippetDeleted,
)
from tertulia.model.errors import Refused
from tertulia.model.personal import QuietTimes
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def delete(context: CommandContext, user_id: int, host: str) -> Decision[str]:
    """Deactivate an account that the actor manages, and erase its name, address, picture, profile,
    status, and private records. `host` is the host of its new address. Return the name of its
    picture, or an empty string. Its messages stay.

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
    changes += admission.invitations_accepted(context.state, target.address)
    changes += admission.invitations_redacted(context.state, target.address)
    changes += [*users.changed(context, target, blank), *_emptied(context, target)]
    changes += _own(context.state, target.id)
    return Decision(target.avatar_file, changes)


def _own(state: State, user_id: int) -> list[AnyChange]:
    """Return the changes that delete the account's private records."""
    changes: list[AnyChange] = []
    changes += [
        DraftDeleted(user_id=user_id, draft_id=one.id) for one in state.drafts.of_user[user_id]
    ]
    changes += [
        SnippetDeleted(user_id=user_id, snippet_id=one.id)
        for one in state.snippets.of_user[user_id]
    ]
    changes += [
        ScheduledMessageRemoved(user_id=user_id, scheduled_id=one.id)
        for one in state.scheduled_messages.of_user[user_id]
    ]
    changes += [
        ReminderRemoved(user_id=user_id, reminder_id=one.id)
        for one in state.reminders.of_user[user_id]
    ]
    if user_id in state.alert_words:
        changes.append(AlertWordsChanged(user_id=user_id, words=()))
    if user_id in state.quiet_times:
        changes.append(QuietTimesChanged(quiet_times=QuietTimes(user_id=user_id)))
    if tokens := state.push_tokens.of_user[user_id]:
        ids = tuple(sorted(one.id for one in tokens))
        changes.append(PushTokensRemoved(user_id=user_id, token_ids=ids))
    changes += [
        DeviceRemoved(user_id=user_id, device_id=one.id) for one in state.devices.of_user[user_id]
    ]
    return changes


def _emptied(context: CommandContext, target: User) -> list[AnyChange]:
    state = context.state
    changes: list[AnyChange] = []
    fields = [value.field_id for value in state.profile_values.of_user[target.id]]
    if fields:
        changes += profiles.emptied(context, target, fields)
    if target.id in state.statuses:
        changes.append(personal.status_removed(state, target.id))
    pending = tuple(sorted(one.id for one in state.confirmations if one.user_id == target.id))
    if pending:
        changes.append(ConfirmationsEnded(confirmation_ids=pending))
    credential = state.credentials[target.id]
    bare = msgspec.structs.replace(
        credential, password_hash=None, adopts_key=False, adopts_password=False
    )
    if bare != credential:
        changes.append(CredentialChanged(credential=bare, same_key=True))
    return changes
