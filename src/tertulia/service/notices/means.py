"""How people are told: the side of notices that knows nothing of who is told, and why."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from tertulia.domain.notices.rules import Way
from tertulia.store.database import Connection


class Told(Struct, frozen=True, kw_only=True):
    """Somebody who is to be told now of messages of one conversation that they have not read, and
    may read."""

    user_id: int
    message_ids: tuple[int, ...]
    """Ascending."""


class Means(Protocol):
    """Something that tells people in one way."""

    @property
    def way(self) -> Way: ...

    def records(self, told: Sequence[Told], now: float) -> Callable[[Connection], None]:
        """What will tell them, to be written down inside the transaction that takes the notices
        away: so that each notice becomes that, once. Whatever sends it does so afterwards."""

    def written(self) -> None:
        """What was recorded is on disk."""
