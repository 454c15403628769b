"""Who has read imported messages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyroaring import BitMap

from tertulia.model.changes import ReadStateImported
from tertulia.model.ranges import ranges_of

USERS_AT_ONCE: Final = 500
"""Users whose read state is written by one change."""


class ImportedReads:
    """Who has read which imported messages, until it is written."""

    def __init__(self) -> None:
        self._every = BitMap()
        self._unread: dict[int, BitMap] = {}

    @property
    def size(self) -> int:
        """Messages whose state isn't written yet."""
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
        """Return the changes that mark them as read by these users, but for what is unread."""
        if not self._every:
            return []
        first, last = self._every.min(), self._every.max()
        whole = BitMap(range(first, last + 1))
        groups: dict[bytes, list[int]] = {}
        for user_id in user_ids:
            groups.setdefault(self._unread.get(user_id, BitMap()).serialize(), []).append(user_id)
        found = []
        for unread, users in groups.items():
            read = ranges_of(whole - BitMap.deserialize(unread), whole)
            for begin in range(0, len(users), USERS_AT_ONCE):
                some = tuple(users[begin : begin + USERS_AT_ONCE])
                found.append(
                    ReadStateImported(first_id=first, last_id=last, groups=((read, some),))
                )
        return found


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the IDs as runs: the first and the number; 0 and the number for zeros."""
    runs: list[tuple[int, int]] = []
    for one in ids:
        if runs:
            first, number = runs[-1]
            if one == (first + number if first else 0):
                runs[-1] = (first, number + 1)
                continue
        runs.append((one, 1))
    return runs


def ids_in(runs: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, number in runs:
        yield from range(first, first + number) if first else [0] * number
