"""The read state of imported messages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyroaring import BitMap

from tertulia.model.changes import ReadStateImported
from tertulia.model.ranges import ranges_of

USER_BATCH: Final = 500
"""Users whose read state is written by one change."""


class ImportedReads:
    """Collects who has read which imported messages, until it's written."""

    def __init__(self) -> None:
        self._every = BitMap()
        self._unread: dict[int, BitMap] = {}

    @property
    def size(self) -> int:
        """Return the number of messages whose read state isn't written yet."""
        return len(self._every)

    def add(self, message_id: int, unread_by: Sequence[int]) -> None:
        self._every.add(message_id)
        for user_id in unread_by:
            self._unread.setdefault(user_id, BitMap()).add(message_id)

    def clear(self) -> None:
        """Forget what has been written."""
        self._every.clear()
        self._unread.clear()

    def changes(self, user_ids: Sequence[int]) -> list[ReadStateImported]:
        """Return the changes that mark the messages as read by these users, except the unread
        ones."""
        if not self._every:
            return []
        first, last = self._every.min(), self._every.max()
        whole = BitMap(range(first, last + 1))
        groups: dict[bytes, list[int]] = {}
        for user_id in user_ids:
            groups.setdefault(self._unread.get(user_id, BitMap()).serialize(), []).append(user_id)
        states = []
        for unread, users in groups.items():
            read = ranges_of(whole - BitMap.deserialize(unread), whole)
            for begin in range(0, len(users), USER_BATCH):
                some = tuple(users[begin : begin + USER_BATCH])
                states.append(
                    ReadStateImported(first_id=first, last_id=last, groups=((read, some),))
                )
        return states


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the IDs as runs: the first ID and the length, where 0 stands for zeros."""
    runs: list[tuple[int, int]] = []
    for message_id in ids:
        if runs:
            first, number = runs[-1]
            if message_id == (first + number if first else 0):
                runs[-1] = (first, number + 1)
                continue
        runs.append((message_id, 1))
    return runs


def ids_in(runs: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, number in runs:
        yield from range(first, first + number) if first else [0] * number
