"""A node: the organization and the services around it."""

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
"""Link previews by URL; None for pages without one."""


class JobFigures(NamedTuple):
    """Figures of a job."""

    name: str
    succeeded_at: float
    """UNIX time of the last successful round; 0 if none succeeded."""
    failures: int
    """Failed rounds since the node started."""
    is_in_trouble: bool


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

    async def close(self) -> None:
        """Close connections to other servers."""
        await self.web.close()
        await self.services.close()
        await self.push_web.close()
        await self.files.close()

    async def rendered(
        self, content: str, author_id: int | None, known: Previews | None = None
    ) -> Rendered:
        """Render Markdown of an author; a worker renders code and formulas. `known` are link
        previews."""
        await self.renderer.prepare(CommandContext(self.state, self.clock(), author_id), content)
        return self.renderer.render(
            CommandContext(self.state, self.clock(), author_id), content, known
        )

    def render(self, content: str, author_id: int | None) -> Rendered:
        """Render without waiting: code and formulas that were not prepared stay plain."""
        return self.renderer.render(CommandContext(self.state, self.clock(), author_id), content)
