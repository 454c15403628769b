"""Events of bots, for those who administer them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.model.changes import UserChanged
from tertulia.model.users import Bot
from tertulia.state.folds.registry import revised
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.bots import (
    BotObject,
    BotService,
    EmbeddedBotService,
    administers_bot,
    bot_object,
    config_names,
)
from tertulia.wire.api.projection import ProjectionContext, Viewer


class BotAddEvent(Event, kw_only=True, tag="realm_bot"):
    """The viewer administers a bot, and did not before."""

    op: str = "add"
    bot: BotObject


class BotGone(Struct, kw_only=True):
    """A bot that the viewer does not administer any more."""

    user_id: int


class BotDeleteEvent(Event, kw_only=True, tag="realm_bot"):
    """The viewer does not administer the bot any more."""

    op: str = "delete"
    bot: BotGone


class BotNews(Struct, kw_only=True):
    """What is new about a bot's administration."""

    user_id: int
    default_sending_stream: str | UnsetType | None = UNSET
    default_events_register_stream: str | UnsetType | None = UNSET
    default_all_public_streams: bool | UnsetType = UNSET
    services: tuple[BotService | EmbeddedBotService, ...] | UnsetType = UNSET


class BotUpdateEvent(Event, kw_only=True, tag="realm_bot"):
    """Something is new about a bot's administration."""

    op: str = "update"
    bot: BotNews


BOT_FIELDS = {
    "default_sending_channel_id": "default_sending_stream",
    "default_events_channel_id": "default_events_register_stream",
    "default_all_public_channels": "default_all_public_streams",
}
"""Fields of a bot, and what the wire calls them."""


class BotView(NamedTuple):
    """What a change is to somebody who administers the bot, or did."""

    op: str
    bot: BotObject | None


def bot_now(value: Any) -> Bot:
    """A bot out of a change's values, where it may be as it is in JSON."""
    return msgspec.convert(value, Bot)


def bot_view(context: ProjectionContext, change: UserChanged, viewer: Viewer) -> BotView | None:
    """What a change of a bot's administration is to the viewer; None for nothing."""
    if "bot" not in change.values:
        return None
    state, user = context.state, viewer.user
    was, now = bot_now(change.was["bot"]), bot_now(change.values["bot"])
    had = permissions.is_administrator(state, user) or was.owner_id == user.id
    if not administers_bot(state, user, state.users[change.user_id]):
        return BotView("delete", None) if had else None
    then = revised(state.users[change.user_id], {"bot": change.values["bot"]})
    shown = bot_object(state, user, then)
    if not had:
        return BotView("add", shown) if now.owner_id == user.id else None
    return BotView("update", shown)


def bot_events(change: UserChanged, view: BotView) -> Iterable[Event]:
    """The events of that view."""
    if view.bot is None:
        yield BotDeleteEvent(bot=BotGone(user_id=change.user_id))
        return
    if view.op == "add":
        yield BotAddEvent(bot=view.bot)
        return
    was, now = bot_now(change.was["bot"]), bot_now(change.values["bot"])
    for field, name in BOT_FIELDS.items():
        if getattr(was, field) != getattr(now, field):
            news = {name: getattr(view.bot, name)}
            yield BotUpdateEvent(bot=BotNews(user_id=change.user_id, **news))
    if was.service is not None and now.service is not None:
        before, after = was.service, now.service
        if (before.url, before.format) != (after.url, after.format):
            yield BotUpdateEvent(bot=BotNews(user_id=change.user_id, services=view.bot.services))
    if config_names(was.embedded) != config_names(now.embedded):
        yield BotUpdateEvent(bot=BotNews(user_id=change.user_id, services=view.bot.services))
