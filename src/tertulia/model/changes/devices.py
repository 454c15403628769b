"""Devices, and where phones are reached."""

from tertulia.model.changes.base import Change
from tertulia.model.devices import Device, PushToken


class DeviceAdded(Change, frozen=True, tag="device_added"):
    """An account is used on another device."""

    user_id: int
    device: Device


class DeviceRemoved(Change, frozen=True, tag="device_removed"):
    """A device is used no more."""

    user_id: int
    device_id: int


class PushTokenAdded(Change, frozen=True, tag="push_token_added"):
    """A phone can be reached."""

    user_id: int
    token: PushToken


class PushTokensRemoved(Change, frozen=True, tag="push_tokens_removed"):
    """Phones are not to be reached any more."""

    user_id: int
    token_ids: tuple[int, ...]
