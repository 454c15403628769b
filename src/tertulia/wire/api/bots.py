"""Bots on the wire, as those who administer them see them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.accounts import bots, users
from tertulia.embedded import catalog
from tertulia.model.changes import UserChanged
from tertulia.model.errors import Refused
from tertulia.model.users import Bot, BotKind, Role, User
from tertulia.model.webhooks import EmbeddedService, OutgoingService, ServiceFormat
from tertulia.outbound.http_client import NotAllowed
from tertulia.service.files.pictures import avatar_deleted_on_failure, delete_avatar
from tertulia.state.folds import revised
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.pictures import kept_if_sent
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.section import Sections
from tertulia.wire.api.users.endpoints import NewKey, RoleNumber
from tertulia.wire.api.users.objects import api_email, avatar_address
from tertulia.wire.http import sign_in
from tertulia.wire.http.errors import MissingParameter
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


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
    if channel is None or not channel_access.sees_channel(state, viewer, channel):
        return None
    return channel.name


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


# Reading


class OwnBot(Struct, kw_only=True):
    """A bot, as its owner sees it. `username` is its address."""

    username: str
    full_name: str
    api_key: str
    avatar_url: str
    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool


class OwnBots(ApiResponse, kw_only=True):
    """The caller's active bots."""

    bots: list[OwnBot]


async def get_bots(call: Call, params: NoParams) -> OwnBots:
    """The caller's own active bots."""
    users.require_person(call.user)
    return OwnBots(bots=[_own(call, bot) for bot in call.state.users.bots_of(call.user.id)])


def _own(call: Call, bot: User) -> OwnBot:
    shown = bot_object(call.state, call.user, bot)
    return OwnBot(
        username=bot.address,
        full_name=bot.full_name,
        api_key=call.node.vault.api_key(call.state.credentials[bot.id]),
        avatar_url=avatar_address(bot, sees_address=True),
        default_sending_stream=shown.default_sending_stream,
        default_events_register_stream=shown.default_events_register_stream,
        default_all_public_streams=shown.default_all_public_streams,
    )


# Creating


class CreateBot(Params, kw_only=True, frozen=True):
    """A bot to be."""

    full_name: str
    short_name: Annotated[str, Meta(description="Its address is `{short_name}-bot@` and the host.")]
    bot_type: Annotated[
        Literal[1, 2, 3, 4],
        Meta(description="1 generic, 2 incoming and 3 outgoing webhook, 4 embedded."),
    ] = 1
    payload_url: Annotated[
        str | None, Meta(description="Of outgoing webhooks: where their service is. JSON.")
    ] = None
    interface_type: Annotated[
        Literal[1, 2], Meta(description="Of outgoing webhooks: 1 our own format, 2 Slack's.")
    ] = 1
    service_name: Annotated[
        str | None, Meta(description="Of embedded bots: a name of realm_embedded_bots.")
    ] = None
    config_data: Annotated[
        dict[str, str] | None,
        Meta(description="Of embedded bots: the values that its `config` lists."),
    ] = None
    default_sending_stream: Annotated[str | None, Meta(description="A channel's name.")] = None
    default_events_register_stream: Annotated[str | None, Meta(description="A channel's name.")] = (
        None
    )
    default_all_public_streams: bool = False


class CreatedBot(ApiResponse, kw_only=True):
    """The new bot, and what its program signs in with."""

    user_id: int
    api_key: str
    avatar_url: str
    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool


