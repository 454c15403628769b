"""How people are told: the side of notices that knows nothing of who is told, and why."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.notifications.rules import Way
from tertulia.store.database import Connection

IDLE_PATIENCE: Final = 1.0
"""The patience of means by which nobody is told at once."""


class Told(Struct, frozen=True, kw_only=True):
    """Somebody who is to be told now of messages of one conversation that they have not read, and
    may read."""

    user_id: int
    conversation: str
    """What the messages have in common (`conversation_name`)."""
    message_ids: tuple[int, ...]
    """Ascending."""


class Means(Protocol):
    """Something that tells people in one way."""

    @property
    def way(self) -> Way: ...

    @property
    def patience(self) -> float:
        """Seconds between two looks at what was written: what came meanwhile is looked at
        together, and written down in one transaction."""

    @property
    def reaches_somebody(self) -> bool:
        """Whether anybody can be told so at all. Else nobody looks whom messages concern."""

    def reached(self, people: BitMap) -> BitMap:
        """Those of the people who can be told so at all."""

    def records(self, told: Sequence[Told], now: float) -> Callable[[Connection], None]:
        """What will tell them, to be written down inside the transaction that takes the notices
        away: so that each notice becomes that, once. Whatever sends it does so afterwards."""

    def recorded(self) -> None:
        """What was recorded is on disk."""
