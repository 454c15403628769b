"""What people say that they are doing."""

from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts import personal_settings
from tertulia.domain.organization import emoji
from tertulia.model.changes import AnyChange, StatusChanged
from tertulia.model.errors import Refused
from tertulia.model.profiles import NO_EMOJI, UserStatus
from tertulia.model.reactions import Emoji, EmojiKind
from tertulia.model.users import User
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

MAX_STATUS_TEXT = 60
LATEST_END: Final = 366 * 86400
"""Seconds from now on within which a status ends, if it does."""
AT_ONCE: Final = 500
"""Statuses that are taken away by one command; the others follow."""


class NewStatus(Struct, frozen=True, kw_only=True):
    """What is to be new; None stays as it is. An empty text or emoji name takes it away."""

    text: str | None = None
    emoji_name: str | None = None
    emoji_code: str | None = None
    emoji_kind: EmojiKind | None = None
    ends_at: int | None = None
    """When it is taken away, in UNIX seconds; 0 for never. None leaves it as it is where the status
    stays what it was; a new one stays until it is changed."""
    invisible: bool | None = None
    """Of old: the opposite of the setting `presence_enabled`."""


def change_own(moment: Moment, new: NewStatus) -> Decision[bool]:
    """Change the actor's own status. Whether the actor's presence shall be seen is new, is the
    result. Refused where nothing is given, for a text too long, an emoji unknown, and an end
    that is over, more than a year away, or of no status."""
    return _change(moment, moment.actor, new)


def change(moment: Moment, user_id: int, new: NewStatus) -> Decision[bool]:
    """The same for somebody else, by an administrator (NotPermitted otherwise)."""
    permissions.require_administrator(moment.state, moment.actor)
    user = permissions.visible_user(moment.state, moment.actor, user_id)
    permissions.require(user.is_active and not user.is_system_bot, "This user doesn't exist.")
    return _change(moment, user, new)


def next_end(state: State, now: float) -> float | None:
    """When the next status ends by itself."""
    first = state.statuses.by_end.first
    return None if first is None else first.ends_at


def end(moment: Moment) -> Decision[None]:
    """Take away the statuses that are over."""
    over = moment.state.statuses.by_end.between(None, moment.now)
    return Decision(None, [taken_away(moment.state, user_id) for user_id in over[:AT_ONCE]])


def taken_away(state: State, user_id: int) -> StatusChanged:
    """The change that leaves an account, which has a status, without one."""
    ends_at = 0 if state.statuses[user_id].ends_at else None
    return StatusChanged(user_id=user_id, text="", emoji=NO_EMOJI, ends_at=ends_at)


def _change(moment: Moment, user: User, new: NewStatus) -> Decision[bool]:
    says_nothing = new.text is None and new.ends_at is None and _says_nothing_of_emoji(new)
    if says_nothing and new.invisible is None:
        raise Refused("Nothing to change: the request has no new value.")
    before = moment.state.statuses.get(user.id) or UserStatus(user_id=user.id)
    text = None if new.text is None else _text(new.text)
    chosen = None if _says_nothing_of_emoji(new) else _emoji(moment.state, new)
    changed = StatusChanged(
        user_id=user.id,
        text=None if text == before.text else text,
        emoji=None if chosen == (before.emoji or NO_EMOJI) else chosen,
    )
    ends_at = _end(moment, before, changed, new.ends_at)
    changed = msgspec.structs.replace(
        changed, ends_at=None if ends_at == before.ends_at else ends_at
    )
    changes: list[AnyChange] = []
    if changed != StatusChanged(user_id=user.id):
        changes.append(changed)
    presence: list[AnyChange] = []
    if new.invisible is not None:
        enabled = {"presence_enabled": not new.invisible}
        presence = personal_settings.settings_changed(moment, user, enabled)
    return Decision(bool(presence), [*changes, *presence])


def _end(moment: Moment, before: UserStatus, changed: StatusChanged, wanted: int | None) -> int:
    """When the status ends that it is with the change."""
    text = before.text if changed.text is None else changed.text
    emoji = (before.emoji or NO_EMOJI) if changed.emoji is None else changed.emoji
    is_new = changed.text is not None or changed.emoji is not None
    if not wanted:
        # An end that was meant for another status does not take this one away.
        return before.ends_at if wanted is None and not is_new else 0
    if not text and emoji == NO_EMOJI:
        raise Refused("There's no status to set an end time for.")
    if not moment.now < wanted <= moment.now + LATEST_END:
        raise Refused("A status must end within a year from now.")
    return wanted


def _says_nothing_of_emoji(new: NewStatus) -> bool:
    return new.emoji_name is None and new.emoji_code is None and new.emoji_kind is None


def _text(text: str) -> str:
    found = text.strip()
    if len(found) > MAX_STATUS_TEXT:
        raise Refused(f"A status can have at most {MAX_STATUS_TEXT} characters.")
    if not names.is_printable(found):
        raise Refused("A status can't contain invisible characters.")
    return found


def _emoji(state: State, new: NewStatus) -> Emoji:
    if new.emoji_name is None:
        raise Refused("An emoji's code and type require its name.")
    if not new.emoji_name:
        if new.emoji_code:
            raise Refused("An emoji's code requires its name.")
        return NO_EMOJI
    return emoji.chosen(state, new.emoji_name, new.emoji_code or None, new.emoji_kind)