async def create_bot(call: Call, params: CreateBot) -> CreatedBot:
    """Create a bot that the caller owns."""
    call.consider(bots.check_new, BotKind(params.bot_type))
    service, embedded = await _new_service(call, params), _new_embedded(call, params)
    vault = call.node.vault
    picture = await kept_if_sent(call)
    new = bots.NewBot(
        full_name=params.full_name,
        short_name=params.short_name,
        kind=BotKind(params.bot_type),
        host=call.node.config.address_host,
        credential=await vault.credential(0, None),
        service=service,
        embedded=embedded,
        default_sending_channel=params.default_sending_stream,
        default_events_channel=params.default_events_register_stream,
        default_all_public_channels=params.default_all_public_streams,
        avatar_file=picture,
    )
    async with avatar_deleted_on_failure(call.node.files, picture):
        bot: User = await call.submit(bots.create, new)
    shown = bot_object(call.state, call.user, bot)
    return CreatedBot(
        user_id=bot.id,
        api_key=vault.api_key(new.credential),
        avatar_url=avatar_address(bot, sees_address=True),
        default_sending_stream=shown.default_sending_stream,
        default_events_register_stream=shown.default_events_register_stream,
        default_all_public_streams=shown.default_all_public_streams,
    )


async def _new_service(call: Call, params: CreateBot) -> OutgoingService | None:
    if BotKind(params.bot_type) is not BotKind.OUTGOING_WEBHOOK:
        if params.payload_url is not None:
            raise Refused("Only outgoing webhook bots have a service.")
        return None
    if not call.node.config.outgoing_webhooks:
        raise Refused(
            "Outgoing webhooks are turned off on this server. Ask its operator to turn them on."
        )
    if params.payload_url is None:
        raise MissingParameter("payload_url")
    vault = call.node.vault
    return OutgoingService(
        url=await _service_url(call, params.payload_url),
        format=ServiceFormat(params.interface_type),
        token_sealed=vault.sealed(vault.nonce()),
    )


async def _service_url(call: Call, text: str) -> str:
    """The address of a service in its final form. Refused if it would never be called."""
    url = bots.service_url(_unquoted(text))
    await check_called(call, url)
    return url


async def check_called(call: Call, url: str) -> None:
    """Refuse a bot's URL if this server would never connect to it."""
    try:
        await call.node.services.require_allowed(url)
    except NotAllowed as error:
        raise Refused(
            f"This server doesn't call that address: {error}. Ask its operator to add the address"
            " to outgoing_webhook_networks."
        ) from None


def _new_embedded(call: Call, params: CreateBot) -> EmbeddedService | None:
    settings = params.config_data or {}
    if BotKind(params.bot_type) is not BotKind.EMBEDDED:
        if params.service_name or settings:
            raise Refused("Only embedded bots have a service name and configuration.")
        return None
    if params.service_name is None:
        raise MissingParameter("service_name")
    program = catalog.require(call.node.config.embedded_bots, params.service_name, settings)
    return EmbeddedService(program=program.name, settings_sealed=_sealed(call, settings))


def _sealed(call: Call, settings: Mapping[str, str]) -> dict[str, str]:
    return {name: call.node.vault.sealed(value) for name, value in settings.items()}


def _unquoted(text: str) -> str:
    """Clients send addresses as JSON; people, who try it, as they are."""
    if not text.startswith('"'):
        return text
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        raise Refused("The service's address must be a JSON string.") from None


# Changing


class UpdateBot(Params, kw_only=True, frozen=True):
    """What is to be new about a bot."""

    bot_id: Annotated[Int, Path()]
    full_name: str | None = None
    short_name: str | None = None
    role: RoleNumber | None = None
    bot_owner_id: Int | None = None
    config_data: Annotated[
        dict[str, str] | None,
        Meta(description="Of embedded bots: these values are new, and the others stay."),
    ] = None
    service_payload_url: Annotated[
        str | None, Meta(description="Of outgoing webhooks: where their service is. JSON.")
    ] = None
    service_interface: Annotated[
        Literal[1, 2] | None, Meta(description="Of outgoing webhooks.")
    ] = None
    default_sending_stream: Annotated[
        str | UnsetType, Meta(description="A channel's name; empty for none.")
    ] = UNSET
    default_events_register_stream: Annotated[
        str | UnsetType, Meta(description="A channel's name; empty for none.")
    ] = UNSET
    default_all_public_streams: bool | None = None


