"""A node: the organization, its services, and callers."""

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
from tertulia.model.errors import Conflict, NotAuthenticated, PushBouncerMissing
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.model.users import ReachedUser, User
from tertulia.outbound.addresses import networks
from tertulia.outbound.http_client import Web
from tertulia.outbound.push_bouncer import PushBouncer
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
    """A job's statistics."""

    name: str
    succeeded_at: float
    """UNIX time of the last successful round; 0 if none succeeded."""
    failures: int
    """Failed rounds since the node started."""
    is_in_trouble: bool


LLM_SECONDS: Final = 60.0
"""The timeout of requests to the language model, in seconds."""
MAX_CONCURRENT_LLM_REQUESTS: Final = 4
"""The most requests to the language model at the same time."""
_ANYWHERE: Final = "*"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node: its state, storage, services, and clients."""

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
    """The server that the organization was imported from, if passwords are checked there."""
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
    """The addresses of demonstration accounts that sign in without a password."""

    @property
    def state(self) -> State:
        """The organization's current state."""
        return self.log.state

    @cached_property
    def audit(self) -> AuditRecorder:
        return AuditRecorder(self.log)

    @cached_property
    def operator_web(self) -> Web:
        """The HTTP client for servers that the operator configures. They can be private, or on this
        machine."""
        return Web(self.config.mail_site, ports=None, networks=networks(_ANYWHERE))

    @cached_property
    def llm_web(self) -> Web:
        """The HTTP client for the language model. It's separate because the model is slow, and its
        requests must not delay others."""
        anywhere = networks(_ANYWHERE)
        return Web(
            self.config.mail_site,
            ports=None,
            networks=anywhere,
            max_concurrent=MAX_CONCURRENT_LLM_REQUESTS,
            silent_seconds=LLM_SECONDS,  # It sends nothing until its answer is complete.
        )

    @cached_property
    def _bouncer_web(self) -> Web:
        """The HTTP client for the push bouncer, which receives many notifications."""
        anywhere = networks(_ANYWHERE)
        return Web(self.config.mail_site, ports=None, networks=anywhere, keeps=True)

    @property
    def bouncer(self) -> PushBouncer:
        """The push bouncer. Raises PushBouncerMissing."""
        config = self.config
        if not config.push_bouncer_url:
            raise PushBouncerMissing()
        return PushBouncer(
            self._bouncer_web,
            config.push_bouncer_url,
            config.push_bouncer_id,
            config.push_bouncer_key,
            self.state.realm.uuid,
        )

    @property
    def lifecycle(self) -> Lifecycle:
        return self.membership.lifecycle

    @property
    def store(self) -> Store:
        return self.log.store

    @property
    def admits_spectators(self) -> bool:
        """Whether web-public channels can be read without signing in: the server and the
        organization must both allow it."""
        realm = self.state.realm
        wanted = self.config.web_public_streams_enabled and realm.enable_spectator_access
        return wanted and not realm.deactivated

    @property
    def uploads(self) -> UploadStore:
        return UploadStore(self.files, self.disk)

    @property
    def partials(self) -> PartialUploads:
        """The resumable uploads, stored where all nodes find them."""
        if self.files.is_here:
            return DiskPartialUploads(self.uploads)
        return BucketPartialUploads(self.files, self.uploads)

    async def uses_first(self, purpose: str, secret: str, valid_seconds: float) -> bool:
        """Record the use of a secret that is valid for up to `valid_seconds` more. Return whether
        it was the first use, on any node; the database decides."""
        now = self.clock()
        return await self.store.write(
            lambda c: used_secrets.add(c, purpose, secret, now, valid_seconds)
        )

    async def close(self) -> None:
        """Close connections to other servers."""
        await self.web.close()
        await self.services.close()
        await self.push_web.close()
        for name in ("operator_web", "llm_web", "_bouncer_web"):
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
        """Render an author's Markdown, within the reach of their access key. A worker renders code
        and formulas. `known` are link previews."""
        context = CommandContext(self.state, self.clock(), author_id, reach)
        return await self.renderer.rendered(context, content, known)

    def render(self, content: str, author_id: int | None) -> Rendered:
        """Render without waiting for a worker. Code and formulas that weren't prepared stay plain
        text."""
        return self.renderer.render(CommandContext(self.state, self.clock(), author_id), content)


T = TypeVar("T")


class Caller(Struct, frozen=True, kw_only=True):
    """An account that uses a node, and the key it uses."""

    node: Node
    user_id: int | None
    """The account's ID; None if nobody is signed in."""
    key_id: int | None = None
    """The access key in use; None for the account's own key, or a session."""
    needs: Needs = NOTHING
    """The capabilities that the operation requires of the key."""

    @property
    def state(self) -> State:
        return self.node.log.state

    @property
    def now(self) -> float:
        """UNIX seconds."""
        return self.node.clock()

    @property
    def user(self) -> User:
        """The account, limited to the key's reach. Raises NotAuthenticated if nobody is signed in,
        and WrongApiKey if the key was revoked."""
        if self.user_id is None:
            raise NotAuthenticated("Sign in to do this.")
        user = self.state.users[self.user_id]
        return user if self.key_id is None else ReachedUser.of(user, self.key.reach)

    @property
    def key(self) -> AccessKey:
        """The access key. Raises WrongApiKey if it was revoked."""
        return access_keys.current_key(self.state, self.key_id)

    @property
    def reach(self) -> Reach | None:
        """The reach of the access key; None for everything that the account can access."""
        return None if self.key_id is None else self.user.reach

    def require_key(self, *capabilities: KeyCapability) -> None:
        """Raise KeyInsufficient if an access key is used that lacks one of these capabilities."""
        if self.key_id is not None:
            access_keys.require(self.key, frozenset(capabilities))

    def context(self) -> CommandContext:
        """Return the context for domain functions, as of now."""
        return CommandContext(self.state, self.now, self.user.id, self.reach)

    @property
    def render(self) -> Render:
        """The function that renders Markdown, for verbs that write messages. Code and formulas stay
        plain text unless `prepare` was called before."""
        return self.node.renderer.render

    def account_with(self, address: str) -> User | None:
        """Return the account with that address, if the caller can know it by this address."""
        host = self.node.config.address_host
        return users.find_by_address(self.state, self.user, address, host)

    async def prepare(self, *texts: object) -> None:
        """Render in a worker the code and formulas of texts that a verb will render. Arguments that
        aren't texts are ignored."""
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
        """Return the result of a verb that changes nothing, on the current state."""
        result: T = self.node.log.consider(self.user.id, *self._within_key(verb), *arguments)
        return result

    def _within_key(self, verb: Verb[T]) -> tuple[Any, ...]:
        """Return the verb and leading arguments; for an access key, `access_keys.run_with_key` with
        its arguments."""
        if self.key_id is None:
            return (verb,)
        return access_keys.run_with_key, self.key_id, self.needs, verb


_ATTEMPTS = 10


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt`, which reads rows and submits a command about them. Repeat it
    after each Conflict, ten times in all; then raise Conflict."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
