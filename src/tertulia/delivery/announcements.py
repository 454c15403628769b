"""Transient events on their way to other nodes: on a road of their own, so that no commit waits
behind them."""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from itertools import islice
from typing import Final

import msgspec

from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Transient, Typing

logger = logging.getLogger("tertulia.delivery")

MAX_WAITING: Final = 5_000
"""So many wait at most; beyond that the oldest are dropped."""
LATE_SECONDS: Final = 3.0
"""What has waited for longer is dropped."""
BATCH: Final = 250
"""So many are sent together at most."""
PAUSE_SECONDS: Final = 0.02
"""Between two batches, where there is always one more."""

_Waiting = OrderedDict[Hashable, tuple[float, Transient]]
"""Transient events by what they are about, each with the time since when."""


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

    def __len__(self) -> int:
        return len(self._waiting) + len(self._gone)

    def add(self, transient: Transient) -> None:
        """Send it, at once if nothing is being sent. It takes the place of one about the same thing
        that waits."""
        loop = asyncio.get_running_loop()
        waiting = self._gone if isinstance(transient, QueueGone) else self._waiting
        about = _about(transient)
        if about in waiting:
            transient = _merged(waiting[about][1], transient)
        elif len(waiting) >= MAX_WAITING:
            waiting.popitem(last=False)
        waiting[about] = loop.time(), transient
        if self._task is None:
            self._task = loop.create_task(self._work(), name="announcements")

    def received(self, text: str) -> Transient | None:
        """What another node announced by this text; None if it was this one."""
        node, transient = _decoder.decode(text)
        return None if node == self._node else transient

    async def close(self, seconds: float) -> None:
        """Send what waits, if that takes no longer than so many seconds."""
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=seconds)
            for task in pending:
                task.cancel()

    async def _work(self) -> None:
        try:
            while batch := self._next_batch():
                texts = [msgspec.json.encode((self._node, one)).decode() for one in batch]
                await self._send(texts)
                if self._waiting or self._gone:
                    await asyncio.sleep(PAUSE_SECONDS)
        except Exception:  # Nothing depends on them: what was lost is made up for by later ones.
            logger.exception("other nodes could not be told")
        finally:
            self._task = None

    def _next_batch(self) -> list[Transient]:
        """Those to be sent next; none where none that are still worth it are left."""
        found: list[Transient] = []
        oldest = asyncio.get_running_loop().time() - LATE_SECONDS
        while not found and len(self):
            found += [self._gone.pop(about)[1] for about in list(islice(self._gone, BATCH))]
            for about in list(islice(self._waiting, BATCH - len(found))):
                at, transient = self._waiting.pop(about)
                if at >= oldest:
                    found.append(transient)
        return found


_decoder = msgspec.json.Decoder(tuple[str, Transient])
"""Of an announcement: the node that it comes from, and the transient event."""


def _about(transient: Transient) -> Hashable:
    """What the transient event is about: of two about the same thing, the later one is enough."""
    match transient:
        case Typing(sender_id=sender_id):
            return Typing, sender_id, transient.recipients, transient.channel_id, transient.topic
        case EditTyping(sender_id=sender_id, message_id=message_id):
            return EditTyping, sender_id, message_id
        case PresenceChanged(user_id=user_id):
            return PresenceChanged, user_id
        case QueueGone(queue_id=queue_id):
            return QueueGone, queue_id


def _merged(earlier: Transient, later: Transient) -> Transient:
    """The later of two about the same thing, with what of the earlier one would be lost."""
    if isinstance(earlier, PresenceChanged) and isinstance(later, PresenceChanged):
        return msgspec.structs.replace(later, notable=earlier.notable or later.notable)
    return later
