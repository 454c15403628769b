"""Devices, and where they are pushed to."""

from tertulia.model.changes.base import Change
from tertulia.model.devices import Device, PushSubscription, PushToken


class DeviceAdded(Change, frozen=True, tag="device_added"):
    """An account has one more device."""

    user_id: int
    device: Device


class DeviceRemoved(Change, frozen=True, tag="device_removed"):
    """A device was removed."""

    user_id: int
    device_id: int


class PushTokenAdded(Change, frozen=True, tag="push_token_added"):
    """A token for push notifications to a phone was added."""

    user_id: int
    token: PushToken


class PushTokensRemoved(Change, frozen=True, tag="push_tokens_removed"):
    """Tokens for push notifications were removed."""

    user_id: int
    token_ids: tuple[int, ...]


class PushSubscribed(Change, frozen=True, tag="push_subscribed"):
    """A program of somebody's is pushed to from now on, or in another way than before."""

    user_id: int
    subscription: PushSubscription


class PushUnsubscribed(Change, frozen=True, tag="push_unsubscribed"):
    """Programs of somebody's are pushed to no more."""

    user_id: int
    subscription_ids: tuple[int, ...]
