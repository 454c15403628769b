"""Sections of the initial data that POST /register returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.model.channels import Channel
from tertulia.model.queues import Registration
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import weekly_traffic
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import Fragment


class MadeOnce(NamedTuple):
    """Cached JSON of the viewer's unread messages in a channel."""

    version: int
    """The version of the channel's messages."""
    every: BitMap
    """All unread messages of the channel."""
    first: int
    """The first one that is sent."""
    ids: BitMap
    """The ones that are sent."""
    content: bytes


@dataclass(frozen=True)
class SectionContext:
    """The organization at one entry of its log, and the client that is registering."""

    state: State
    node: HttpNode
    viewer: User | None
    """None for a spectator."""
    registration: Registration
    presence_days: int
    url: str
    """The organization's URL."""
    now: float
    most_accounts: int | None
    """The number of accounts above which the client wants only the most important ones."""
    made: dict[int, MadeOnce] = field(default_factory=dict)
    """The JSON of the viewer's unread messages by channel, from earlier steps of the same
    response."""

    @property
    def viewer_id(self) -> int:
        """The viewer's ID, or 0 for a spectator."""
        return 0 if self.viewer is None else self.viewer.id

    @cached_property
    def host(self) -> str:
        """The host of placeholder email addresses."""
        return self.node.config.address_host

    @property
    def has_more_accounts(self) -> bool:
        """Whether there are more accounts than the client wants."""
        return self.most_accounts is not None and len(self.state.users) > self.most_accounts

    @cached_property
    def channels(self) -> Mapping[int, Channel]:
        """The channels that the viewer can see and the client supports, in ascending order."""
        if self.viewer is None:
            every = sorted(self.state.channels, key=lambda channel: channel.id)
            seen = [channel for channel in every if channel_access.open_to_spectators(channel)]
        else:
            seen = channel_access.channels_seen(self.state, self.viewer)
        if not self.registration.capabilities.archived_channels:
            seen = [channel for channel in seen if not channel.is_archived]
        return {channel.id: channel for channel in seen}

    @cached_property
    def traffic(self) -> Mapping[int, int | None]:
        """The weekly traffic of these channels."""
        return weekly_traffic(self.state, self.channels.values(), self.now)


Section = Callable[[SectionContext], dict[str, Any] | Fragment]
"""Returns fields by name, or as a fragment if they're the same for everyone."""

Sections = Mapping[tuple[str, ...], Section]
"""Sections by fetch types. A section is sent if all of its types are requested."""
