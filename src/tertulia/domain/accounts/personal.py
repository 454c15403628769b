"""Alert words, muted users, statuses, quiet times, and profile pictures."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import personal_settings, users
from tertulia.domain.accounts.users import require_person
from tertulia.domain.notifications import quiet
from tertulia.domain.organization import emoji as emoji
from tertulia.model.changes import (
    AlertWordsChanged,
    AnyChange,
    QuietTimesChanged,
    StatusChanged,
    UserMuted,
    UserUnmuted,
)
from tertulia.model.errors import Refused
from tertulia.model.personal import MutedUser, QuietHours, QuietTimes
from tertulia.model.profiles import NO_EMOJI, UserStatus
from tertulia.model.reactions import Emoji, EmojiKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.personal import compared
from tertulia.state.state import State

MAX_LENGTH: Final = 100
MAX_ALERT_WORDS: Final = 1000
"""Per account."""


def own_alert_words(context: CommandContext) -> Decision[list[str]]:
    """Return the actor's alert words."""
    return Decision(list(_present(context)))


def add_alert_words(context: CommandContext, words: Sequence[str]) -> Decision[list[str]]:
    """Add alert words, ignoring case, and return all of them. Raise Refused for words that are too
    long, and for too many."""
    present = _present(context)
    known = {compared(word): word for word in present}
    for word in _tidy(words):
        if len(word) > MAX_LENGTH:
            raise Refused(f"Alert words can have at most {MAX_LENGTH} characters.")
        known.setdefault(compared(word), word)
    if len(known) > MAX_ALERT_WORDS:
        raise Refused(f"You can have at most {MAX_ALERT_WORDS} alert words.")
    return _become(context, present, tuple(known.values()))


def remove_alert_words(context: CommandContext, words: Sequence[str]) -> Decision[list[str]]:
    """Remove alert words, ignoring case and unknown words. Return the remaining ones."""
    present = _present(context)
    gone = {compared(word) for word in _tidy(words)}
    return _become(context, present, tuple(w for w in present if compared(w) not in gone))


def _present(context: CommandContext) -> tuple[str, ...]:
    record = context.state.alert_words.get(context.actor.id)
    return record.words if record else ()


def _tidy(words: Sequence[str]) -> list[str]:
    return [word.strip() for word in words if word.strip()]


def _become(
    context: CommandContext, present: tuple[str, ...], words: tuple[str, ...]
) -> Decision[list[str]]:
    if words == present:
        return Decision(list(present))
    return Decision(list(words), (AlertWordsChanged(user_id=context.actor.id, words=words),))


def mute_user(context: CommandContext, user_id: int) -> Decision[None]:
    """Mute a user. Raise Refused for the actor, unknown users, and users who are already muted."""
    state, actor = context.state, context.actor
    user = permissions.visible_user(state, actor, user_id)
    if user.id == actor.id:
        raise Refused("You can't mute yourself.")
    if (actor.id, user.id) in state.muted_users:
        raise Refused("This user is already muted.")
    muted = MutedUser(user_id=actor.id, muted_id=user.id, since=int(context.now))
    return Decision(None, (UserMuted(muted=muted),))


def unmute_user(context: CommandContext, user_id: int) -> Decision[None]:
    """Unmute a user. Raise Refused if the user isn't muted."""
    actor = context.actor
    if (actor.id, user_id) not in context.state.muted_users:
        raise Refused("This user isn't muted.")
    return Decision(None, (UserUnmuted(user_id=actor.id, muted_id=user_id),))


def muted_either_way(state: State, user_id: int) -> set[int]:
    """Return the users whom this user muted, and those who muted this user."""
    return {muted.muted_id for muted in state.muted_users.of_user[user_id]} | {
        muted.user_id for muted in state.muted_users.of_muted[user_id]
    }


MAX_STATUS_TEXT = 60
LATEST_END: Final = 366 * 86400
"""The maximum time until a status ends, in seconds."""
STATUS_BATCH: Final = 500
"""The number of statuses that one command removes."""


class NewStatus(Struct, frozen=True, kw_only=True):
    """New values for a status. None keeps the current value, and an empty text or emoji name
    removes it."""

    text: str | None = None
    emoji_name: str | None = None
    emoji_code: str | None = None
    emoji_kind: EmojiKind | None = None
    ends_at: int | None = None
    """When the status is removed, in UNIX seconds, or 0 for never. With None, a changed status
    never ends, and an unchanged status keeps its end."""
    invisible: bool | None = None
    """Deprecated: the opposite of the setting `presence_enabled`."""


