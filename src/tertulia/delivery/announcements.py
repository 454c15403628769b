"""What nodes tell each other and do not write down, on a road of its own, so that no commit waits
behind it."""

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
"""So many wait at most; beyond that the oldest are dropped."""
LATE_SECONDS: Final = 3.0
"""What has waited for longer is dropped."""
BATCH: Final = 250
"""So many are sent together at most."""
PIECE: Final = 1500
"""Characters of one piece of an announcement that does not fit into one text: in JSON within JSON,
and in UTF-8, they still do."""
MOST_PIECES: Final = 200
"""Pieces that an announcement may have. A larger one is not sent, and logged as an error."""
MOST_INCOMPLETE: Final = 20
"""Announcements whose pieces are waited for. Beyond that, the oldest is given up, as is one that is
not complete after `LATE_SECONDS`."""
PAUSE_SECONDS: Final = 0.02
"""Between two batches, where there is always one more."""

_Waiting = OrderedDict[Hashable, tuple[float, Announcement]]
"""Announcements by what they are about, each with the time since when."""


class Announcements:
    """What waits to be sent to other nodes, the latest of each thing."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """`send` returns when the texts have been sent to all nodes."""
        self._send = send
        self._node = f"{random.getrandbits(64):016x}"
        self._waiting: _Waiting = OrderedDict()
        self._gone: _Waiting = OrderedDict()
        """Queues that were deleted, which is never too late to say."""
        self._task: asyncio.Task[None] | None = None
        self._incomplete: OrderedDict[tuple[str, str], dict[int, str]] = OrderedDict()
        """Pieces by node and announcement."""
        self._listeners: dict[type, Callable[[Any], None]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._gone)

    def waits(self, announcement: Announcement) -> bool:
        """Whether one about the same thing waits to be sent."""
        return _about(announcement) in self._waiting

    def add(self, announcement: Announcement) -> None:
        """Send it, at once if nothing is being sent. It takes the place of one about the same thing
        that waits."""
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
        """Call the listener with announcements of that kind by other nodes."""
        self._listeners[kind] = listener

    def on_text(self, text: str) -> None:
        """A node has sent this text, perhaps this one."""
        announcement = self.received(text)
        if announcement is not None and (listener := self._listeners.get(type(announcement))):
            listener(announcement)

    def received(self, text: str) -> Announcement | None:
        """What another node announced by this text. None if it was this one, or one of another
        version, whose announcement has no meaning here."""
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
        """Keep a piece. Returns the whole text once all of it is here."""
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
        """Return the texts by which the announcement is sent: mostly one."""
        text = msgspec.json.encode((self._node, announcement)).decode()
        if len(text.encode()) <= MAX_BYTES:
            return [text]
        count = -(-len(text) // PIECE)
        if count > MOST_PIECES:
            logger.error(
                "an announcement is too large for other nodes",
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
        """Send what waits, if that takes no longer than so many seconds, and nothing more."""
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
            logger.exception("other nodes could not be told")
        finally:
            self._task = None

    def _next_batch(self) -> list[Announcement]:
        """Those to be sent next; none where none that are still worth it are left."""
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
"""Of a text: the node that it comes from, and what it announces."""


def _about(announced: Announcement) -> Hashable:
    """What the announcement is about: of two about the same thing, the later one is enough."""
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
    """The later of two about the same thing, with what of the earlier one would be lost."""
    if isinstance(earlier, PresenceChanged) and isinstance(later, PresenceChanged):
        return msgspec.structs.replace(later, notable=earlier.notable or later.notable)
    return later
