"""Events of devices, for the account that uses them. Push tokens are shown to nobody."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner, unseen


class DeviceAddEvent(Event, kw_only=True, tag="device"):
    """There is another device, of which nothing is known yet."""

    op: str = "add"
    device_id: int


class DeviceRemoveEvent(Event, kw_only=True, tag="device"):
    """A device is gone."""

    op: str = "remove"
    device_id: int


PROJECTIONS: Final[Projections] = (
    to_owner(changes.DeviceAdded, lambda _, change: DeviceAddEvent(device_id=change.device.id)),
    to_owner(
        changes.DeviceRemoved, lambda _, change: DeviceRemoveEvent(device_id=change.device_id)
    ),
    # The device itself knows of its tokens.
    unseen(changes.PushTokenAdded),
    unseen(changes.PushTokensRemoved),
)
