"""Bots as the API shows them, and their events, for their owners and for administrators."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.model.changes import UserChanged
from tertulia.model.users import Bot, User
from tertulia.model.webhooks import EmbeddedService
from tertulia.state.folds import revised
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc


class BotService(Struct, kw_only=True, frozen=True):
    """An outgoing webhook bot's service."""

    base_url: str
    interface: int
    token: Annotated[
        str, Doc("Proves to the service that a request is from this server. Empty for access keys.")
    ]


class EmbeddedBotService(Struct, kw_only=True, frozen=True):
    """An embedded bot's program and configuration."""

    service_name: str
    config_data: Annotated[
        dict[str, str],
        Doc("The names of the bot's settings. Values are secret and shown as empty strings."),
    ]

    def __hash__(self) -> int:  # Views of events are compared.
        return hash((self.service_name, *self.config_data))


class BotDefaults(Struct, kw_only=True):
    """The channels that a bot uses by default; null for those that the viewer can't see."""

    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool


class BotObject(Struct, kw_only=True, frozen=True):
    """The part of a bot that only its owner and administrators can see."""

    user_id: int
    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool
    services: tuple[BotService | EmbeddedBotService, ...] = ()


def administers_bot(state: State, viewer: User, bot: User) -> bool:
    """Whether the viewer is the bot's owner or an administrator."""
    if bot.bot is None or bot.is_system_bot:
        return False
    return permissions.is_administrator(state, viewer) or bot.bot.owner_id == viewer.id


Unseal = Callable[[str], str]
"""Returns the token of a service, given as it's stored."""


def hidden(_: str) -> str:
    """Return an empty token, for access keys, which must not see the keys of bots."""
    return ""


def bot_object(state: State, viewer: User, user: User, unsealed: Unseal) -> BotObject:
    """Return the bot, without channels that the viewer can't see."""
    bot = user.bot
    if bot is None:
        raise ValueError(f"user {user.id} is no bot")
    return BotObject(
        user_id=user.id,
        default_sending_stream=_channel(state, viewer, bot.default_sending_channel_id),
        default_events_register_stream=_channel(state, viewer, bot.default_events_channel_id),
        default_all_public_streams=bot.default_all_public_channels,
        services=_services(bot, unsealed),
    )


def config_names(service: EmbeddedService | None) -> dict[str, str] | None:
    """Return an embedded bot's settings with empty values; None for other bots."""
    return None if service is None else dict.fromkeys(sorted(service.settings_sealed), "")


def _services(bot: Bot, unsealed: Unseal) -> tuple[BotService | EmbeddedBotService, ...]:
    if bot.embedded is not None:
        names = config_names(bot.embedded) or {}
        return (EmbeddedBotService(service_name=bot.embedded.program, config_data=names),)
    service = bot.service
    if service is None:
        return ()
    token = unsealed(service.token_sealed)
    return (BotService(base_url=service.url, interface=int(service.format), token=token),)


def bot_objects(state: State, viewer: User, unsealed: Unseal) -> list[BotObject]:
    """Return all bots that the viewer administers, by ID."""
    return [
        bot_object(state, viewer, user, unsealed)
        for user in (state.users[user_id] for user_id in sorted(state.users.bots))
        if administers_bot(state, viewer, user)
    ]


def _channel(state: State, viewer: User, channel_id: int | None) -> str | None:
    channel = state.channels.get(channel_id)
    if channel is None or not channel_access.sees_channel(state, viewer, channel):
        return None
    return channel.name


class BotAddEvent(Event, kw_only=True, tag="realm_bot"):
    """You now administer a bot."""

    op: str = "add"
    bot: BotObject


class RemovedBot(Struct, kw_only=True):
    """A bot that the viewer no longer administers."""

    user_id: int


class BotDeleteEvent(Event, kw_only=True, tag="realm_bot"):
    """You no longer administer a bot."""

    op: str = "delete"
    bot: RemovedBot


class ChangedBot(Struct, kw_only=True):
    """The changed fields of a bot."""

    user_id: int
    default_sending_stream: str | UnsetType | None = UNSET
    default_events_register_stream: str | UnsetType | None = UNSET
    default_all_public_streams: bool | UnsetType = UNSET
    services: tuple[BotService | EmbeddedBotService, ...] | UnsetType = UNSET


class BotUpdateEvent(Event, kw_only=True, tag="realm_bot"):
    """A bot that you administer changed."""

    op: str = "update"
    bot: ChangedBot


BOT_FIELDS = {
    "default_sending_channel_id": "default_sending_stream",
    "default_events_channel_id": "default_events_register_stream",
    "default_all_public_channels": "default_all_public_streams",
}
"""The fields of a bot, with their names in the API."""


class BotView(NamedTuple):
    """A change as seen by someone who administers the bot, or used to."""

    op: str
    bot: BotObject | None


def decode_bot(value: Any) -> Bot:
    """Decode the bot in a change's values, which may be plain JSON."""
    return msgspec.convert(value, Bot)


def bot_view(context: ProjectionContext, change: UserChanged, viewer: Viewer) -> BotView | None:
    """Return a change of a bot's administration as the viewer sees it; None if they don't see
    it."""
    if "bot" not in change.values:
        return None
    state, user = context.state, viewer.user
    was, now = decode_bot(change.was["bot"]), decode_bot(change.values["bot"])
    administers_all = permissions.is_administrator(
        state, user
    ) and not state.administrator_gains.since(context.entry.seq, user.id, user.id)
    had, has = (administers_all or bot.owner_id == user.id for bot in (was, now))
    if not has:
        return BotView("delete", None) if had else None
    if not administers_bot(state, user, state.users[change.user_id]):
        return None
    then = revised(state.users[change.user_id], {"bot": change.values["bot"]})
    return BotView("update" if had else "add", bot_object(state, user, then, context.unsealed))


def bot_events(change: UserChanged, view: BotView) -> Iterable[Event]:
    if view.bot is None:
        yield BotDeleteEvent(bot=RemovedBot(user_id=change.user_id))
        return
    if view.op == "add":
        yield BotAddEvent(bot=view.bot)
        return
    was, now = decode_bot(change.was["bot"]), decode_bot(change.values["bot"])
    for field, name in BOT_FIELDS.items():
        if getattr(was, field) != getattr(now, field):
            values = {name: getattr(view.bot, name)}
            yield BotUpdateEvent(bot=ChangedBot(user_id=change.user_id, **values))
    if _services(was, str) != _services(now, str):
        yield BotUpdateEvent(bot=ChangedBot(user_id=change.user_id, services=view.bot.services))


def _section(context: SectionContext) -> dict[str, list[BotObject]]:
    if context.viewer is None:
        return {"realm_bots": []}
    unsealed = hidden if context.registration.key_id else context.node.vault.unsealed
    return {"realm_bots": bot_objects(context.state, context.viewer, unsealed)}


SECTIONS: Final[Sections] = {("realm_bot",): _section}
