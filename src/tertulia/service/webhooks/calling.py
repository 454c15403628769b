"""Outgoing webhooks: calling bots' services, with retries."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.accounts import bots
from tertulia.domain.messages.sending import ToChannel, ToPeople
from tertulia.embedded.hosting import BotUnavailable
from tertulia.integrations.payloads import short
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.messages import Message
from tertulia.model.numbers import counted
from tertulia.model.users import User
from tertulia.model.webhooks import OutgoingService, ServiceCall, WebhookLogEntry, WebhookOutcome
from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, WebResponse, is_temporary, seconds_to_wait
from tertulia.service.config import Config
from tertulia.service.messages import sending
from tertulia.service.messages.history import one_message
from tertulia.service.node import Caller, Node
from tertulia.service.tasks import FairTasks, RetryLater
from tertulia.service.webhooks.embedded import EmbeddedBots, Interface
from tertulia.service.webhooks.journal import INTERNAL_ERROR
from tertulia.store import webhooks
from tertulia.store.database import DatabaseError
from tertulia.store.lanes import SERVICES
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.webhooks import LeasedCalls, QueuedCall

logger = logging.getLogger("tertulia.webhooks")

MAX_CONCURRENT: Final = 16
"""The most bots whose services one node calls at the same time."""
PER_OWNER: Final = 4
"""The most of these that belong to one owner, so that one owner's slow services don't delay
others."""
CALL_SECONDS: Final = 10.0
"""The timeout of a call in seconds."""
LEASE_SECONDS: Final = 120.0
"""The duration of a lease in seconds, longer than a bot's calls take, including embedded bots."""
FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 900.0
"""Pauses after failures double up to this many seconds."""
GIVEN_UP_AFTER: Final = 86_400.0
"""The number of seconds after the message at which a call is given up."""
NOTIFY_OWNER_AFTER: Final = 5
"""The number of consecutive failures after which the bot's owner is notified."""
MAX_RESPONSE: Final = 128 * 1024
"""Largest response, in bytes."""
LONGEST_SLEEP: Final = 30.0
"""The longest sleep in seconds, since another node may have left something."""
SIGNATURE: Final = "X-Tertulia-Signature"
DELIVERY: Final = "X-Tertulia-Delivery"


class EncodedCall(Struct, frozen=True):
    """The body of a call."""

    content_type: str
    body: bytes


Encoder = Callable[
    [Node, User, OutgoingService, ServiceCall, Message, MessageDetails, str], EncodedCall | None
]
"""Encodes a message for a service. The last argument is the token that identifies this server.
Returns None if the service's format can't represent the message."""


class _ServiceReply(Struct, frozen=True):
    """A service's response, in either format."""

    content: str | None = None
    response_string: str | None = None
    text: str | None = None
    response_not_required: bool = False
    response_type: str = ""
    """`ephemeral` for a response to the sender only."""
    widget_content: msgspec.Raw | None = None


