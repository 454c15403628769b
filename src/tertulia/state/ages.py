"""An index of members by when they joined, for those who wait to become full members."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from tertulia.model.users import Role, User
from tertulia.state.tables import Table

_EVERY_ID = 2**62
"""More than any ID: after all of one second."""


class Ages:
    """The active members (by role), oldest first."""

    def __init__(self, users: Table[User]) -> None:
        self._joined: list[tuple[int, int]] = []
        """When, and who."""
        users.watch(self._index)

    def _index(self, before: User | None, after: User | None) -> None:
        was, now = _place(before), _place(after)
        if was == now:
            return
        if was is not None:
            del self._joined[bisect_left(self._joined, was)]
        if now is not None:
            insort(self._joined, now)

    def joined(self, after: int | None, until: int | None) -> Sequence[int]:
        """Who joined later than the one and not later than the other (UNIX seconds, None for no
        limit), ascending."""
        begin = 0 if after is None else bisect_right(self._joined, (after, _EVERY_ID))
        end = len(self._joined) if until is None else bisect_right(self._joined, (until, _EVERY_ID))
        return sorted(user_id for _, user_id in self._joined[begin:end])

    def next(self, after: int) -> int | None:
        """When the first of those joined who joined later than that."""
        index = bisect_right(self._joined, (after, _EVERY_ID))
        return self._joined[index][0] if index < len(self._joined) else None


def _place(user: User | None) -> tuple[int, int] | None:
    if user is None or not user.is_active or user.is_system_bot or user.role is not Role.MEMBER:
        return None
    return user.joined_at, user.id