class UpdatedBot(ApiResponse, kw_only=True):
    """The bot as it is then; the service's fields for outgoing webhooks, and the names of an
    embedded bot's settings."""

    full_name: str
    avatar_url: str
    service_interface: int | None = None
    service_payload_url: str | None = None
    config_data: dict[str, str] | None = None
    default_sending_stream: str | None
    default_events_register_stream: str | None
    default_all_public_streams: bool
    bot_owner: str | UnsetType = UNSET


async def update_bot(call: Call, params: UpdateBot) -> UpdatedBot:
    """Change a bot, for its owner and for administrators."""
    call.consider(bots.check_managed, params.bot_id)
    settings = _new_settings(call, params)
    url, format_ = params.service_payload_url, params.service_interface
    service_url = None if url is None else await _service_url(call, url)
    picture = await kept_if_sent(call)
    before = call.state.users[params.bot_id].avatar_file
    revision = bots.BotUpdate(
        full_name=params.full_name,
        short_name=params.short_name,
        host=call.node.config.address_host,
        role=None if params.role is None else Role(params.role),
        owner_id=params.bot_owner_id,
        default_sending_channel=params.default_sending_stream,
        default_events_channel=params.default_events_register_stream,
        default_all_public_channels=params.default_all_public_streams,
        service_url=service_url,
        service_format=None if format_ is None else ServiceFormat(format_),
        settings_sealed=settings,
        avatar_file=picture,
    )
    async with avatar_deleted_on_failure(call.node.files, picture):
        bot: User = await call.submit(bots.change, params.bot_id, revision)
    if picture:
        await delete_avatar(call.node.files, before)
    shown = bot_object(call.state, call.user, bot)
    owner = call.state.users.get(bot.bot.owner_id) if bot.bot else None
    host = call.node.config.address_host
    service = bot.bot.service if bot.bot else None
    return UpdatedBot(
        full_name=bot.full_name,
        service_interface=None if service is None else int(service.format),
        service_payload_url=None if service is None else service.url,
        config_data=config_names(bot.bot.embedded if bot.bot else None),
        avatar_url=avatar_address(bot, sees_address=True),
        default_sending_stream=shown.default_sending_stream,
        default_events_register_stream=shown.default_events_register_stream,
        default_all_public_streams=shown.default_all_public_streams,
        bot_owner=UNSET if owner is None else api_email(call.state, owner, host),
    )


def _new_settings(call: Call, params: UpdateBot) -> Mapping[str, str] | None:
    """What an embedded bot is to be told anew, sealed; None where all of it stays."""
    given = params.config_data
    if given is None:
        return None
    service = bots.embedded_service(call.state.users[params.bot_id])
    given = {name: value if value.strip() else "" for name, value in given.items()}
    # Those that stay are not opened: they were looked at when they were given.
    then = dict.fromkeys(service.settings_sealed, "…") | given
    settings = {name: value for name, value in then.items() if value}
    catalog.require(call.node.config.embedded_bots, service.program, settings)
    return _sealed(call, given)


class OneBot(Params, kw_only=True, frozen=True):
    """A bot by ID."""

    bot_id: Annotated[Int, Path()]


async def deactivate_bot(call: Call, params: OneBot) -> ApiResponse:
    """Deactivate a bot, for its owner and for administrators."""
    await call.submit(bots.deactivate, params.bot_id)
    return ApiResponse()


# Keys


async def get_bot_key(call: Call, params: OneBot) -> NewKey:
    """A bot's API key, for its owner and for administrators."""
    credential = call.consider(bots.get_key, params.bot_id)
    return NewKey(api_key=call.node.vault.api_key(credential))


async def regenerate_bot_key(call: Call, params: OneBot) -> NewKey:
    """Replace a bot's API key. The old one is void at once."""
    sign_in.require_confirmed(call)
    vault, site = call.node.vault, call.node.config.mail_site
    credential = await call.submit(bots.replace_key, params.bot_id, vault.new_key(), site)
    return NewKey(api_key=vault.api_key(credential))


SECTIONS: Final[Sections] = {
    ("realm_bot",): lambda context: {
        "realm_bots": [] if context.viewer is None else bot_objects(context.state, context.viewer)
    }
}
