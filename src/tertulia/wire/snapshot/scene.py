"""What every section of the snapshot looks at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tertulia.domain import permissions
from tertulia.model.channels import Channel
from tertulia.model.queues import Registration
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.call import Node
from tertulia.wire.objects.channels import ChannelObject, channel_object, excluded


@dataclass(frozen=True)
class Scene:
    """The organization at one entry of its log, and who looks at it."""

    state: State
    node: Node
    viewer: User | None
    """None for a spectator."""
    registration: Registration
    presence_days: int
    url: str
    """The organization's address."""
    now: float

    @cached_property
    def host(self) -> str:
        """Of the addresses that stand for hidden ones."""
        return self.node.config.address_host

    def sees(self, channel: Channel) -> bool:
        """Whether the viewer may know of the channel, and their client what to make of it."""
        if excluded(channel, self.registration):
            return False
        if self.viewer is None:
            return permissions.open_to_spectators(channel)
        return permissions.sees_channel(self.state, self.viewer, channel, self.now)

    @cached_property
    def channels(self) -> Mapping[int, ChannelObject]:
        """Every channel that the viewer sees, by ID: made once, for all sections."""
        return {
            channel.id: channel_object(self.state, channel, self.now)
            for channel in sorted(self.state.channels, key=lambda channel: channel.id)
            if self.sees(channel)
        }


Section = Callable[[Scene], dict[str, Any]]
"""A part of the snapshot: its fields by name."""

Sections = Mapping[tuple[str, ...], Section]
"""Sections by the fetch types that must all be asked for."""
