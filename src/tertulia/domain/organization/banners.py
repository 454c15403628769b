"""Banners: temporary announcements that administrators show to everyone."""

from typing import Final

from tertulia.domain import names, permissions
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.banners import Banner
from tertulia.model.changes import AnyChange, BannerPosted, BannersEnded
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_CONTENT: Final = 500
"""Characters."""
MAX_BANNERS: Final = 5
"""The most banners at the same time. More would cover the screen."""
MAX_SECONDS: Final = 366 * 86400
TOPIC: Final = "announcements"


def post(
    context: CommandContext, content: str, seconds: int, announce: bool, render: Render
) -> Decision[Banner]:
    """Show everyone a banner for `seconds`. With `announce`, the notification bot also posts it in
    the channel for announcements, since not all clients show banners.

    For administrators. Raise Refused for an invalid text or duration, and if `MAX_BANNERS` exist.
    """
    state, actor = context.state, context.actor
    permissions.require_administrator(state, actor)
    text = content.strip()
    is_printable = all(names.is_printable(line) for line in text.split("\n"))
    is_visible = any(names.is_plain(name) for name in text if not name.isspace())
    if len(text) > MAX_CONTENT or not is_printable or not is_visible:
        raise Refused(f"An announcement must have 1 to {MAX_CONTENT} visible characters.")
    if not 0 < seconds <= MAX_SECONDS:
        raise Refused("An announcement must end between one second and one year from now.")
    if len(state.banners) >= MAX_BANNERS:
        raise Refused(
            f"An organization can have at most {MAX_BANNERS} announcements. End one of them first."
        )
    banner = Banner(
        id=state.banners.next_id(),
        content=text,
        posted_by=actor.id,
        posted_at=int(context.now),
        ends_at=int(context.now) + seconds,
    )
    changes: list[AnyChange] = [BannerPosted(banner=banner)]
    board = state.channels.get(state.realm.updates_announcements_channel_id)
    if announce and board is not None and not board.is_archived:
        words = bot_messages.texts_for(state)
        announcement = words("announced", person=bot_messages.silent_mention(actor))
        announcement += f"\n{bot_messages.fenced_block(text)}"
        changes += bot_messages.posting_changes(
            context, [bot_messages.channel_message(state, board, announcement, TOPIC)], render
        )
    return Decision(banner, changes)


def end(context: CommandContext, banner_id: int) -> Decision[None]:
    """Remove a banner. For administrators. Raise NoSuchItem."""
    permissions.require_administrator(context.state, context.actor)
    if banner_id not in context.state.banners:
        raise NoSuchItem("announcement")
    return Decision(None, (BannersEnded(banner_ids=(banner_id,)),))


def next_banner_end(state: State, _now: float) -> float | None:
    """Return when the first banner ends, in UNIX seconds."""
    return min((banner.ends_at for banner in state.banners), default=None)


def end_old(context: CommandContext) -> Decision[None]:
    """Remove banners that have ended."""
    over = sorted(banner.id for banner in context.state.banners if banner.ends_at <= context.now)
    return Decision(None, (BannersEnded(banner_ids=tuple(over)),) if over else ())
