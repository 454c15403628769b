"""What a verb sees when it decides, and what it answers."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from tertulia.model.changes import AnyChange
from tertulia.model.mail import Mail
from tertulia.model.users import User
from tertulia.state.state import State

T = TypeVar("T")


class CommandContext(Struct, frozen=True):
    """The point of the log at which a command decides."""

    state: State
    now: float
    """UNIX seconds."""
    actor_id: int | None
    """None for the server itself, which only some verbs allow."""

    @property
    def actor(self) -> User:
        """The account in whose name the command is."""
        return self.state.users[self.actor_id]


class Decision(Struct, Generic[T], frozen=True):
    """The changes that a command asks for, in order, and what it answers when they are made.

    `mails` are stored in the same commit, and sent afterwards.
    """

    result: T
    changes: Sequence[AnyChange] = ()
    mails: Sequence[Mail] = ()


Verb = Callable[..., Decision[T]]
"""A command: `verb(context, *arguments)`. It raises `Refused`, or decides; it does no I/O, and it
does not alter the state: what it asks for is folded when it has returned."""