class ServiceCaller:
    """Calls services and embedded bots for one node."""

    def __init__(self, node: Node, encode: Encoder, interface: Interface) -> None:
        self._node = node
        self._encode = encode
        self.embedded = EmbeddedBots(node, interface)
        self.tasks = FairTasks(
            MAX_CONCURRENT, PER_OWNER, self._owner_of, logger, "could not call a bot's service"
        )
        """Running tasks, by bot ID."""

    async def once(self) -> float:
        """Start the calls that are due. Return the seconds until the next round."""
        if self._node.state.is_closed:
            return LONGEST_SLEEP
        store = self._node.store
        return await self.tasks.round(
            lambda: store.read(SERVICES.due),
            self._leased,
            self._lane,
            self._node.clock,
            LONGEST_SLEEP,
        )

    async def _leased(self, bot_ids: list[int], now: float) -> list[tuple[int, LeasedCalls]]:
        lanes = await self._node.store.write(
            lambda c: webhooks.lease_calls(c, now, LEASE_SECONDS, bot_ids)
        )
        return [(lane.lease.receiver_id, lane) for lane in lanes]

    async def close(self) -> None:
        """Cancel running tasks, and end the processes of embedded bots."""
        await self.tasks.close()
        await self.embedded.host.close()

    def _owner_of(self, bot_id: int) -> int:
        """Return the bot's owner, or the bot itself."""
        user = self._node.state.users.get(bot_id)
        return bot_id if user is None else user.person_id

    async def _lane(self, lane: LeasedCalls) -> None:
        node, bot_id = self._node, lane.lease.receiver_id
        if lane.dropped:
            dropped = counted(lane.dropped, "message was", "messages were")
            reason = f"{dropped} dropped because too many were waiting for the service."
            self._note(bot_id, None, "given up", reason)
        results = await asyncio.gather(*(self._one(call) for call in lane.calls))
        failures = [failed for failed in results if failed is not None]
        done = [call.id for call, failed in zip(lane.calls, results, strict=True) if failed is None]
        now, number = node.clock(), lane.lease.failures + 1
        until = None
        if failures:
            longest = max(failures, key=lambda failure: failure.wait)
            until = now + longest.pause(
                number, FIRST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE, spread=0.25
            )
        trouble = str(failures[0]) if failures else ""
        await node.store.write(lambda c: webhooks.finish_calls(c, lane, done, now, until, trouble))
        if failures and number == NOTIFY_OWNER_AFTER:
            await self._tell_owner(bot_id, trouble)

    async def _one(self, waiting: QueuedCall) -> RetryLater | None:
        """Make one call. Return the error if it must be retried."""
        call = waiting.call
        try:
            outcome, reason = await self._attempt(waiting)
        except (RetryLater, DatabaseError, Unavailable) as error:
            failed = (
                error
                if isinstance(error, RetryLater)
                else RetryLater("The server was interrupted.")
            )
            if self._node.clock() - waiting.asked_at < GIVEN_UP_AFTER:
                self._note(call.bot_id, call, "failed", str(failed))
                return failed
            outcome, reason = "given up", str(failed)
        except Exception:  # A bug must not cause endless retries.
            logger.exception("could not call a bot's service")
            outcome, reason = "given up", INTERNAL_ERROR
        self._note(call.bot_id, call, outcome, reason)
        return None

    async def _attempt(self, waiting: QueuedCall) -> tuple[WebhookOutcome, str]:
        node, call = self._node, waiting.call
        bot = node.state.users.get(call.bot_id)
        if bot is not None and bot.is_active and bot.bot is not None and bot.bot.embedded:
            return await self._told(bot.id, waiting)
        service = None if bot is None or bot.bot is None else bot.bot.service
        if bot is None or service is None or not bot.is_active or not node.config.outgoing_webhooks:
            return "given up", "The bot no longer has a service."
        messages = await one_message(node, bot, call.message_id)
        if messages is None:
            return "nothing", "The message no longer exists, or the bot can't read it."
        message = messages.page.messages[0]
        token = node.vault.unsealed(service.token_sealed)
        details = messages.extras.details.get(message.id, NO_DETAILS)
        encoded = self._encode(node, bot, service, call, message, details, token)
        if encoded is None:
            return "nothing", "The service's format can't represent this message."
        signature = signed(token, encoded.body, node.clock())
        reply = await self._sent(service, encoded, signature, waiting)
        if is_temporary(reply.status):
            raise RetryLater(
                f"The service responded with status {reply.status}.", seconds_to_wait(reply.headers)
            )
        if not 200 <= reply.status < 300:
            return "given up", f"The service responded with status {reply.status}."
        return "delivered", await self._answered(bot, message, waiting, reply)

    async def _told(self, bot_id: int, waiting: QueuedCall) -> tuple[WebhookOutcome, str]:
        try:
            return await self.embedded.tell(bot_id, waiting)
        except BotUnavailable as error:
            raise RetryLater(str(error), error.wait) from None

    async def _sent(
        self, service: OutgoingService, encoded: EncodedCall, signature: str, waiting: QueuedCall
    ) -> WebResponse:
        headers = {
            "Content-Type": encoded.content_type,
            SIGNATURE: signature,
            DELIVERY: waiting.id,
        }
        try:
            return await self._node.services.send(
                service.url, encoded.body, headers, seconds=CALL_SECONDS, limit=MAX_RESPONSE
            )
        except NotFetched as error:
            raise RetryLater(f"Couldn't reach the service: {error}.") from None

    async def _answered(
        self, bot: User, message: Message, waiting: QueuedCall, reply: WebResponse
    ) -> str:
        """Send the service's response as a message. Return an error message if the response is
        invalid."""
        if not reply.body.strip():
            return ""
        try:
            answer = msgspec.json.decode(reply.body, type=_ServiceReply)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return "The service's response wasn't valid, so it wasn't sent."
        content = answer.content or answer.response_string or answer.text or ""
        if answer.response_not_required or not content.strip():
            return ""
        to = _destination(
            self._node, bot, message, only_to_asker=answer.response_type == "ephemeral"
        )
        form = answer.widget_content
        try:
            await sending.send_message(
                Caller(node=self._node, user_id=bot.id),
                to,
                short(content, names.MAX_MESSAGE),
                client="Outgoing webhook",
                read_by_sender=False,
                # A repeated call sends only one response.
                queue_id="service",
                local_id=waiting.id,
                form=None if form is None else _text_of(form),
            )
        except Refused as refusal:
            return f"The service's response couldn't be sent: {refusal}"[:500]
        return ""

    def _note(
        self, bot_id: int, call: ServiceCall | None, outcome: WebhookOutcome, reason: str
    ) -> None:
        line = WebhookLogEntry(
            at=self._node.clock(),
            direction="out",
            what=call.trigger if call else "",
            event=call.command if call else "",
            outcome=outcome,
            reason=reason[:500],
            message_id=call.message_id if call else None,
        )
        self._node.journal.note(bot_id, line)

    async def _tell_owner(self, bot_id: int, reason: str) -> None:
        node = self._node
        number = await node.store.read(webhooks.count_calls, bot_id)
        try:
            await node.log.submit(
                None, bots.notify_of_failures, bot_id, reason, number, node.renderer.render
            )
        except Refused:
            logger.info("could not notify the owner of a bot about its service")


