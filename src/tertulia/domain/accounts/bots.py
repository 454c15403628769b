"""Creating and changing bots and their services."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions, quotas
from tertulia.domain.accounts import deactivation, personal, users
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.errors import Refused
from tertulia.model.users import Bot, BotKind, Credential, NewApiKey, Role, User
from tertulia.model.webhooks import EmbeddedService, IncomingOptions, OutgoingService, ServiceFormat
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_URL: Final = 2000
MAX_COMMANDS: Final = 20
"""Per bot."""
OWN_COMMANDS: Final = frozenset({"me", "poll", "todo"})
"""Commands that bots can't register, because the server or clients handle them."""
_COMMAND: Final = re.compile(r"[a-z][a-z0-9_-]{0,29}")


class NewBot(Struct, frozen=True, kw_only=True):
    """A bot to create. `credential.user_id` is still 0. Channels are given by name."""

    full_name: str
    short_name: str
    kind: BotKind
    host: str
    """The host of the bots' addresses."""
    credential: Credential
    service: OutgoingService | None = None
    """Outgoing webhook bots only."""
    embedded: EmbeddedService | None = None
    """Embedded bots only."""
    default_sending_channel: str | None = None
    default_events_channel: str | None = None
    default_all_public_channels: bool = False
    avatar_file: str = ""
    """The file name of an uploaded avatar."""


def create(context: CommandContext, new: NewBot) -> Decision[User]:
    """Create a bot that the actor owns.

    Raise NotPermitted for bots and guests; QuotaReached; Refused without permission, and for
    invalid or taken names and addresses; NoSuchChannel for channels that the actor can't see.
    """
    state, actor = context.state, context.actor
    check_new(context, new.kind)
    bot = User(
        id=state.users.next_id(),
        full_name=users.free_bot_name(state, new.full_name),
        address=users.free_address(state, bot_address(new.short_name, new.host)),
        joined_at=int(context.now),
        avatar_source="U" if new.avatar_file else state.realm.default_avatar_source,
        avatar_file=new.avatar_file,
        bot=Bot(
            kind=new.kind,
            service=new.service,
            embedded=new.embedded,
            owner_id=actor.id,
            default_sending_channel_id=_channel_id(context, new.default_sending_channel),
            default_events_channel_id=_channel_id(context, new.default_events_channel),
            default_all_public_channels=new.default_all_public_channels,
        ),
    )
    return Decision(bot, (users.creation_change(state, bot, new.credential),))


def check_new(context: CommandContext, kind: BotKind) -> Decision[None]:
    """Raise as `create` does if the actor can't create a bot of this kind."""
    users.require_person(context.actor)
    permissions.require(
        permissions.may_create_bot(context.state, context.actor, kind),
        "You don't have permission to create this type of bot.",
    )
    quotas.check(context.state, context.actor, quotas.BOTS)
    return Decision(None)


def bot_address(short_name: str, host: str) -> str:
    """Return the address of the bot with that short name. Raise Refused if it's invalid."""
    short = short_name.strip()
    if not short or "@" in short:
        raise Refused("The bot's short name can't be empty or contain @.")
    return names.address(f"{short}-bot@{host}")


def _channel_id(context: CommandContext, name: str | None) -> int | None:
    if not name:
        return None
    return channel_access.visible_channel(context.state, context.actor, name=name).id


class BotUpdate(Struct, frozen=True, kw_only=True):
    """New values for a bot; None keeps the current value. An empty channel name removes the
    channel."""

    full_name: str | None = None
    short_name: str | None = None
    host: str
    """The host of the bots' addresses."""
    role: Role | None = None
    owner_id: int | None = None
    default_sending_channel: str | UnsetType = UNSET
    default_events_channel: str | UnsetType = UNSET
    default_all_public_channels: bool | None = None
    service_url: str | None = None
    service_format: ServiceFormat | None = None
    settings_sealed: Mapping[str, str] | None = None
    """New settings of an embedded bot, encrypted; empty values remove a setting."""
    avatar_file: str = ""
    """The file name of a newly uploaded avatar, if any."""


