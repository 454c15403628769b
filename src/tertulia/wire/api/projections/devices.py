"""Events of devices, for the account that uses them. Push tokens are shown to nobody."""

from collections.abc import Iterable
from typing import Any

from tertulia.model import changes
from tertulia.wire.api.events import Event, ForOwner, ProjectionContext, Unseen


class DeviceAddEvent(Event, kw_only=True, tag="device"):
    """There is another device, of which nothing is known yet."""

    op: str = "add"
    device_id: int


class DeviceRemoveEvent(Event, kw_only=True, tag="device"):
    """A device is gone."""

    op: str = "remove"
    device_id: int


class DeviceAddedProjection(ForOwner[changes.DeviceAdded]):
    """A new device."""

    of = changes.DeviceAdded

    def events(
        self, context: ProjectionContext, change: changes.DeviceAdded, view: Any
    ) -> Iterable[Event]:
        yield DeviceAddEvent(device_id=change.device.id)


class DeviceRemovedProjection(ForOwner[changes.DeviceRemoved]):
    """A device that is gone."""

    of = changes.DeviceRemoved

    def events(
        self, context: ProjectionContext, change: changes.DeviceRemoved, view: Any
    ) -> Iterable[Event]:
        yield DeviceRemoveEvent(device_id=change.device_id)


class PushTokenAddedProjection(Unseen):
    """The device knows."""

    of = changes.PushTokenAdded


class PushTokensRemovedProjection(Unseen):
    """The device knows, or has lost its key."""

    of = changes.PushTokensRemoved
