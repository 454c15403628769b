"""Announcements between nodes that aren't stored, sent apart from the log so that no commit waits
for them."""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tertulia.model.announcements import (
    Announcement,
    AnnouncementPiece,
    LimitsCharged,
    SignedInFrom,
)
from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Typing
from tertulia.store.broadcast import MAX_BYTES

logger = logging.getLogger("tertulia.delivery")

A = TypeVar("A", bound=Announcement)

MAX_WAITING: Final = 5_000
"""The number of announcements that may wait; beyond it the oldest are dropped."""
LATE_SECONDS: Final = 3.0
"""Announcements that have waited longer are dropped."""
BATCH: Final = 250
"""The number of texts that are sent together."""
PIECE: Final = 1500
"""The length, in characters, of the pieces of a large announcement. It fits into one text even as
JSON within JSON and in UTF-8."""
MOST_PIECES: Final = 200
"""The number of pieces of an announcement. A larger one isn't sent, but logged as an error."""
MOST_INCOMPLETE: Final = 20
"""The number of incomplete announcements. Beyond it the oldest is dropped, as is one that isn't
complete after `LATE_SECONDS`."""
PAUSE_SECONDS: Final = 0.02
"""The pause between batches."""

_Waiting = OrderedDict[Hashable, tuple[float, Announcement]]
"""Announcements by subject, each with the time when it was added."""


class Announcements:
    """Sends announcements to other nodes, the latest about each subject, and receives theirs."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """`send` returns when the texts have been sent to all nodes."""
        self._send = send
        self._node = f"{random.getrandbits(64):016x}"
        self._waiting: _Waiting = OrderedDict()
        self._gone: _Waiting = OrderedDict()
        """Deleted queues, whose announcements are never too late."""
        self._task: asyncio.Task[None] | None = None
        self._incomplete: OrderedDict[tuple[str, str], dict[int, str]] = OrderedDict()
        """Pieces by node and announcement."""
        self._listeners: dict[type, Callable[[Any], None]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._gone)

    def waits(self, announcement: Announcement) -> bool:
        """Return whether an announcement about the same subject waits to be sent."""
        return _about(announcement) in self._waiting

    def add(self, announcement: Announcement) -> None:
        """Send the announcement, immediately if nothing is being sent. It replaces one about the
        same subject that waits."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        waiting = self._gone if isinstance(announcement, QueueGone) else self._waiting
        about = _about(announcement)
        if about in waiting:
            announcement = _merged(waiting[about][1], announcement)
        elif len(waiting) >= MAX_WAITING:
            waiting.popitem(last=False)
        waiting[about] = loop.time(), announcement
        if self._task is None:
            self._task = loop.create_task(self._work(), name="announcements")

    def listen(self, kind: type[A], listener: Callable[[A], None]) -> None:
        """Call the listener with other nodes' announcements of this kind."""
        self._listeners[kind] = listener

    def on_text(self, text: str) -> None:
        """Handle a text from any node, possibly this one."""
        announcement = self.received(text)
        if announcement is not None and (listener := self._listeners.get(type(announcement))):
            listener(announcement)

    def received(self, text: str) -> Announcement | None:
        """Return what another node announced. None if this node did, or another version, whose
        announcement means nothing here."""
        try:
            node, announcement = _decoder.decode(text)
        except msgspec.DecodeError:
            return None
        if node == self._node:
            return None
        if isinstance(announcement, AnnouncementPiece):
            whole = self._put_together(node, announcement)
            return None if whole is None else self.received(whole)
        return announcement

    def _put_together(self, node: str, piece: AnnouncementPiece) -> str | None:
        """Store a piece. Returns the text once it is complete."""
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

    def _texts(self, announcement: Announcement) -> list[str]:
        """Return the texts to send for the announcement, usually one."""
        text = msgspec.json.encode((self._node, announcement)).decode()
        if len(text.encode()) <= MAX_BYTES:
            return [text]
        count = -(-len(text) // PIECE)
        if count > MOST_PIECES:
            logger.error(
                "an announcement is too large to be sent to other nodes",
                extra={"fields": {"size": len(text)}},
            )
            return []
        whole = f"{random.getrandbits(64):016x}"
        pieces = (
            AnnouncementPiece(
                whole=whole,
                number=number,
                count=count,
                text=text[number * PIECE : (number + 1) * PIECE],
            )
            for number in range(count)
        )
        return [msgspec.json.encode((self._node, piece)).decode() for piece in pieces]

    async def close(self, seconds: float) -> None:
        """Send what waits, for up to `seconds`, and nothing afterwards."""
        self._is_closed = True
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=seconds)
            for task in pending:
                task.cancel()

    async def _work(self) -> None:
        try:
            while batch := self._next_batch():
                texts = [text for one in batch for text in self._texts(one)]
                for begin in range(0, len(texts), BATCH):
                    await self._send(texts[begin : begin + BATCH])
                if self._waiting or self._gone:
                    await asyncio.sleep(PAUSE_SECONDS)
        except Exception:  # Nothing depends on them: what was lost is made up for by later ones.
            logger.exception("could not send announcements to other nodes")
        finally:
            self._task = None

    def _next_batch(self) -> list[Announcement]:
        """Return the next announcements to send, without outdated ones."""
        found: list[Announcement] = []
        oldest = asyncio.get_running_loop().time() - LATE_SECONDS
        while not found and len(self):
            found += [self._gone.pop(about)[1] for about in list(islice(self._gone, BATCH))]
            for about in list(islice(self._waiting, BATCH - len(found))):
                at, announcement = self._waiting.pop(about)
                if at >= oldest:
                    found.append(announcement)
        return found


_decoder = msgspec.json.Decoder(tuple[str, Announcement])
"""Decodes a text to its node and announcement."""


def _about(announced: Announcement) -> Hashable:
    """Return the announcement's subject: the latest about each subject is enough."""
    match announced:
        case Typing(sender_id=sender_id):
            return Typing, sender_id, announced.recipients, announced.channel_id, announced.topic
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
        case AnnouncementPiece(whole=whole, number=number):
            return AnnouncementPiece, whole, number


def _merged(earlier: Announcement, later: Announcement) -> Announcement:
    """Return the later of two announcements about a subject, with what the earlier one adds."""
    if isinstance(earlier, PresenceChanged) and isinstance(later, PresenceChanged):
        return msgspec.structs.replace(later, notable=earlier.notable or later.notable)
    return later