def change(context: CommandContext, bot_id: int, update: BotUpdate) -> Decision[User]:
    """Change a bot that the actor owns or administers, and return it.

    Raise NotPermitted if a role needs an administrator or owner; NoSuchChannel for channels that
    the actor can't see; Refused for unknown bots, bots of others, invalid values, and owners who
    aren't active people.
    """
    state = context.state
    target = managed_bot(context, bot_id)
    values: dict[str, Any] = {}
    if update.full_name is not None:
        values["full_name"] = users.free_bot_name(state, update.full_name, target.id)
    if update.short_name is not None:
        address = bot_address(update.short_name, update.host)
        if address.casefold() != target.address.casefold():
            address = users.free_address(state, address)
        values["address"] = address
    if update.role is not None:
        values["role"] = users.require_assignable_role(context, target, update.role)
    if update.avatar_file:
        values |= personal.avatar_values(context, target, update.avatar_file)
    bot: dict[str, Any] = {}
    if update.owner_id is not None:
        bot["owner_id"] = _new_owner(context, target, update.owner_id).id
    if update.default_sending_channel is not UNSET:
        bot["default_sending_channel_id"] = _channel_id(context, update.default_sending_channel)
    if update.default_events_channel is not UNSET:
        bot["default_events_channel_id"] = _channel_id(context, update.default_events_channel)
    if update.default_all_public_channels is not None:
        bot["default_all_public_channels"] = update.default_all_public_channels
    if update.service_url is not None or update.service_format is not None:
        bot["service"] = _updated_service(target, update)
    if update.settings_sealed is not None:
        bot["embedded"] = _with_settings(embedded_service(target), update.settings_sealed)
    if bot and target.bot is not None:
        values["bot"] = msgspec.structs.replace(target.bot, **bot)
    return Decision(
        msgspec.structs.replace(target, **values), users.account_changes(context, target, values)
    )


def _updated_service(target: User, update: BotUpdate) -> OutgoingService:
    """Return the bot's service with the new URL or format. Raise Refused if the bot has no
    service."""
    service = target.bot.service if target.bot else None
    if service is None:
        raise Refused("This bot isn't an outgoing webhook.")
    if update.service_url is not None:
        service = msgspec.structs.replace(service, url=service_url(update.service_url))
    if update.service_format is not None:
        service = msgspec.structs.replace(service, format=update.service_format)
    return service


def embedded_service(target: User) -> EmbeddedService:
    """Return the service of an embedded bot. Raise Refused for other bots."""
    service = target.bot.embedded if target.bot else None
    if service is None:
        raise Refused("This bot isn't an embedded bot.")
    return service


def _with_settings(service: EmbeddedService, sealed: Mapping[str, str]) -> EmbeddedService:
    settings = {name: text for name, text in {**service.settings_sealed, **sealed}.items() if text}
    return msgspec.structs.replace(service, settings_sealed=settings)


def embedded_settings(service: EmbeddedService, unsealed: Callable[[str], str]) -> dict[str, str]:
    """Return the decrypted settings of an embedded bot."""
    return {name: unsealed(value) for name, value in service.settings_sealed.items()}


def service_url(text: str) -> str:
    """Return the URL of a bot's service. Raise Refused if it's invalid."""
    return web_address(text, "The service's address")


