"""One request, as a handler sees it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request

from tertulia.config import Config
from tertulia.delivery.queues import Delivery
from tertulia.domain import users
from tertulia.links import Links
from tertulia.log.writer import Log
from tertulia.markup.render import Renderer
from tertulia.model.errors import NotAuthenticated, Overtaken
from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.outbound.fetching import Web
from tertulia.state.moment import Moment, Verb
from tertulia.state.organization import State
from tertulia.store.files import Files
from tertulia.store.store import Store
from tertulia.store.uploads import ArrivedFile, Uploads
from tertulia.vault import Vault
from tertulia.wire.fragments import Fragments
from tertulia.wire.hosts import site_of
from tertulia.wire.pacing import SignIns
from tertulia.wire.rates import Rates

T = TypeVar("T")
_ATTEMPTS = 10


@dataclass(frozen=True)
class Node:
    """What a node is made of, for those who answer requests."""

    config: Config
    log: Log
    delivery: Delivery
    vault: Vault
    links: Links
    renderer: Renderer
    files: Files
    web: Web
    clock: Callable[[], float]
    """UNIX seconds as of now: the log's."""
    started: float
    """UNIX seconds."""
    sign_ins: SignIns
    rates: Rates
    failing_jobs: Callable[[], Mapping[str, str]] = dict
    """The jobs that are in trouble, each with what is wrong."""
    fragments: Fragments = field(default_factory=Fragments)
    """What answers are put together of."""
    residents: tuple[str, ...] = ()
    """The addresses of a demonstration's accounts, which need no password."""

    @property
    def state(self) -> State:
        """The organization as of now."""
        return self.log.state

    @property
    def store(self) -> Store:
        return self.log.store

    @property
    def admits_spectators(self) -> bool:
        """Whether one can look at the public web's channels without an account: the server and
        the organization must both want it."""
        realm = self.state.realm
        wanted = self.config.web_public_streams_enabled and realm.enable_spectator_access
        return wanted and not realm.deactivated

    @property
    def uploads(self) -> Uploads:
        """The uploaded files on the disk."""
        return Uploads(self.files)

    async def rendered(self, content: str, author_id: int | None) -> Rendered:
        """What the author writes as HTML, with what it refers to; what is costly of it is computed
        by a worker."""
        await self.renderer.prepare(Moment(self.state, self.clock(), author_id), content)
        return self.render(content, author_id)

    def render(self, content: str, author_id: int | None) -> Rendered:
        """The same at once: code and formulas that nobody prepared are plain."""
        return self.renderer.render(Moment(self.state, self.clock(), author_id), content)


@dataclass(frozen=True)
class Call:
    """A request: who asks, by what program, and of which node."""

    node: Node
    user_id: int | None
    """None where nobody is signed in."""
    client: str
    """The program's name."""
    request: Request
    session_id: int | None = None
    """Of the browser's session by which the caller is known; None for an API key."""
    uploads: "tuple[Upload, ...]" = ()
    ignored: list[str] = field(default_factory=list)
    """Parameters that the handler passed over, told beside those that are not known."""
    file: ArrivedFile | None = None
    """Of endpoints that take one."""

    @property
    def state(self) -> State:
        return self.node.log.state

    @property
    def now(self) -> float:
        """UNIX seconds."""
        return self.node.clock()

    @property
    def user(self) -> User:
        """Who asks. NotAuthenticated where nobody is signed in."""
        if self.user_id is None:
            raise NotAuthenticated("This needs an account: sign in first.")
        return self.state.users[self.user_id]

    @property
    def url(self) -> str:
        """The organization's address: the configured one, or that by which it was reached. Refused
        where that is no address."""
        return site_of(self.node.config, self.request)

    def moment(self) -> Moment:
        """The caller's view of the organization as of now, for questions."""
        return Moment(self.state, self.now, self.user.id)

    def account_with(self, address: str) -> User | None:
        """The account with that address, if it is one that the caller may know it by."""
        host = self.node.config.address_host
        return users.account_with(self.state, self.user, address, host, self.now)

    async def prepare(self, *texts: object) -> None:
        """Have computed beforehand what is costly of texts that a verb renders, as the caller's.
        What is no text is passed over."""
        for text in texts:
            if isinstance(text, str):
                await self.node.renderer.prepare(self.moment(), text)

    async def submit(self, verb: Verb[T], *arguments: Any) -> T:
        """Let the verb decide as the caller, and return its result when it is on disk."""
        return await self.node.log.submit(self.user.id, verb, *arguments)

    def consider(self, verb: Verb[T], *arguments: Any) -> T:
        """What the verb answers as the state is now; for verbs that change nothing."""
        return self.node.log.consider(self.user.id, verb, *arguments)


@dataclass(frozen=True)
class Upload:
    """A file that came with the request."""

    name: str
    content_type: str
    content: bytes


async def undisturbed(attempt: Callable[[], Awaitable[T]]) -> T:
    """What the attempt answers: it reads something and then submits what follows from it. It is
    made again where somebody else changed that in between. Overtaken if that never ends."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Overtaken:
            continue
    return await attempt()