def change_own_status(context: CommandContext, new: NewStatus) -> Decision[bool]:
    """Change the actor's own status. Return whether `presence_enabled` changed. Raise Refused for
    empty requests, long texts, unknown emoji, and an end that is past, more than a year away, or
    without a status."""
    return _change(context, context.actor, new)


def change_status(context: CommandContext, user_id: int, new: NewStatus) -> Decision[bool]:
    """Change someone else's status as an administrator. Otherwise as `change_own_status`."""
    permissions.require_administrator(context.state, context.actor)
    user = permissions.visible_user(context.state, context.actor, user_id)
    permissions.require(user.is_active and not user.is_system_bot, "This user doesn't exist.")
    return _change(context, user, new)


def next_status_end(state: State, now: float) -> float | None:
    """Return when the next status ends, in UNIX seconds."""
    first = state.statuses.by_end.first
    return None if first is None else first.ends_at


def end_status(context: CommandContext) -> Decision[None]:
    """Remove statuses that have ended."""
    over = context.state.statuses.by_end.between(None, context.now)
    return Decision(
        None, [status_removal_change(context.state, user_id) for user_id in over[:STATUS_BATCH]]
    )


def status_removal_change(state: State, user_id: int) -> StatusChanged:
    """Return the change that removes an account's status."""
    ends_at = 0 if state.statuses[user_id].ends_at else None
    return StatusChanged(user_id=user_id, text="", emoji=NO_EMOJI, ends_at=ends_at)


def _change(context: CommandContext, user: User, new: NewStatus) -> Decision[bool]:
    says_nothing = new.text is None and new.ends_at is None and _says_nothing_of_emoji(new)
    if says_nothing and new.invisible is None:
        raise Refused("Nothing to change: the request has no new value.")
    before = context.state.statuses.get(user.id) or UserStatus(user_id=user.id)
    text = None if new.text is None else _text(new.text)
    chosen = None if _says_nothing_of_emoji(new) else _emoji(context.state, new)
    changed = StatusChanged(
        user_id=user.id,
        text=None if text == before.text else text,
        emoji=None if chosen == (before.emoji or NO_EMOJI) else chosen,
    )
    ends_at = _end(context, before, changed, new.ends_at)
    changed = msgspec.structs.replace(
        changed, ends_at=None if ends_at == before.ends_at else ends_at
    )
    changes: list[AnyChange] = []
    if changed != StatusChanged(user_id=user.id):
        changes.append(changed)
    presence: list[AnyChange] = []
    if new.invisible is not None:
        enabled = {"presence_enabled": not new.invisible}
        presence = personal_settings.settings_changes(context, user, enabled)
    return Decision(bool(presence), [*changes, *presence])


def _end(
    context: CommandContext, before: UserStatus, changed: StatusChanged, wanted: int | None
) -> int:
    """Return when the changed status ends, in UNIX seconds."""
    text = before.text if changed.text is None else changed.text
    emoji = (before.emoji or NO_EMOJI) if changed.emoji is None else changed.emoji
    is_new = changed.text is not None or changed.emoji is not None
    if not wanted:
        # The end of the previous status must not remove the new one.
        return before.ends_at if wanted is None and not is_new else 0
    if not text and emoji == NO_EMOJI:
        raise Refused("You don't have a status, so you can't set an end time for it.")
    if not context.now < wanted <= context.now + LATEST_END:
        raise Refused("A status must end within a year from now.")
    return wanted


def _says_nothing_of_emoji(new: NewStatus) -> bool:
    return new.emoji_name is None and new.emoji_code is None and new.emoji_kind is None


