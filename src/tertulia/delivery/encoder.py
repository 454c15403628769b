"""Log entries in memory, and their encoding as events. The wire layer implements `Encoder`."""

import logging
from collections.abc import Callable, Collection, Hashable, Sequence
from sys import getsizeof
from typing import Any, Final, Protocol

from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.delivery.queue import Queue
from tertulia.model.changes import (
    Entry,
    MessageEdited,
    MessagesDeleted,
    MessageSent,
    MessagesMoved,
    OnMessage,
    UserChanged,
    UserCreated,
)
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import Transient

_NOTHING: Final = BitMap()
OVERHEAD = 1000
"""The number of bytes that an entry counts for in addition to its texts."""


def entry_size(entry: Entry) -> int:
    """Return the approximate size of an entry in memory."""
    change, size = entry.change, OVERHEAD
    match change:
        case MessageSent():
            size += change.message.text_size
        case MessageEdited():
            size += change.message.text_size
            size += getsizeof(change.was_content) + getsizeof(change.was_rendered)
        case MessagesMoved():
            size += 32 * len(change.message_ids) + len(change.whole_topic)
            size += sum(arrival.message.text_size for arrival in change.arrivals if arrival.message)
        case MessagesDeleted():
            size += 32 * len(change.message_ids)
        case _:
            pass
    return size


def _messages_of(entry: Entry) -> BitMap:
    change = entry.change
    if isinstance(change, MessageSent | MessageEdited):
        return BitMap((change.message.id,))
    if isinstance(change, OnMessage):
        return BitMap((change.place.id,))
    return change.ids if isinstance(change, MessagesMoved) else _NOTHING


class CachedEntry:
    """A committed entry with its encoded events per distinct view. The encoder manages `views`,
    `grouping` and `view_groups`."""

    __slots__ = ("about", "entry", "grouping", "size", "view_groups", "view_groups_at", "views")

    def __init__(self, entry: Entry) -> None:
        self.about = _messages_of(entry)
        """The messages whose deletion or move to another channel changes what the entry shows."""
        self.revise(entry)

    def revise(self, entry: Entry) -> None:
        """Replace the entry, and drop its encoded events."""
        self.entry = entry
        self.size = entry_size(entry)
        """The approximate size, in bytes, of the entry and its encoded events."""
        self.views: dict[Hashable, Any] = {}
        self.view_groups: dict[Hashable, Sequence[bytes]] = {}
        self.grouping: Any = None
        self.view_groups_at = 0
        """The sequence number of the state that `view_groups` and `grouping` are valid for."""


_NO_CONTENT: Final[dict[str, Any]] = {"message": None, "submessages": ()}


class Withdrawal:
    """Withdraws messages from earlier entries, because they were deleted or moved to another
    channel."""

    def __init__(self, message_ids: Sequence[int], moved_to: int | None) -> None:
        """Withdraw the messages. `moved_to` is None for a deletion."""
        self._message_ids = BitMap(message_ids)
        self._moved_to = moved_to
        self._of_message: dict[str, Any] = {"moved_to": moved_to}
        if moved_to is None:
            self._of_message = {"gone": True}

    def concerns(self, messages: BitMap) -> bool:
        """Return whether entries about these messages may have to be revised."""
        return bool(self._message_ids.intersect(messages))

    def revised(self, cached: CachedEntry) -> Entry | None:
        """Return an earlier entry in its new form; None if it doesn't change."""
        bitmap = cached.about & self._message_ids
        if not bitmap:
            return None
        earlier, change = cached.entry, cached.entry.change
        if isinstance(change, MessageSent | MessageEdited | OnMessage):
            return replace(earlier, change=replace(change, **self._of_message))
        if isinstance(change, MessagesMoved):
            now_at = {at: BitMap.deserialize(ids) - bitmap for at, ids in change.moved_on}
            now_at[self._moved_to] = now_at.get(self._moved_to, BitMap()) | bitmap
            moved_on = tuple((at, ids.serialize()) for at, ids in now_at.items() if ids)
            arrivals = change.arrivals
            if self._moved_to is None:
                arrivals = tuple(
                    replace(arrival, **_NO_CONTENT) if arrival.message_id in bitmap else arrival
                    for arrival in arrivals
                )
            return replace(earlier, change=replace(change, arrivals=arrivals, moved_on=moved_on))
        return None


