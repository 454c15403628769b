"""What people say that they are doing, on the wire."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from tertulia.model.profiles import NO_EMOJI, EmojiKind, StatusEmoji
from tertulia.model.users import User
from tertulia.state.organization import State

ReactionType = Literal[
    "", "unicode_emoji", "realm_emoji", "zulip_extra_emoji", "service_extra_emoji"
]

KINDS: Final[Mapping[str, EmojiKind]] = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
    "service_extra_emoji": EmojiKind.EXTRA,
}
_NAMES: Final = {
    EmojiKind.UNICODE: "unicode_emoji",
    EmojiKind.CUSTOM: "realm_emoji",
    EmojiKind.EXTRA: "zulip_extra_emoji",
}


def emoji_fields(emoji: StatusEmoji) -> dict[str, str]:
    """An emoji's three names; all empty for none."""
    kind = "" if emoji == NO_EMOJI else _NAMES[emoji.kind]
    return {"emoji_name": emoji.name, "emoji_code": emoji.code, "reaction_type": kind}


def status_object(state: State, user: User) -> dict[str, Any]:
    """What the account says, without what is not set."""
    shown: dict[str, Any] = {}
    status = state.statuses.get(user.id)
    if status is not None and status.text:
        shown["status_text"] = status.text
    if status is not None and status.emoji != NO_EMOJI:
        shown |= emoji_fields(status.emoji)
    settings = state.settings.get(user.id)
    if settings is not None and not settings.presence_enabled:
        shown["away"] = True
    return shown
