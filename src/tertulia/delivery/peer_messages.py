"""Messages between nodes that aren't stored, sent apart from the log so that no commit waits
for them."""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tertulia.model.peer_messages import LimitsCharged, PeerMessage, PeerMessagePiece, SignedInFrom
from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Typing
from tertulia.store.broadcast import MAX_BYTES

logger = logging.getLogger("tertulia.delivery")

A = TypeVar("A", bound=PeerMessage)

MAX_WAITING: Final = 5_000
"""The most messages that can wait. Beyond it, the oldest are dropped."""
LATE_SECONDS: Final = 3.0
"""Messages that have waited longer than this many seconds are dropped."""
BATCH: Final = 250
"""The most texts that are sent together."""
PIECE: Final = 1500
"""The length, in characters, of the pieces of a large message. It fits into one text even as
JSON within JSON and in UTF-8."""
MOST_PIECES: Final = 200
"""The most pieces of a message. A larger message isn't sent, but logged as an error."""
MOST_INCOMPLETE: Final = 20
"""The most incomplete messages. Beyond it, the oldest is dropped, as is one that isn't complete
after `LATE_SECONDS`."""
PAUSE_SECONDS: Final = 0.02
"""The pause between batches."""

_Waiting = OrderedDict[Hashable, tuple[float, PeerMessage]]
"""Messages by subject, each with the time when it was added."""


class PeerMessages:
    """Sends messages to other nodes, the latest about each subject, and receives theirs."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """Create the sender. `send` returns when the texts have been sent to all nodes."""
        self._send = send
        self._node = f"{random.getrandbits(64):016x}"
        self._waiting: _Waiting = OrderedDict()
        self._gone: _Waiting = OrderedDict()
        """Messages about deleted queues, which are never too late."""
        self._task: asyncio.Task[None] | None = None
        self._incomplete: OrderedDict[tuple[str, str], dict[int, str]] = OrderedDict()
        """Pieces by node and message."""
        self._listeners: dict[type, Callable[[Any], None]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._gone)

    def waits(self, message: PeerMessage) -> bool:
        """Return whether a message about the same subject waits to be sent."""
        return _about(message) in self._waiting

    def add(self, message: PeerMessage) -> None:
        """Send the message, immediately if nothing is being sent. It replaces one about the
        same subject that waits."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        waiting = self._gone if isinstance(message, QueueGone) else self._waiting
        about = _about(message)
        if about in waiting:
            message = _merged(waiting[about][1], message)
        elif len(waiting) >= MAX_WAITING:
            waiting.popitem(last=False)
        waiting[about] = loop.time(), message
        if self._task is None:
            self._task = loop.create_task(self._work(), name="peer-messages")

    def listen(self, kind: type[A], listener: Callable[[A], None]) -> None:
        """Call the listener with other nodes' messages of this kind."""
        self._listeners[kind] = listener

    def on_text(self, text: str) -> None:
        """Handle a text from any node, possibly this one."""
        message = self.received(text)
        if message is not None and (listener := self._listeners.get(type(message))):
            listener(message)

    def received(self, text: str) -> PeerMessage | None:
        """Return the message of another node. Return None if this node sent it, or another version,
        whose messages may have another meaning."""
        try:
            node, message = _decoder.decode(text)
        except msgspec.DecodeError:
            return None
        if node == self._node:
            return None
        if isinstance(message, PeerMessagePiece):
            whole = self._put_together(node, message)
            return None if whole is None else self.received(whole)
        return message

    def _put_together(self, node: str, piece: PeerMessagePiece) -> str | None:
        """Store a piece. Return the text once it is complete."""
        key = (node, piece.whole)
        pieces = self._incomplete.get(key)
        if pieces is None:
            pieces = self._incomplete[key] = {}
            loop = asyncio.get_running_loop()
            loop.call_later(LATE_SECONDS, self._incomplete.pop, key, None)
        pieces[piece.number] = piece.text
        if len(pieces) < min(piece.count, MOST_PIECES):
            while len(self._incomplete) > MOST_INCOMPLETE:
                self._incomplete.popitem(last=False)
            return None
        del self._incomplete[key]
        return "".join(pieces[number] for number in sorted(pieces))

    def _texts(self, message: PeerMessage) -> list[str]:
        """Return the texts to send for the message, usually one."""
        text = msgspec.json.encode((self._node, message)).decode()
        if len(text.encode()) <= MAX_BYTES:
            return [text]
        count = -(-len(text) // PIECE)
        if count > MOST_PIECES:
            logger.error(
                "a message is too large to be sent to other nodes",
                extra={"fields": {"size": len(text)}},
            )
            return []
        whole = f"{random.getrandbits(64):016x}"
        pieces = (
            PeerMessagePiece(
                whole=whole,
                number=number,
                count=count,
                text=text[number * PIECE : (number + 1) * PIECE],
            )
            for number in range(count)
        )
        return [msgspec.json.encode((self._node, piece)).decode() for piece in pieces]

    async def close(self, seconds: float) -> None:
        """Send waiting messages, for up to `seconds`, and nothing afterwards."""
        self._is_closed = True
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=seconds)
            for task in pending:
                task.cancel()

    async def _work(self) -> None:
        try:
            while batch := self._next_batch():
                texts = [text for item in batch for text in self._texts(item)]
                for begin in range(0, len(texts), BATCH):
                    await self._send(texts[begin : begin + BATCH])
                if self._waiting or self._gone:
                    await asyncio.sleep(PAUSE_SECONDS)
        except Exception:  # Nothing depends on them, because later messages make up for lost ones.
            logger.exception("could not send messages to other nodes")
        finally:
            self._task = None

    def _next_batch(self) -> list[PeerMessage]:
        """Return the next messages to send, without outdated ones."""
        result: list[PeerMessage] = []
        oldest = asyncio.get_running_loop().time() - LATE_SECONDS
        while not result and len(self):
            result += [self._gone.pop(about)[1] for about in list(islice(self._gone, BATCH))]
            for about in list(islice(self._waiting, BATCH - len(result))):
                at, message = self._waiting.pop(about)
                if at >= oldest:
                    result.append(message)
        return result


_decoder = msgspec.json.Decoder(tuple[str, PeerMessage])
"""Decodes a text to its node and message."""


def _about(message: PeerMessage) -> Hashable:
    """Return the message's subject: the latest about each subject is enough."""
    match message:
        case Typing(sender_id=sender_id):
            return Typing, sender_id, message.recipients, message.channel_id, message.topic
        case EditTyping(sender_id=sender_id, message_id=message_id):
            return EditTyping, sender_id, message_id
        case PresenceChanged(user_id=user_id):
            return PresenceChanged, user_id
        case QueueGone(queue_id=queue_id):
            return QueueGone, queue_id
        case SignedInFrom(mark=mark):
            return SignedInFrom, mark
        case LimitsCharged():
            return LimitsCharged
        case PeerMessagePiece(whole=whole, number=number):
            return PeerMessagePiece, whole, number


def _merged(earlier: PeerMessage, later: PeerMessage) -> PeerMessage:
    """Return the later of two messages about a subject, including data that only the earlier one
    has."""
    if isinstance(earlier, PresenceChanged) and isinstance(later, PresenceChanged):
        return msgspec.structs.replace(later, notable=earlier.notable or later.notable)
    return later
