"""Endpoints for bots."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.domain.accounts import bots, users
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.embedded import catalog
from tertulia.model.errors import Refused
from tertulia.model.users import BotKind, Role, User
from tertulia.model.webhooks import EmbeddedService, OutgoingService, ServiceFormat
from tertulia.outbound.http_responses import NotAllowed
from tertulia.service.files.pictures import avatar_deleted_on_failure, delete_avatar
from tertulia.wire.api.bots.objects import (
    BOT_FIELDS,
    BotDefaults,
    bot_object,
    config_names,
    hidden,
)
from tertulia.wire.api.pictures import kept_if_sent
from tertulia.wire.api.users.endpoints import ApiKeyResponse, RoleNumber
from tertulia.wire.api.users.objects import api_email
from tertulia.wire.http import sign_in
from tertulia.wire.http.errors import MissingParameter
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params
from tertulia.wire.http.routing import ApiResponse, Call


class OwnBot(BotDefaults, kw_only=True):
    """A bot that you own. `username` is its email address."""

    username: str
    full_name: str
    api_key: str
    avatar_url: str


class OwnBotsResponse(ApiResponse, kw_only=True):
    """Your active bots."""

    bots: list[OwnBot]


async def get_bots(call: Call) -> OwnBotsResponse:
    """Get the active bots that you own."""
    users.require_person(call.user)
    return OwnBotsResponse(
        bots=[_own_bot(call, bot) for bot in call.state.users.bots_of(call.user.id)]
    )


def _own_bot(call: Call, bot: User) -> OwnBot:
    return OwnBot(
        username=bot.address,
        full_name=bot.full_name,
        api_key=call.node.vault.api_key(call.state.credentials[bot.id]),
        avatar_url=full_avatar_url(bot, sees_address=True),
        **_defaults(call, bot),
    )


def _defaults(call: Call, bot: User) -> dict[str, Any]:
    visible = bot_object(call.state, call.user, bot, hidden)
    return {name: getattr(visible, name) for name in BOT_FIELDS.values()}


class CreateBot(Params, kw_only=True, frozen=True):
    full_name: str
    short_name: Annotated[
        str, Doc("The bot's email address is `{short_name}-bot@` followed by the host.")
    ]
    bot_type: Annotated[
        Literal[1, 2, 3, 4], Doc("1 generic, 2 incoming webhook, 3 outgoing webhook, 4 embedded.")
    ] = 1
    payload_url: Annotated[
        str | None, Doc("The service's URL, as JSON. Outgoing webhooks only.")
    ] = None
    interface_type: Annotated[
        Literal[1, 2],
        Doc("The payload format: 1 for Zulip's, 2 for Slack's. Outgoing webhooks only."),
    ] = 1
    service_name: Annotated[
        str | None,
        Doc(
            "For embedded bots, a name in realm_embedded_bots. For outgoing webhooks, it's accepted"
            " but not used."
        ),
    ] = None
    config_data: Annotated[
        dict[str, str] | None, Doc("Values for the program's `config`. Embedded bots only.")
    ] = None
    default_sending_stream: Annotated[str | None, Doc("A channel's name.")] = None
    default_events_register_stream: Annotated[str | None, Doc("A channel's name.")] = None
    default_all_public_streams: bool = False


class CreatedBotResponse(ApiResponse, BotDefaults, kw_only=True):
    """The new bot and its API key."""

    user_id: int
    api_key: str
    avatar_url: str


async def create_bot(call: Call, params: CreateBot) -> CreatedBotResponse:
    """Create a bot that you own."""
    call.consider(bots.check_new, BotKind(params.bot_type))
    service = await _new_service(call, params)
    embedded = _new_embedded(call, params)
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
    return CreatedBotResponse(
        user_id=bot.id,
        api_key=vault.api_key(new.credential),
        avatar_url=full_avatar_url(bot, sees_address=True),
        **_defaults(call, bot),
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
    """Parse a service's URL. Refuse it if this server would never connect to it."""
    url = bots.service_url(_unquoted(text))
    await require_callable(call, url)
    return url


