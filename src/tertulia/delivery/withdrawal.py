"""What earlier entries must not show any more, because a later one deleted it, moved it to another
channel, or erased the person."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.delivery.cached_entry import CachedEntry
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

_NO_CONTENT: Final[dict[str, Any]] = {"message": None, "submessages": ()}


class Withdrawal:
    """The messages of a deletion, or of a move to another channel."""

    def __init__(self, message_ids: Sequence[int], moved_to: int | None) -> None:
        """`moved_to` is None for a deletion."""
        self._message_ids = BitMap(message_ids)
        self._moved_to = moved_to
        self._of_message: dict[str, Any] = {"moved_to": moved_to}
        if moved_to is None:
            self._of_message = {"gone": True}

    def concerns(self, messages: BitMap) -> bool:
        """Whether an entry about some of these messages may have to be revised."""
        return bool(self._message_ids.intersect(messages))

    def revised(self, cached: CachedEntry) -> Entry | None:
        """The earlier entry as it is shown from now on; None where it stays as it is."""
        found = cached.about & self._message_ids
        if not found:
            return None
        earlier, change = cached.entry, cached.entry.change
        if isinstance(change, MessageSent | MessageEdited | OnMessage):
            return replace(earlier, change=replace(change, **self._of_message))
        if isinstance(change, MessagesMoved):
            now_at = {at: BitMap.deserialize(ids) - found for at, ids in change.moved_on}
            now_at[self._moved_to] = now_at.get(self._moved_to, BitMap()) | found
            moved_on = tuple((at, ids.serialize()) for at, ids in now_at.items() if ids)
            arrivals = change.arrivals
            if self._moved_to is None:
                arrivals = tuple(
                    replace(one, **_NO_CONTENT) if one.message_id in found else one
                    for one in arrivals
                )
            return replace(earlier, change=replace(change, arrivals=arrivals, moved_on=moved_on))
        return None


class Erasure:
    """An account's person was erased."""

    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    def concerns(self, _: BitMap) -> bool:
        """Whether an entry about some of these messages, or about none, may be concerned."""
        return True

    def revised(self, cached: CachedEntry) -> Entry | None:
        """The earlier entry, to be shown anew, where it tells what the account was; else None."""
        earlier = cached.entry
        match earlier.change:
            case UserCreated(user=user):
                return earlier if user.id == self._user_id else None
            case UserChanged(user_id=user_id):
                return earlier if user_id == self._user_id else None
            case _:
                return None


def withdrawal_by(entry: Entry) -> Withdrawal | Erasure | None:
    """What the entry withdraws from those before it, if anything."""
    match entry.change:
        case MessagesDeleted(message_ids=ids):
            return Withdrawal(ids, None)
        case MessagesMoved(message_ids=ids, changes_channel=True, new_channel_id=channel_id):
            return Withdrawal(ids, channel_id)
        case UserChanged(user_id=user_id, values={"is_deleted": True}):
            return Erasure(user_id)
        case _:
            return None