def _text(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > MAX_STATUS_TEXT:
        raise Refused(f"A status can have at most {MAX_STATUS_TEXT} characters.")
    if not names.is_printable(stripped):
        raise Refused("A status can't contain invisible characters.")
    return stripped


def _emoji(state: State, new: NewStatus) -> Emoji:
    if new.emoji_name is None:
        raise Refused("An emoji's code and type require its name.")
    if not new.emoji_name:
        if new.emoji_code:
            raise Refused("An emoji's code requires its name.")
        return NO_EMOJI
    return emoji.find_emoji(state, new.emoji_name, new.emoji_code or None, new.emoji_kind)


LONGEST_PAUSE: Final = 366 * 86400
"""Seconds."""
MAX_HOURS: Final = 7
"""Per account."""
MAX_QUIET_CHANNELS: Final = 100
"""Per set of quiet hours."""
_DAY_MINUTES: Final = 1440


def change_quiet_times(
    context: CommandContext,
    paused_until: int | UnsetType = UNSET,
    hours: Sequence[QuietHours] | UnsetType = UNSET,
) -> Decision[None]:
    """Pause the actor's notifications until that UNIX time (0, or a past time, to resume), or set
    weekly quiet hours.

    Raise NotPermitted for bots; Refused for a pause longer than a year, invalid hours, channels
    that the actor can't see, more than `MAX_HOURS`, and more than `MAX_QUIET_CHANNELS` in one.
    """
    require_person(context.actor)
    user_id = context.actor.id
    before = context.state.quiet_times.get(user_id) or QuietTimes(user_id=user_id)
    after = before
    if paused_until is not UNSET:
        if not 0 <= paused_until <= context.now + LONGEST_PAUSE:
            raise Refused("You can pause notifications for at most a year.")
        is_over = paused_until <= context.now
        after = msgspec.structs.replace(after, paused_until=0 if is_over else paused_until)
    if hours is not UNSET:
        if len(hours) > MAX_HOURS:
            raise Refused(f"You can have at most {MAX_HOURS} sets of quiet hours.")
        checked = tuple(map(_checked, hours))
        # Channels that are already listed stay, so that losing access to one blocks no change.
        listed = {channel_id for item in before.hours for channel_id in item.channel_ids}
        for item in checked:
            for channel_id in item.channel_ids:
                if channel_id not in listed:
                    channel_access.visible_channel(
                        context.state, context.actor, channel_id=channel_id
                    )
        if quiet.leave_no_time(checked):
            raise Refused(
                "Quiet hours can't cover the whole week. To stop notifications completely,"
                " turn them off."
            )
        after = msgspec.structs.replace(after, hours=checked)
    return Decision(None, () if after == before else (QuietTimesChanged(quiet_times=after),))


def _checked(hours: QuietHours) -> QuietHours:
    days = tuple(sorted(set(hours.days)))
    if not days or not 0 <= days[0] <= days[-1] <= 6:
        raise Refused("Choose at least one day for quiet hours, from 0 (Monday) to 6 (Sunday).")
    if not (0 <= hours.begin < _DAY_MINUTES and 0 < hours.end <= _DAY_MINUTES):
        raise Refused(
            "Quiet hours must begin and end within one day. Give both times in minutes after"
            " midnight."
        )
    if hours.begin == hours.end:
        raise Refused("Quiet hours must end at a different time than they begin.")
    channel_ids = tuple(sorted(set(hours.channel_ids)))
    if len(channel_ids) > MAX_QUIET_CHANNELS:
        raise Refused(f"Quiet hours can name at most {MAX_QUIET_CHANNELS} channels.")
    return msgspec.structs.replace(hours, days=days, channel_ids=channel_ids)


def check_own_avatar(context: CommandContext) -> Decision[None]:
    """Raise Refused if the actor can't change their own picture."""
    permissions.require(
        permissions.is_administrator(context.state, context.actor)
        or not context.state.realm.avatar_changes_disabled,
        "This organization doesn't allow people to change their profile picture. Ask an"
        " administrator to change it.",
    )
    return Decision(None)


def change_own_avatar(context: CommandContext, file: str | None) -> Decision[str]:
    """Set the actor's avatar to an uploaded file, or (None) the default one. Return the name of the
    previously uploaded file, or an empty string. Raise as `check_own_avatar`."""
    check_own_avatar(context)
    actor = context.actor
    if file is None and not actor.avatar_file:
        return Decision("")
    return Decision(
        actor.avatar_file,
        users.account_changes(context, actor, avatar_values(context, actor, file)),
    )


def avatar_values(context: CommandContext, user: User, file: str | None) -> dict[str, Any]:
    """Return the changed fields of an account whose avatar becomes this file, as in
    `change_own_avatar`."""
    return {
        "avatar_source": context.state.realm.default_avatar_source if file is None else "U",
        "avatar_file": file or "",
        "avatar_version": user.avatar_version + 1,
    }
