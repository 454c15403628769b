"""What every section of the snapshot looks at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tertulia.domain import channel_access
from tertulia.model.channels import Channel
from tertulia.model.queues import Registration
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import weekly_traffic
from tertulia.wire.http.fragments import Fragment
from tertulia.wire.http.node import HttpNode


@dataclass(frozen=True)
class SnapshotContext:
    """The organization at one entry of its log, and who looks at it."""

    state: State
    node: HttpNode
    viewer: User | None
    """None for a spectator."""
    registration: Registration
    presence_days: int
    url: str
    """The organization's address."""
    now: float
    most_accounts: int | None
    """Of more accounts than that the client wants only those that it needs at first."""

    @cached_property
    def host(self) -> str:
        """Of the addresses that stand for hidden ones."""
        return self.node.config.address_host

    @cached_property
    def channels(self) -> Mapping[int, Channel]:
        """Every channel that the viewer may know of, and their client what to make of, by ID,
        ascending."""
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
        """Messages a week of each of these channels."""
        return weekly_traffic(self.state, self.channels.values(), self.now)


Section = Callable[[SnapshotContext], dict[str, Any] | Fragment]
"""A part of the snapshot: its fields by name; or as a fragment, where all have the same."""

Sections = Mapping[tuple[str, ...], Section]
"""Sections by the fetch types that must all be asked for."""
