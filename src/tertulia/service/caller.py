"""A node as one account uses it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct

from tertulia.domain.accounts import users
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.errors import Conflict, NotAuthenticated
from tertulia.model.users import User
from tertulia.service.node import Node
from tertulia.state.decision import CommandContext, Verb
from tertulia.state.state import State

T = TypeVar("T")


class Caller(Struct, frozen=True, kw_only=True):
    """A node and the account in whose name it is used."""

    node: Node
    user_id: int | None
    """None if nobody is signed in."""

    @property
    def state(self) -> State:
        return self.node.log.state

    @property
    def now(self) -> float:
        """UNIX seconds."""
        return self.node.clock()

    @property
    def user(self) -> User:
        """Raises NotAuthenticated if nobody is signed in."""
        if self.user_id is None:
            raise NotAuthenticated("This needs an account: sign in first.")
        return self.state.users[self.user_id]

    def context(self) -> CommandContext:
        """The context for domain functions, as of now."""
        return CommandContext(self.state, self.now, self.user.id)

    @property
    def render(self) -> Render:
        """Renders Markdown, for verbs that write messages. Code and formulas are plain text unless
        `prepare` was called before."""
        return self.node.renderer.render

    def account_with(self, address: str) -> User | None:
        """The account with that address, if the caller may know it by this address."""
        host = self.node.config.address_host
        return users.find_by_address(self.state, self.user, address, host)

    async def prepare(self, *texts: object) -> None:
        """Have a worker render the code and formulas in texts that a verb will render. Other
        arguments are ignored."""
        for text in texts:
            if isinstance(text, str):
                await self.node.renderer.prepare(self.context(), text)

    async def submit(self, verb: Verb[T], *arguments: Any) -> T:
        """Submit a command as the caller, and return its result when it is on disk."""
        return await self.node.log.submit(self.user.id, verb, *arguments)

    def consider(self, verb: Verb[T], *arguments: Any) -> T:
        """The result of a verb that changes nothing, on the current state."""
        return self.node.log.consider(self.user.id, verb, *arguments)


_ATTEMPTS = 10


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the attempt, which reads rows and submits a command about them. It is
    repeated after each Conflict, ten times in all; then Conflict is raised."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