def web_address(text: str, what: str) -> str:
    """Return the text as an HTTP URL. Raise Refused if it isn't one; the message calls it
    `what`."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_plain = parts.username is None and parts.port != 0 and not parts.fragment
    except ValueError:
        is_whole = is_plain = False
    if not (is_whole and is_plain) or len(text) > MAX_URL or not text.isprintable() or " " in text:
        raise Refused(f"{what} must be a complete http:// or https:// URL.")
    return text


def change_service(
    context: CommandContext, bot_id: int, commands: Sequence[str] | None, token_sealed: str | None
) -> Decision[User]:
    """Change the commands or the token of a bot's outgoing webhook, and return the bot.

    Raise Refused for bots without one, and for invalid or taken commands; NotPermitted for commands
    from people who aren't administrators, since commands are for everyone.
    """
    target = managed_bot(context, bot_id)
    service = target.bot.service if target.bot else None
    if target.bot is None or service is None:
        raise Refused("This bot isn't an outgoing webhook.")
    if commands is not None:
        permissions.require_administrator(context.state, context.actor)
        service = msgspec.structs.replace(
            service, commands=_free_commands(context.state, bot_id, commands)
        )
    if token_sealed is not None:
        service = msgspec.structs.replace(service, token_sealed=token_sealed)
    changed = msgspec.structs.replace(target.bot, service=service)
    return Decision(
        msgspec.structs.replace(target, bot=changed),
        users.account_changes(context, target, {"bot": changed}),
    )


def _free_commands(state: State, bot_id: int, commands: Sequence[str]) -> tuple[str, ...]:
    result = tuple(dict.fromkeys(name.strip().removeprefix("/") for name in commands))
    if len(result) > MAX_COMMANDS:
        raise Refused(f"A bot can have at most {MAX_COMMANDS} commands.")
    taken = {
        name
        for other_id in state.users.services
        if other_id != bot_id and (other := state.users[other_id].bot) and other.service
        for name in other.service.commands
    }
    for name in result:
        if not _COMMAND.fullmatch(name):
            raise Refused(
                f"'{name[:40]}' isn't a valid command name. Use up to 30 lowercase letters,"
                " digits, hyphens, and underscores."
            )
        if name in OWN_COMMANDS or name in taken:
            raise Refused(f"The command /{name} is already in use.")
    return result


def notify_of_failures(
    context: CommandContext, bot_id: int, reason: str, waiting: int, render: Render
) -> Decision[None]:
    """Tell the bot's owner, in a message from the server, that the bot's service doesn't
    respond."""
    bot = context.state.users.get(bot_id)
    owner = context.state.users.get(bot.bot.owner_id) if bot and bot.bot else None
    if bot is None or owner is None or not owner.is_active:
        return Decision(None)
    words = bot_messages.texts_for(context.state, owner.id)
    text = words(
        "service_failing", bot=bot_messages.silent_mention(bot), reason=reason, count=waiting
    )
    bot_message = bot_messages.to_user(owner.id, text)
    return Decision(None, bot_messages.posting_changes(context, [bot_message], render))


def change_incoming(
    context: CommandContext,
    bot_id: int,
    secret_sealed: str | UnsetType,
    topic_template: str | UnsetType,
    content_template: str | UnsetType,
) -> Decision[User]:
    """Change the options of an incoming webhook that the actor owns or administers, and return it.
    UNSET options don't change. Raise Refused for other bots."""
    target = managed_bot(context, bot_id)
    bot = target.bot
    if bot is None or bot.kind is not BotKind.INCOMING_WEBHOOK:
        raise Refused("This bot isn't an incoming webhook.")
    values = {
        name: value
        for name, value in (
            ("secret_sealed", secret_sealed),
            ("topic_template", topic_template),
            ("content_template", content_template),
        )
        if value is not UNSET
    }
    incoming = msgspec.structs.replace(bot.incoming or IncomingOptions(), **values)
    changed = msgspec.structs.replace(bot, incoming=incoming)
    return Decision(
        msgspec.structs.replace(target, bot=changed),
        users.account_changes(context, target, {"bot": changed}),
    )


def _new_owner(context: CommandContext, bot: User, owner_id: int) -> User:
    state, actor = context.state, context.actor
    owner = permissions.visible_user(state, actor, owner_id)
    if owner.is_bot or not owner.is_active:
        raise Refused("A bot's owner must be an active person.")
    # The previous owner still has the bot's key.
    permissions.require(
        permissions.may_lend_rights(state, actor, owner),
        "You can't transfer a bot to someone who has more permissions than you.",
    )
    if owner != state.users.person_of(bot):
        quotas.check(state, actor, quotas.BOTS, of=owner)
    return owner


def managed_bot(context: CommandContext, bot_id: int) -> User:
    """Return the bot. Raise Refused unless the actor can change it; NotPermitted for bots."""
    users.require_person(context.actor)
    bot = context.state.users.get(bot_id)
    if bot is None or bot.bot is None or bot.is_system_bot:
        raise Refused("This bot doesn't exist.")
    return users.managed_user(context, bot.id)


def check_managed(context: CommandContext, bot_id: int) -> Decision[None]:
    """Raise Refused unless the actor can change the bot."""
    managed_bot(context, bot_id)
    return Decision(None)


def get_key(context: CommandContext, bot_id: int) -> Decision[Credential]:
    """Return the credential of a bot that the actor can change."""
    return Decision(context.state.credentials[managed_bot(context, bot_id).id])


def replace_key(
    context: CommandContext, bot_id: int, key: NewApiKey, site: str
) -> Decision[Credential]:
    """Replace the API key of a bot that the actor can change. Return the new credential."""
    return users.replace_key(context, managed_bot(context, bot_id).id, key, site)


def deactivate(context: CommandContext, bot_id: int) -> Decision[None]:
    return deactivation.deactivate(context, managed_bot(context, bot_id).id)
