"""A node: the organization, the services around it, and its callers."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from tertulia.delivery.delivery import Delivery
from tertulia.domain.accounts import access_keys, users
from tertulia.domain.accounts.access_keys import NOTHING, KeyCapability, Needs
from tertulia.domain.messages.bot_messages import Render
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.model.access_keys import AccessKey, Reach
from tertulia.model.errors import Conflict, NotAuthenticated
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.model.users import ReachedUser, User
from tertulia.outbound.addresses import networks
from tertulia.outbound.http_client import Web
from tertulia.outbound.web_push import PushKey
from tertulia.service.audit_log import AuditRecorder
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.links import Links
from tertulia.service.membership import Lifecycle, Membership
from tertulia.service.messages.recent import ReceivedScopes, RecentMessages
from tertulia.service.previous_server import PreviousServer
from tertulia.service.tasks import SingleFlight
from tertulia.service.webhooks.journal import Journal
from tertulia.service.webhooks.templates import Shares
from tertulia.state.decision import CommandContext, Verb
from tertulia.state.state import State
from tertulia.store import used_secrets
from tertulia.store.bucket_partials import BucketPartialUploads
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.partial_uploads import DiskPartialUploads, PartialUploads
from tertulia.store.store import Store
from tertulia.store.uploads import UploadStore

Previews = Mapping[str, LinkPreview | None]
"""Link previews by URL; None for pages without one."""


class JobFigures(NamedTuple):
    """Figures of a job."""

    name: str
    succeeded_at: float
    """UNIX time of the last successful round; 0 if none succeeded."""
    failures: int
    """Failed rounds since the node started."""
    is_in_trouble: bool


LLM_SECONDS: Final = 60.0
"""How long the language model may take."""
LLM_AT_ONCE: Final = 4
"""Requests to the language model at the same time."""
_ANYWHERE: Final = "*"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node's parts."""

    config: Config
    log: Log
    delivery: Delivery
    vault: Vault
    links: Links
    renderer: Renderer
    files: Files
    disk: DiskFiles
    """Files on this machine: uploads in progress and caches."""
    web: Web
    services: Web
    """Client for bots' services and feeds."""
    push_web: Web
    """Client for push services."""
    push_key: PushKey
    previous_server: PreviousServer | None = None
    """The server that the organization was imported from, while passwords are checked there."""
    clock: Callable[[], float]
    """The log's clock, in UNIX seconds."""
    thumbnails: SingleFlight = field(
        default_factory=lambda: SingleFlight("Too many thumbnails are being created. Try again.")
    )
    """Thumbnails in progress."""
    topic_moves: SingleFlight = field(
        default_factory=lambda: SingleFlight(
            "Many topics are being moved right now. Yours will be moved shortly."
        )
    )
    """Moves in pieces in progress, by ID."""
    recent_messages: RecentMessages = field(default_factory=RecentMessages)
    received_scopes: ReceivedScopes = field(default_factory=ReceivedScopes)
    journal: Journal = field(default_factory=Journal)
    """Outcomes of webhooks."""
    template_shares: Shares = field(default_factory=Shares)
    """Recent processor time of each person's templates."""
    copies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    """Limits local copies of files in a bucket."""
    started: float
    """When the node started, in UNIX seconds."""
    membership: Membership
    """The node's entry in the list of nodes."""
    failing_jobs: Callable[[], Mapping[str, str]] = dict
    """Failing jobs, with the reason."""
    pushed: Counter[str] = field(default_factory=Counter)
    """Number of pushes by outcome (`service/notifications/push_sender.py`)."""
    push_tests: set[int] = field(default_factory=set)
    """Users with a test push in progress."""
    jobs: Callable[[], Sequence[JobFigures]] = tuple
    """Figures of all jobs."""
    residents: tuple[str, ...] = ()
    """Addresses of a demonstration's accounts, which sign in without a password."""

    @property
    def state(self) -> State:
        """The organization's current state."""
        return self.log.state

    @cached_property
    def audit(self) -> AuditRecorder:
        return AuditRecorder(self.log)

    @cached_property
    def operator_web(self) -> Web:
        """Client for servers that the operator names, so they may be private, or on this
        machine."""
        return Web(self.config.mail_site, ports=None, networks=networks(_ANYWHERE))

    @cached_property
    def llm_web(self) -> Web:
        """Client for the language model, which is slow: its requests must not hold up others."""
        anywhere = networks(_ANYWHERE)
        return Web(
            self.config.mail_site,
            ports=None,
            networks=anywhere,
            at_once=LLM_AT_ONCE,
            silent_seconds=LLM_SECONDS,  # It says nothing until its answer is complete.
        )

    @property
    def lifecycle(self) -> Lifecycle:
        return self.membership.lifecycle

    @property
    def store(self) -> Store:
        return self.log.store

    @property
    def admits_spectators(self) -> bool:
        """Whether web-public channels can be read without an account: both the server and the
        organization must allow it."""
        realm = self.state.realm
        wanted = self.config.web_public_streams_enabled and realm.enable_spectator_access
        return wanted and not realm.deactivated

    @property
    def uploads(self) -> UploadStore:
        return UploadStore(self.files, self.disk)

    @property
    def partials(self) -> PartialUploads:
        """Resumable uploads, stored where all nodes find them."""
        if self.files.is_here:
            return DiskPartialUploads(self.uploads)
        return BucketPartialUploads(self.files, self.uploads)

    async def uses_first(self, purpose: str, secret: str, valid_seconds: float) -> bool:
        """Return whether this is the first use of a secret that is valid for up to
        `valid_seconds` more, on all nodes. The database decides."""
        now = self.clock()
        return await self.store.write(
            lambda c: used_secrets.add(c, purpose, secret, now, valid_seconds)
        )

    async def close(self) -> None:
        """Close connections to other servers."""
        await self.web.close()
        await self.services.close()
        await self.push_web.close()
        for name in ("operator_web", "llm_web"):
            if name in self.__dict__:
                await getattr(self, name).close()
        if self.previous_server is not None:
            await self.previous_server.close()
        await self.files.close()

    async def rendered(
        self,
        content: str,
        author_id: int | None,
        known: Previews | None = None,
        *,
        reach: Reach | None = None,
    ) -> Rendered:
        """Render Markdown of an author, within the reach of their access key; a worker renders code
        and formulas. `known` are link previews."""
        context = CommandContext(self.state, self.clock(), author_id, reach)
        return await self.renderer.rendered(context, content, known)

    def render(self, content: str, author_id: int | None) -> Rendered:
        """Render without waiting: code and formulas that were not prepared stay plain."""
        return self.renderer.render(CommandContext(self.state, self.clock(), author_id), content)