def signed(token: str, body: bytes, now: float) -> str:
    """Return the signature: the time, and the HMAC of the time, a dot, and the body."""
    at = str(int(now))
    proof = hmac.new(token.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={proof}"


def _text_of(form: msgspec.Raw) -> str:
    """Return the text of a response. Some services send JSON, others a string that contains
    JSON."""
    decoded = msgspec.json.decode(form)
    return decoded if isinstance(decoded, str) else bytes(form).decode()


def _destination(
    node: Node, bot: User, message: Message, *, only_to_asker: bool
) -> ToChannel | ToPeople:
    """Return the message's conversation, or its sender alone."""
    if only_to_asker:
        return ToPeople(frozenset({message.sender_id}))
    if message.channel_id is not None:
        return ToChannel(topic=message.topic, channel_id=message.channel_id)
    members = node.state.directs[message.direct_id].members
    return ToPeople(frozenset(members) - {bot.id})


def services_web(config: Config) -> Web:
    """Return the HTTP client for services: any port, at public addresses and in
    `outgoing_webhook_networks`."""
    networks = addresses.networks(config.outgoing_webhook_networks)
    # A separate client, so that slow services don't delay other requests.
    max_concurrent = MAX_CONCURRENT * webhooks.MAX_PARALLEL
    return Web(config.external_url, ports=None, networks=networks, max_concurrent=max_concurrent)
