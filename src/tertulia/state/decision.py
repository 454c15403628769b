"""The input and output of verbs."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from tertulia.model.changes import AnyChange
from tertulia.model.mail import Mail
from tertulia.model.users import User
from tertulia.state.state import State

T = TypeVar("T")


class CommandContext(Struct, frozen=True):
    """What a verb sees: the state, the time, and the actor."""

    state: State
    now: float
    """UNIX seconds."""
    actor_id: int | None
    """None for the server itself, which only some verbs allow."""

    @property
    def actor(self) -> User:
        return self.state.users[self.actor_id]


class Decision(Struct, Generic[T], frozen=True):
    """The output of a verb: changes, in order, and the result for the caller once they are
    committed.

    `mails` are stored in the same commit, and sent afterwards.
    """

    result: T
    changes: Sequence[AnyChange] = ()
    mails: Sequence[Mail] = ()


Verb = Callable[..., Decision[T]]
"""A command: `verb(context, *arguments)`. It raises `Refused` or decides. It does no I/O and
doesn't alter the state: changes are folded after it returns."""
