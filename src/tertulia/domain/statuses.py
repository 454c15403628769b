"""What people say that they are doing."""

from msgspec import Struct

from tertulia.domain import names, permissions, personal_settings
from tertulia.model.changes import AnyChange, StatusChanged
from tertulia.model.emoji import codes_by_name, names_by_code
from tertulia.model.errors import Refused
from tertulia.model.profiles import NO_EMOJI, EmojiKind, StatusEmoji, UserStatus
from tertulia.model.users import User
from tertulia.state.moment import Decision, Moment

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
    permissions.require_administrator(moment.actor)
    user = permissions.visible_user(moment.state, moment.actor, user_id, moment.now)
    permissions.require(user.is_active and not user.is_system_bot, "No such user")
    return _change(moment, user, new)


def _change(moment: Moment, user: User, new: NewStatus) -> Decision[bool]:
    if new.text is None and new.invisible is None and _says_nothing_of_emoji(new):
        raise Refused("Nothing was given that could be new.")
    before = moment.state.statuses.get(user.id) or UserStatus(user_id=user.id)
    text = None if new.text is None else _text(new.text)
    emoji = None if _says_nothing_of_emoji(new) else _emoji(new)
    changed = StatusChanged(
        user_id=user.id,
        text=None if text == before.text else text,
        emoji=None if emoji == before.emoji else emoji,
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


def _emoji(new: NewStatus) -> StatusEmoji:
    if new.emoji_name is None:
        raise Refused("An emoji's code and type need its name beside them.")
    if not new.emoji_name:
        if new.emoji_code:
            raise Refused("An emoji's code needs its name beside it.")
        return NO_EMOJI
    kind = new.emoji_kind or EmojiKind.UNICODE
    if kind is EmojiKind.EXTRA:
        known = new.emoji_name == "zulip" and new.emoji_code in {None, "zulip"}
        code = "zulip"
    else:
        code = codes_by_name().get(new.emoji_name, "")
        given = new.emoji_code or code
        known = kind is EmojiKind.UNICODE and new.emoji_name in names_by_code().get(given, ())
    if not known:
        raise Refused("There is no such emoji.")
    return StatusEmoji(new.emoji_name, code, kind)
