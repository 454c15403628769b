"""A node: the organization, and everything by which it is read and changed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tertulia.delivery.delivery import Delivery
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.outbound.http_client import Web
from tertulia.outbound.web_push import PushKey
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.links import Links
from tertulia.service.membership import Lifecycle, Membership
from tertulia.service.messages.recent import ReceivedScopes, RecentMessages
from tertulia.service.tasks import SingleFlight
from tertulia.service.webhooks.journal import Journal
from tertulia.service.webhooks.templates import Shares
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.store.bucket_partials import BucketPartialUploads
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.partial_uploads import DiskPartialUploads, PartialUploads
from tertulia.store.store import Store
from tertulia.store.uploads import UploadStore

Previews = Mapping[str, LinkPreview | None]
"""What pages say of themselves, by their URLs; None for those that have no preview."""


class JobFigures(NamedTuple):
    """How a job does."""

    name: str
    succeeded_at: float
    """When a round last did, in UNIX seconds; 0 where none has."""
    failures: int
    """Rounds that failed since the node began."""
    is_in_trouble: bool


@dataclass(frozen=True, kw_only=True)
class Node:
    """What a node is made of."""

    config: Config
    log: Log
    delivery: Delivery
    vault: Vault
    links: Links
    renderer: Renderer
    files: Files
    disk: DiskFiles
    """Files of this machine: those that arrive, and what can be fetched again."""
    web: Web
    services: Web
    """By which bots' services are called, and feeds are read."""
    push_web: Web
    """By which push services are asked."""
    push_key: PushKey
    clock: Callable[[], float]
    """UNIX seconds as of now: the log's."""
    thumbnails: SingleFlight = field(
        default_factory=lambda: SingleFlight("Too many thumbnails are being created. Try again.")
    )
    """Those that are being made."""
    topic_moves: SingleFlight = field(
        default_factory=lambda: SingleFlight(
            "Many topics are being moved right now. Yours will be moved shortly."
        )
    )
    """Moves in pieces that are in progress, by their IDs."""
    recent_messages: RecentMessages = field(default_factory=RecentMessages)
    """The newest ones, in memory."""
    received_scopes: ReceivedScopes = field(default_factory=ReceivedScopes)
    """What readers received."""
    journal: Journal = field(default_factory=Journal)
    """What came of webhooks."""
    template_shares: Shares = field(default_factory=Shares)
    """What the templates of each person's bots took lately."""
    copies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    """Who may have a copy of a file that is elsewhere on the disk of this machine."""
    started: float
    """UNIX seconds."""
    membership: Membership
    """Its place in the list of nodes."""
    failing_jobs: Callable[[], Mapping[str, str]] = dict
    """The jobs that are in trouble, each with what is wrong."""
    pushed: Counter[str] = field(default_factory=Counter)
    """How often a push came to which end: see `service/notifications/push_sender.py`."""
    push_tests: set[int] = field(default_factory=set)
    """People to one of whose programs a test is pushed at the moment."""
    jobs: Callable[[], Sequence[JobFigures]] = tuple
    """How all of them do."""
    residents: tuple[str, ...] = ()
    """The addresses of a demonstration's accounts, which sign in without a password."""

    @property
    def state(self) -> State:
        """The organization as of now."""
        return self.log.state

    @property
    def lifecycle(self) -> Lifecycle:
        return self.membership.lifecycle

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
    def uploads(self) -> UploadStore:
        """The uploaded files."""
        return UploadStore(self.files, self.disk)

    @property
    def partials(self) -> PartialUploads:
        """The uploads that arrive in pieces: where all nodes find them."""
        if self.files.is_here:
            return DiskPartialUploads(self.uploads)
        return BucketPartialUploads(self.files, self.uploads)

    async def close(self) -> None:
        """Let go of connections to other servers, and of what is under way by itself."""
        await self.web.close()
        await self.services.close()
        await self.push_web.close()
        await self.files.close()

    async def rendered(
        self, content: str, author_id: int | None, known: Previews | None = None
    ) -> Rendered:
        """The author's text as HTML, with what it refers to; code and formulas are computed by a
        worker. `known` is what linked pages say of themselves."""
        await self.renderer.prepare(CommandContext(self.state, self.clock(), author_id), content)
        return self.renderer.render(
            CommandContext(self.state, self.clock(), author_id), content, known
        )

    def render(self, content: str, author_id: int | None) -> Rendered:
        """The same at once: code and formulas that were not prepared stay plain."""
        return self.renderer.render(CommandContext(self.state, self.clock(), author_id), content)
