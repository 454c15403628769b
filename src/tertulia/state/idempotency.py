"""Which messages were sent recently, by their idempotency keys: a client that sends a message once
more because it got no answer makes no second one."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from tertulia.model.changes import AnyChange, MessageSent

KEPT: Final = 10_000
"""Messages that are remembered; the oldest are forgotten first."""
RECALLED: Final = 2000
"""Of the newest entries of the log that many are looked at when the state is loaded."""

_Attempt = tuple[int, str, str, bytes]
"""The sender, the client's idempotency key (its queue and local ID), and a digest of the content:
some clients use a local ID again."""


class SentMessages:
    """The newest messages that were sent with an idempotency key: a queue's ID and a local ID."""

    def __init__(self) -> None:
        self._ids: OrderedDict[_Attempt, int] = OrderedDict()

    def note(self, change: AnyChange) -> None:
        """Remember the message, if the change is one that was sent with an idempotency key."""
        if not isinstance(change, MessageSent) or not (change.queue_id and change.local_id):
            return
        message = change.message
        digest = _digest(message.content)
        self._ids[message.sender_id, change.queue_id, change.local_id, digest] = message.id
        while len(self._ids) > KEPT:
            self._ids.popitem(last=False)

    def recall(self, changes: Iterable[AnyChange]) -> None:
        """Remember the messages of the log's last entries, oldest first, at loading."""
        for change in changes:
            self.note(change)

    def find(
        self, sender_id: int, queue_id: str | None, local_id: str | None, content: str
    ) -> int | None:
        """The ID of the message that the same attempt made before; None where there is none."""
        if not (queue_id and local_id):
            return None
        return self._ids.get((sender_id, queue_id, local_id, _digest(content)))


def _digest(content: str) -> bytes:
    return hashlib.blake2b(content.encode(), digest_size=16).digest()
