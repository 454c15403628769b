"""What people say that they are doing."""

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


class NewStatus(Struct, frozen=True, kw_only=True):
    """What is to be new; None stays as it is. An empty text or emoji name takes it away."""

    text: str | None = None
    emoji_name: str | None = None
    emoji_code: str | None = None
    emoji_kind: EmojiKind | None = None
    invisible: bool | None = None
    """Of old: the opposite of the setting `presence_enabled`."""


def change_own(moment: Moment, new: NewStatus) -> Decision[bool]:
    """Change the actor's own status. Whether the actor's presence shall be seen is new, is the
    result. Refused where nothing is given, and for a text too long or an emoji unknown."""
    return _change(moment, moment.actor, new)


def change(moment: Moment, user_id: int, new: NewStatus) -> Decision[bool]:
    """The same for somebody else, by an administrator (NotPermitted otherwise)."""
    permissions.require_administrator(moment.state, moment.actor)
    user = permissions.visible_user(moment.state, moment.actor, user_id)
    permissions.require(user.is_active and not user.is_system_bot, "No such user")
    return _change(moment, user, new)


def _change(moment: Moment, user: User, new: NewStatus) -> Decision[bool]:
    if new.text is None and new.invisible is None and _says_nothing_of_emoji(new):
        raise Refused("Nothing was given that could be new.")
    before = moment.state.statuses.get(user.id) or UserStatus(user_id=user.id)
    text = None if new.text is None else _text(new.text)
    chosen = None if _says_nothing_of_emoji(new) else _emoji(moment.state, new)
    changed = StatusChanged(
        user_id=user.id,
        text=None if text == before.text else text,
        emoji=None if chosen == (before.emoji or NO_EMOJI) else chosen,
    )
    changes: list[AnyChange] = []
    if changed.text is not None or changed.emoji is not None:
        changes.append(changed)
    presence: list[AnyChange] = []
    if new.invisible is not None:
        enabled = {"presence_enabled": not new.invisible}
        presence = personal_settings.settings_changed(moment, user, enabled)
    return Decision(bool(presence), [*changes, *presence])


def _says_nothing_of_emoji(new: NewStatus) -> bool:
    return new.emoji_name is None and new.emoji_code is None and new.emoji_kind is None


def _text(text: str) -> str:
    found = text.strip()
    if len(found) > MAX_STATUS_TEXT:
        raise Refused(f"A status has at most {MAX_STATUS_TEXT} characters.")
    if not names.is_printable(found):
        raise Refused("A status cannot contain invisible characters.")
    return found


def _emoji(state: State, new: NewStatus) -> Emoji:
    if new.emoji_name is None:
        raise Refused("An emoji's code and type need its name beside them.")
    if not new.emoji_name:
        if new.emoji_code:
            raise Refused("An emoji's code needs its name beside it.")
        return NO_EMOJI
    return emoji.chosen(state, new.emoji_name, new.emoji_code or None, new.emoji_kind)
