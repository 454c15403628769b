"""Devices, push tokens of phones, and push subscriptions."""

from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Device(Struct, frozen=True, kw_only=True):
    """A client on a device of one account."""

    id: int
    user_id: int


class PushService(StrEnum):
    APNS = "apns"
    FCM = "fcm"


class PushToken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A push token of a phone."""

    id: int
    user_id: int
    service: PushService
    token: str
    app_id: str = ""
    """The app's ID, for APNs."""
    registered_at: UnixSeconds


class PushSubscription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A push subscription of a browser or another program (RFC 8030)."""

    id: int
    user_id: int
    endpoint: str
    """The URL at the push service. Anyone who knows it can try to push."""
    p256dh: str
    """The program's public key..."""
    auth: str
    """... and the secret that it shares with this server, for RFC 8291: both in base64url."""
    name: str
    made_at: UnixSeconds
    session_id: int | None = None
    """The session of the browser, with which this ends; None if it was created with an API key."""
    key_id: int | None = None
    """The access key that it was created with, and with which it ends, if any."""
    paused_until: int = 0
    """UNIX seconds until which nothing is pushed."""

    @property
    def service(self) -> str:
        """The push service's host."""
        return urlsplit(self.endpoint).hostname or ""


class DeviceAdded(Change, frozen=True, tag="device_added"):
    user_id: int
    device: Device


class DeviceRemoved(Change, frozen=True, tag="device_removed"):
    user_id: int
    device_id: int


class PushTokenAdded(Change, frozen=True, tag="push_token_added"):
    user_id: int
    token: PushToken


class PushTokensRemoved(Change, frozen=True, tag="push_tokens_removed"):
    user_id: int
    token_ids: tuple[int, ...]


class PushSubscribed(Change, frozen=True, tag="push_subscribed"):
    """A push subscription was created or changed."""

    user_id: int
    subscription: PushSubscription


class PushUnsubscribed(Change, frozen=True, tag="push_unsubscribed"):
    user_id: int
    subscription_ids: tuple[int, ...]
