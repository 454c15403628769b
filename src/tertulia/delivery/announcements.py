"""What this node tells the others that is not written down: on a road of its own, so that no commit
waits behind it."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from itertools import islice
from typing import Final

import msgspec

from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Transient, Typing

logger = logging.getLogger("tertulia.delivery")

WAITING: Final = 5_000
"""So many wait at most; then the oldest are dropped."""
LATE_SECONDS: Final = 3.0
"""What has waited for so long is told to nobody any more."""
AT_ONCE: Final = 250
"""So many are told together at most."""
PAUSE_SECONDS: Final = 0.02
"""Between two tellings, where there is always more to tell."""


class Announcements:
    """What waits to be told, the latest of each thing."""

    def __init__(
        self,
        tell: Callable[[Sequence[str]], Awaitable[None]],
        encode: Callable[[Transient], str],
    ) -> None:
        """`tell` returns when the others have been told."""
        self._tell = tell
        self._encode = encode
        self._waiting: OrderedDict[Hashable, tuple[float, Transient]] = OrderedDict()
        self._gone: OrderedDict[Hashable, tuple[float, Transient]] = OrderedDict()
        """Queues that were deleted: that is true later as well."""
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._gone)

    def add(self, transient: Transient) -> None:
        """Tell it, at once where nothing else is being told. What waits about the same thing is
        told no more."""
        loop = asyncio.get_running_loop()
        waiting = self._gone if isinstance(transient, QueueGone) else self._waiting
        about = _about(transient)
        if about in waiting:
            transient = _merged(waiting[about][1], transient)
        elif len(waiting) >= WAITING:
            waiting.popitem(last=False)
        waiting[about] = loop.time(), transient
        if self._task is None:
            self._task = loop.create_task(self._work(), name="announcements")

    async def close(self, seconds: float) -> None:
        """Tell what waits, if that takes no longer than so many seconds."""
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=seconds)
            for task in pending:
                task.cancel()

    async def _work(self) -> None:
        try:
            while told := self._taken():
                await self._tell([self._encode(transient) for transient in told])
                if self._waiting or self._gone:
                    await asyncio.sleep(PAUSE_SECONDS)
        except Exception:  # They are doorbells: what was lost is told by the next ones.
            logger.exception("other nodes could not be told")
        finally:
            self._task = None

    def _taken(self) -> list[Transient]:
        """The next ones to be told; nothing where none are left that are worth it."""
        found: list[Transient] = []
        oldest = asyncio.get_running_loop().time() - LATE_SECONDS
        while not found and len(self):
            found += [self._gone.pop(about)[1] for about in list(islice(self._gone, AT_ONCE))]
            for about in list(islice(self._waiting, AT_ONCE - len(found))):
                at, transient = self._waiting.pop(about)
                if at >= oldest:
                    found.append(transient)
        return found


def _about(transient: Transient) -> Hashable:
    """What the transient is about: of two about the same thing, the later one is enough."""
    match transient:
        case Typing(sender_id=sender_id):
            return Typing, sender_id, transient.recipients, transient.channel_id, transient.topic
        case EditTyping(sender_id=sender_id, message_id=message_id):
            return EditTyping, sender_id, message_id
        case PresenceChanged(user_id=user_id):
            return PresenceChanged, user_id
        case QueueGone(queue_id=queue_id):
            return QueueGone, queue_id


def _merged(before: Transient, now: Transient) -> Transient:
    """The later of two about the same thing, with what would be lost of the earlier one."""
    if isinstance(before, PresenceChanged) and isinstance(now, PresenceChanged):
        return msgspec.structs.replace(now, notable=before.notable or now.notable)
    return now
