"""Embedded bots: passing messages to their processes, in the same way as calls to services."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from tertulia.domain.accounts import bots
from tertulia.embedded import catalog
from tertulia.embedded.hosting import BotFailed, BotUnavailable, Host, HostedBot
from tertulia.model.users import User
from tertulia.model.webhooks import EmbeddedService, WebhookOutcome
from tertulia.service.node import Node
from tertulia.store.webhooks import QueuedCall

logger = logging.getLogger("tertulia.embedded")

BUSY: Final = "The server is busy or shutting down."


class BotCallResult(Struct, frozen=True):
    """A response of the API to a bot."""

    status: int
    content: dict[str, Any]


Interface = Callable[[User, str, Mapping[str, Any], str], Awaitable[BotCallResult]]
"""Performs an API operation as the bot, with its fields. The last argument is an idempotency key;
empty if repeating the operation is harmless."""


class EmbeddedBots:
    """Embedded bots of one node."""

    def __init__(self, node: Node, interface: Interface) -> None:
        self._node = node
        self._interface = interface
        self.host = Host()
        for name, reason in catalog.not_offered(node.config.embedded_bots).items():
            fields = {"bot": name, "reason": reason}
            logger.warning("an embedded bot isn't available", extra={"fields": fields})

    async def tell(self, bot_id: int, waiting: QueuedCall) -> tuple[WebhookOutcome, str]:
        """Have the bot handle the message after previous ones, and return the outcome. Raise NotNow
        if it must be retried."""
        async with self.host.turn(bot_id):
            # It may have waited, so use the current state.
            bot = self._node.state.users[bot_id]
            service = bot.bot.embedded if bot.bot else None
            if service is None:
                return "given up", "The server no longer runs this bot."
            return await self._told(bot, service, waiting)

    async def _told(
        self, bot: User, service: EmbeddedService, waiting: QueuedCall
    ) -> tuple[WebhookOutcome, str]:
        node = self._node
        program = catalog.offered(node.config.embedded_bots).get(service.program)
        if program is None:
            return "given up", "This server no longer runs this bot."
        got = await self._interface(bot, "get_message", {"message_id": waiting.call.message_id}, "")
        if got.status == 429 or got.status >= 500:
            raise BotUnavailable(BUSY)
        if got.status != 200:
            return "nothing", "The message no longer exists, or the bot can't read it."
        hosted = HostedBot(
            program=program.name,
            module=program.module,
            user_id=bot.id,
            email=bot.address,
            full_name=bot.full_name,
            settings=tuple(sorted(bots.embedded_settings(service, node.vault.unsealed).items())),
            networks=node.config.outgoing_webhook_networks,
            data_dir=str(node.config.data_path.resolve()),
        )
        asked = partial(self._asked, bot.id, _RequestIds(waiting.id))
        try:
            await self.host.tell(hosted, got.content["message"], asked)
        except BotFailed as error:
            return "given up", str(error)
        return "delivered", ""

    async def _asked(
        self, bot_id: int, request_ids: "_RequestIds", operation: str, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        bot = self._node.state.users[bot_id]
        return (await self._interface(bot, operation, fields, request_ids.next())).content


class _RequestIds:
    """Generates the idempotency keys of the requests for one message. They are the same on a
    retry."""

    def __init__(self, call_id: str) -> None:
        self._call_id = call_id
        self._number = 0

    def next(self) -> str:
        self._number += 1
        return f"{self._call_id}:{self._number}"