def id_or_name(text: str) -> int | str:
    """Return the ID or the name in a parameter that accepts both."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 16 else text


async def require_callable(call: Call, url: str) -> None:
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
        is_outgoing = BotKind(params.bot_type) is BotKind.OUTGOING_WEBHOOK
        if settings or (params.service_name and not is_outgoing):
            raise Refused("Only embedded bots have a service name and configuration.")
        return None
    if params.service_name is None:
        raise MissingParameter("service_name")
    program = catalog.require(call.node.config.embedded_bots, params.service_name, settings)
    return EmbeddedService(program=program.name, settings_sealed=_sealed(call, settings))


def _sealed(call: Call, settings: Mapping[str, str]) -> dict[str, str]:
    return {name: call.node.vault.sealed(value) for name, value in settings.items()}


def _unquoted(text: str) -> str:
    # Clients send URLs as JSON, but people who try the API send them as plain text.
    if not text.startswith('"'):
        return text
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        raise Refused("The service's address must be a JSON string.") from None


class UpdateBot(Params, kw_only=True, frozen=True):
    bot_id: IntPath
    full_name: str | None = None
    short_name: str | None = None
    role: RoleNumber | None = None
    bot_owner_id: Int | None = None
    config_data: Annotated[
        dict[str, str] | None,
        Doc("Changed settings. The others keep their values. Embedded bots only."),
    ] = None
    service_payload_url: Annotated[
        str | None, Doc("The service's URL, as JSON. Outgoing webhooks only.")
    ] = None
    service_interface: Annotated[
        Literal[1, 2] | None,
        Doc("The payload format: 1 for Zulip's, 2 for Slack's. Outgoing webhooks only."),
    ] = None
    default_sending_stream: Annotated[str | UnsetType, Doc("A channel's name; empty for none.")] = (
        UNSET
    )
    default_events_register_stream: Annotated[
        str | UnsetType, Doc("A channel's name; empty for none.")
    ] = UNSET
    default_all_public_streams: bool | None = None


class UpdatedBotResponse(ApiResponse, BotDefaults, kw_only=True):
    """The updated bot. The service fields are for outgoing webhooks, and `config_data` has the
    names of an embedded bot's settings."""

    full_name: str
    avatar_url: str
    service_interface: int | None = None
    service_payload_url: str | None = None
    config_data: dict[str, str] | None = None
    bot_owner: str | UnsetType = UNSET


async def update_bot(call: Call, params: UpdateBot) -> UpdatedBotResponse:
    """Change a bot. Requires its owner or an administrator."""
    call.consider(bots.check_managed, params.bot_id)
    if params.role is not None or params.bot_owner_id is not None:
        sign_in.require_confirmed(call)
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
    owner = call.state.users.get(bot.bot.owner_id) if bot.bot else None
    host = call.node.config.address_host
    service = bot.bot.service if bot.bot else None
    return UpdatedBotResponse(
        full_name=bot.full_name,
        service_interface=None if service is None else int(service.format),
        service_payload_url=None if service is None else service.url,
        config_data=config_names(bot.bot.embedded if bot.bot else None),
        avatar_url=full_avatar_url(bot, sees_address=True),
        **_defaults(call, bot),
        bot_owner=UNSET if owner is None else api_email(call.state, owner, host),
    )


def _new_settings(call: Call, params: UpdateBot) -> Mapping[str, str] | None:
    if params.config_data is None:
        return None
    service = bots.embedded_service(call.state.users[params.bot_id])
    changed = {name: value if value.strip() else "" for name, value in params.config_data.items()}
    # Unchanged values aren't decrypted: they were checked when they were set.
    merged = dict.fromkeys(service.settings_sealed, "…") | changed
    settings = {name: value for name, value in merged.items() if value}
    catalog.require(call.node.config.embedded_bots, service.program, settings)
    return _sealed(call, changed)


async def deactivate_bot(call: Call, bot_id: IntPath) -> None:
    """Deactivate a bot. Requires its owner or an administrator."""
    await call.submit(bots.deactivate, bot_id)


async def get_bot_key(call: Call, bot_id: IntPath) -> ApiKeyResponse:
    """Get a bot's API key. Requires its owner or an administrator."""
    credential = call.consider(bots.get_key, bot_id)
    return ApiKeyResponse(api_key=call.node.vault.api_key(credential))


async def regenerate_bot_key(call: Call, bot_id: IntPath) -> ApiKeyResponse:
    """Replace a bot's API key. The old key stops working immediately. Requires the bot's owner or
    an administrator."""
    sign_in.require_confirmed(call)
    vault, site = call.node.vault, call.node.config.mail_site
    credential = await call.submit(bots.replace_key, bot_id, vault.new_key(), site)
    return ApiKeyResponse(api_key=vault.api_key(credential))