T = TypeVar("T")


class Caller(Struct, frozen=True, kw_only=True):
    """A node and the account in whose name it is used."""

    node: Node
    user_id: int | None
    """None if nobody is signed in."""
    key_id: int | None = None
    """The access key that it is used with; None for the account's own key, or a session."""
    needs: Needs = NOTHING
    """What the operation needs of that key."""

    @property
    def state(self) -> State:
        return self.node.log.state

    @property
    def now(self) -> float:
        """UNIX seconds."""
        return self.node.clock()

    @property
    def user(self) -> User:
        """The account, within what its key reaches. Raises NotAuthenticated if nobody is signed
        in, and WrongApiKey if the key was revoked."""
        if self.user_id is None:
            raise NotAuthenticated("This needs an account: sign in first.")
        user = self.state.users[self.user_id]
        return user if self.key_id is None else ReachedUser.of(user, self.key.reach)

    @property
    def key(self) -> AccessKey:
        """The access key. Raises WrongApiKey if it was revoked."""
        return access_keys.current_key(self.state, self.key_id)

    @property
    def reach(self) -> Reach | None:
        """What the key reaches, if less than the account."""
        return None if self.key_id is None else self.user.reach

    def require_key(self, *capabilities: KeyCapability) -> None:
        """Raise KeyInsufficient if an access key is used that lacks one of these capabilities."""
        if self.key_id is not None:
            access_keys.require(self.key, frozenset(capabilities))

    def context(self) -> CommandContext:
        """The context for domain functions, as of now."""
        return CommandContext(self.state, self.now, self.user.id, self.reach)

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
                await self.node.renderer.rendered(self.context(), text)

    async def submit(self, verb: Verb[T], *arguments: Any) -> T:
        """Submit a command as the caller, and return its result when it is on disk. An access key
        must still permit it when it is decided."""
        within = self._within_key(verb)
        result: T = await self.node.log.submit(self.user.id, *within, *arguments)
        return result

    def consider(self, verb: Verb[T], *arguments: Any) -> T:
        """The result of a verb that changes nothing, on the current state."""
        result: T = self.node.log.consider(self.user.id, *self._within_key(verb), *arguments)
        return result

    def _within_key(self, verb: Verb[T]) -> tuple[Any, ...]:
        """Return the verb, if necessary as `access_keys.run_with_key` with its arguments."""
        if self.key_id is None:
            return (verb,)
        return access_keys.run_with_key, self.key_id, self.needs, verb


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
