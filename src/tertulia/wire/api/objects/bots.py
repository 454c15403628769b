"""Bots on the wire, as those who administer them see them."""

from typing import Annotated

from msgspec import Meta, Struct

from tertulia.domain import permissions
from tertulia.model.users import Bot, User
from tertulia.model.webhooks import EmbeddedService
from tertulia.state.organization import State


class BotService(Struct, kw_only=True, frozen=True):
    """The service behind a bot. (Its token is behind an endpoint of its own.)"""

    base_url: str
    interface: int


class EmbeddedBotService(Struct, kw_only=True, frozen=True):
    """What an embedded bot runs."""

    service_name: str
    config_data: Annotated[
        dict[str, str],
        Meta(description="The names of its settings. Their values are told to nobody: empty."),
    ]

    def __hash__(self) -> int:  # Views of events are compared.
        return hash((self.service_name, *self.config_data))


class BotObject(Struct, kw_only=True, frozen=True):
    """What only a bot's owner and administrators are told of it."""

    user_id: int
    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool
    services: tuple[BotService | EmbeddedBotService, ...] = ()


def administers_bot(state: State, viewer: User, bot: User) -> bool:
    """Whether the viewer is told of the bot's administration: its owner, and administrators."""
    if bot.bot is None or bot.is_system_bot:
        return False
    return permissions.is_administrator(state, viewer) or bot.bot.owner_id == viewer.id


def bot_object(state: State, viewer: User, user: User) -> BotObject:
    """The bot. Channels that the viewer may not know of are left out."""
    bot = user.bot
    if bot is None:
        raise ValueError(f"user {user.id} is no bot")
    return BotObject(
        user_id=user.id,
        default_sending_stream=_channel(state, viewer, bot.default_sending_channel_id),
        default_events_register_stream=_channel(state, viewer, bot.default_events_channel_id),
        default_all_public_streams=bot.default_all_public_channels,
        services=_services(bot),
    )


def config_names(service: EmbeddedService | None) -> dict[str, str] | None:
    """The names of an embedded bot's settings, without their values; None for other bots."""
    return None if service is None else dict.fromkeys(sorted(service.settings_sealed), "")


def _services(bot: Bot) -> tuple[BotService | EmbeddedBotService, ...]:
    if bot.embedded is not None:
        names = config_names(bot.embedded) or {}
        return (EmbeddedBotService(service_name=bot.embedded.program, config_data=names),)
    service = bot.service
    if service is None:
        return ()
    return (BotService(base_url=service.url, interface=int(service.format)),)


def bot_objects(state: State, viewer: User) -> list[BotObject]:
    """All the bots that the viewer administers, in ascending order of ID."""
    return [
        bot_object(state, viewer, user)
        for user in (state.users[user_id] for user_id in sorted(state.users.bots))
        if administers_bot(state, viewer, user)
    ]


def _channel(state: State, viewer: User, channel_id: int | None) -> str | None:
    channel = state.channels.get(channel_id)
    if channel is None or not permissions.sees_channel(state, viewer, channel):
        return None
    return channel.name
