"""The input and output of verbs."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from tertulia.model.access_keys import Reach
from tertulia.model.changes import AnyChange
from tertulia.model.mail import Mail
from tertulia.model.users import ReachedUser, User
from tertulia.state.state import State

T = TypeVar("T")


class CommandContext(Struct, frozen=True):
    """The input of a verb: the state, the time, and the actor."""

    state: State
    now: float
    """UNIX seconds."""
    actor_id: int | None
    """None for the server itself, which only some verbs allow."""
    reach: Reach | None = None
    """The reach of the actor's access key; None without a key."""

    @property
    def actor(self) -> User:
        actor = self.state.users[self.actor_id]
        return actor if self.reach is None else ReachedUser.of(actor, self.reach)


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
