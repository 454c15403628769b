"""Idempotent sends: repeating a request doesn't send the message twice."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from tertulia.model.changes import AnyChange, MessageSent
from tertulia.model.channels import topic_key
from tertulia.state.messages import DirectConversationTable

KEPT: Final = 10_000
"""Remembered sends. The oldest are forgotten first."""
RECALLED: Final = KEPT
"""Entries at the end of the log that are searched for sends when the state is loaded, so that sends
are recognized after a restart."""

_Key = tuple[int, str]
"""The sender, and a digest of the request."""


def request_digest(queue_id: str, local_id: str, *asked: str) -> str:
    """Return a digest of what a client asked to send, such as destination and content.

    Some clients use a local ID for several messages, so the digest is part of the key. It is kept
    with the log's entry, because the message may be edited or moved before the send is repeated;
    the IDs are its salt.
    """
    parts = (queue_id, local_id, *asked)
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def channel_destination(channel_id: int, topic: str) -> tuple[str, ...]:
    """Return a topic as part of a request's digest."""
    return "channel", str(channel_id), topic_key(topic)


def direct_destination(members: Iterable[int]) -> tuple[str, ...]:
    """Return a direct conversation as part of a request's digest."""
    return "direct", *map(str, sorted(members))


class SentMessages:
    """The newest messages that were sent with a queue ID and a local ID."""

    def __init__(self, directs: DirectConversationTable) -> None:
        self._directs = directs
        self._ids: OrderedDict[_Key, int] = OrderedDict()

    def note(self, change: AnyChange) -> None:
        """Remember the message if it was sent with a queue ID and a local ID."""
        if not isinstance(change, MessageSent) or not (change.queue_id and change.local_id):
            return
        digest = change.request_digest or self._digest(change, change.queue_id, change.local_id)
        self._ids[change.message.sender_id, digest] = change.message.id
        while len(self._ids) > KEPT:
            self._ids.popitem(last=False)

    def _digest(self, change: MessageSent, queue_id: str, local_id: str) -> str:
        """Return the digest of a send without one, from version 0.1."""
        message = change.message
        if message.direct_id is not None:
            place = direct_destination(self._directs[message.direct_id].members)
        else:
            place = channel_destination(message.channel_id or 0, message.topic)
        return request_digest(queue_id, local_id, *place, message.content, "")

    def recall(self, changes: Iterable[AnyChange]) -> None:
        """Remember the sends among the log's last entries, oldest first."""
        for change in changes:
            self.note(change)

    def find(self, sender_id: int, digest: str) -> int | None:
        """Return the ID of the message that the same request sent before, if any."""
        return self._ids.get((sender_id, digest))
