"""What people say that they are doing, on the wire."""

from typing import Any

from tertulia.model.profiles import NO_EMOJI
from tertulia.model.reactions import Emoji
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.objects.reactions import TYPE_OF


def emoji_fields(emoji: Emoji) -> dict[str, str]:
    """An emoji's three names; all empty for none."""
    kind = "" if emoji == NO_EMOJI else TYPE_OF[emoji.kind]
    return {"emoji_name": emoji.name, "emoji_code": emoji.code, "reaction_type": kind}


def status_object(state: State, user: User) -> dict[str, Any]:
    """What the account says, without what is not set."""
    shown: dict[str, Any] = {}
    status = state.statuses.get(user.id)
    if status is not None and status.text:
        shown["status_text"] = status.text
    if status is not None and status.emoji is not None:
        shown |= emoji_fields(status.emoji)
    if status is not None and status.ends_at:
        shown["scheduled_end_time"] = status.ends_at
    settings = state.settings.get(user.id)
    if settings is not None and not settings.presence_enabled:
        shown["away"] = True
    return shown