class AccountErasure:
    """Withdraws an erased person's data from earlier entries."""

    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    def concerns(self, _: BitMap) -> bool:
        """Return True: any entry may have to be revised."""
        return True

    def revised(self, cached: CachedEntry) -> Entry | None:
        """Return the earlier entry, to be encoded again, if it contains the account's profile."""
        earlier = cached.entry
        match earlier.change:
            case UserCreated(user=user):
                return earlier if user.id == self._user_id else None
            case UserChanged(user_id=user_id):
                return earlier if user_id == self._user_id else None
            case _:
                return None


def withdrawal_by(entry: Entry) -> Withdrawal | AccountErasure | None:
    """Return the entry's effect on earlier entries, if any."""
    match entry.change:
        case MessagesDeleted(message_ids=ids):
            return Withdrawal(ids, None)
        case MessagesMoved(message_ids=ids, changes_channel=True, new_channel_id=channel_id):
            return Withdrawal(ids, channel_id)
        case UserChanged(user_id=user_id, values={"is_deleted": True}):
            return AccountErasure(user_id)
        case _:
            return None


logger = logging.getLogger("tertulia.delivery")


class Encoder(Protocol):
    """Encodes events. Every encoded event begins with its ID: `{"id":123,…`."""

    def audience(self, entry: Entry, /) -> Collection[int] | None:
        """Return the users who may get events from the entry; None for everyone. Queues that follow
        all public channels are always included."""

    def events_of(
        self, cached: CachedEntry, count: int = 1, /
    ) -> Callable[[QueueRecord], Sequence[bytes]]:
        """Return a function from a queue to the entry's events, valid for the current state. It is
        created once for all queues that are notified together, `count` being their approximate
        number."""

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        """Return the users who may get an event for it; None for everyone."""

    def transient(self, transient: Transient, queue: QueueRecord, event_id: int) -> bytes | None:
        """Return the queue's event, if it gets one."""

    def heartbeat(self, event_id: int) -> bytes:
        """Return an event that only shows that the connection is alive."""


class NotEncoded(Exception):
    """An entry couldn't be encoded for a queue. The queue must end so that its client fetches
    everything again: skipping the entry would leave the client with a wrong state."""


class GuardedEncoder:
    """An encoder whose errors are logged, and affect only one queue or one transient event."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def audience(self, entry: Entry) -> Collection[int] | None:
        """Return the same as `Encoder.audience`, or everyone if it fails."""
        try:
            return self._encoder.audience(entry)
        except Exception:
            # Each queue's view is still checked, and nobody should miss the entry because of a bug.
            logger.exception("could not determine the audience of entry %d", entry.seq)
            return None

    def events_of(self, cached: CachedEntry, count: int = 1) -> Callable[[Queue], Sequence[bytes]]:
        """Return the same as `Encoder.events_of`. The function raises NotEncoded, also if a queue's
        IDs are used up."""
        seq = cached.entry.seq
        try:
            encoded = self._encoder.events_of(cached, count)
        except Exception:
            # The other entries are still delivered. Clients that get this one register again.
            logger.exception("could not encode entry %d", seq)
            return _not_encoded

        def events(queue: Queue) -> Sequence[bytes]:
            if seq > queue.last_seq:
                logger.info("a queue of user %d ends: its event IDs are used up", queue.user_id)
                raise NotEncoded
            try:
                return encoded(queue.record)
            except OverflowError:
                # For example, a client that gets an event for each deleted message.
                logger.info(
                    "a queue of user %d ends: entry %d has too many events", queue.user_id, seq
                )
                raise NotEncoded from None
            except Exception:
                # The other queues still get their events.
                logger.exception("could not encode entry %d for user %d", seq, queue.user_id)
                raise NotEncoded from None

        return events

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        """Return the same as `Encoder.transient_audience`, or nobody if it fails."""
        try:
            return self._encoder.transient_audience(transient)
        except Exception:
            # Another node may refer to records that this one doesn't have yet, or no longer has.
            logger.exception("could not determine the audience of a transient event")
            return ()

    def transient(self, transient: Transient, queue: Queue, event_id: int) -> bytes | None:
        """Return the same as `Encoder.transient`, or None if it fails."""
        try:
            return self._encoder.transient(transient, queue.record, event_id)
        except Exception:
            # Nothing depends on it, and the other queues still get theirs.
            logger.exception("could not encode a transient event for user %d", queue.user_id)
            return None

    def heartbeat(self, event_id: int) -> bytes:
        return self._encoder.heartbeat(event_id)


def _not_encoded(_: Queue) -> Sequence[bytes]:
    raise NotEncoded
