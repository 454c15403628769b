"""Programs on phones and computers, and the addresses at which they are woken."""

from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from tertulia.model.change import Change


class Device(Struct, frozen=True, kw_only=True):
    """One account's client on one device."""

    id: int
    user_id: int


class PushService(StrEnum):
    """By which service a phone is reached."""

    APNS = "apns"
    FCM = "fcm"


class PushToken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one account's phone is reached."""

    id: int
    user_id: int
    service: PushService
    token: str
    app_id: str = ""
    """Which app it is, on Apple's phones."""
    registered_at: int
    """UNIX seconds."""


class PushSubscription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a browser, or another program, of one account gets pushes (RFC 8030)."""

    id: int
    user_id: int
    endpoint: str
    """The address at the push service. Whoever knows it may try to push."""
    p256dh: str
    """The program's public key, and..."""
    auth: str
    """... the secret that it shares with this server, for RFC 8291: both in base64url."""
    name: str
    made_at: int
    """UNIX seconds."""
    session_id: int | None = None
    """The browser's session, with which this ends; None for what was made with an API key."""
    paused_until: int = 0
    """Nothing is pushed before, in UNIX seconds."""

    @property
    def service(self) -> str:
        """The push service's host."""
        return urlsplit(self.endpoint).hostname or ""


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
