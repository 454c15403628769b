"""Idempotent sends: repeating a send that was not answered makes no second message."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from tertulia.model.changes import AnyChange, MessageSent

KEPT: Final = 10_000
"""Sends that are remembered. The oldest are forgotten first."""
RECALLED: Final = KEPT
"""Entries at the end of the log that are searched for sends when the state is loaded. So a send is
recognized, also after a restart, until this many entries have followed it."""

_Key = tuple[int, str]
"""The sender, and a digest of the IDs and of what was asked for: the IDs themselves may be long."""


def request_digest(queue_id: str, local_id: str, *asked: str) -> str:
    """Return a digest of what a client asked to send, such as destination and content.

    Some clients use a local ID for several messages, so the digest is part of the key. It is kept
    with the log's entry, because the message may be edited or moved before the send is repeated;
    the IDs are its salt.
    """
    parts = (queue_id, local_id, *asked)
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class SentMessages:
    """The newest messages that were sent with a queue ID and a local ID."""

    def __init__(self) -> None:
        self._ids: OrderedDict[_Key, int] = OrderedDict()

    def note(self, change: AnyChange) -> None:
        """Remember the message if the change is a send with a request digest."""
        if not isinstance(change, MessageSent) or not change.request_digest:
            return
        self._ids[change.message.sender_id, change.request_digest] = change.message.id
        while len(self._ids) > KEPT:
            self._ids.popitem(last=False)

    def recall(self, changes: Iterable[AnyChange]) -> None:
        """Remember the sends among the log's last entries, oldest first."""
        for change in changes:
            self.note(change)

    def find(self, sender_id: int, digest: str) -> int | None:
        """Return the ID of the message that the same request sent before, if any."""
        return self._ids.get((sender_id, digest))
