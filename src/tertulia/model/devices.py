"""Devices, push tokens of phones, and push subscriptions."""

from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class PushService(StrEnum):
    APNS = "apns"
    FCM = "fcm"


class PhonePush(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A phone's registration for encrypted push notifications through the push bouncer."""

    key_id: int
    """The ID that the phone gave the key."""
    key: str
    """The key that encrypts notifications, in base64: a byte that names the cryptosystem, then the
    key."""
    service: PushService
    token_id: str | None = None
    """The ID of the token that the bouncer knows; None before the bouncer accepted one."""
    pending_token_id: str | None = None
    """The ID of the token that the bouncer hasn't accepted yet."""
    token_given_at: UnixSeconds
    error: str | None = None
    """The bouncer's error code, if it refused the pending token."""
    bouncer_public_key: str = ""
    registration: str = ""
    """The pending token, encrypted for the bouncer with `bouncer_public_key`."""

    @property
    def is_waiting(self) -> bool:
        """Whether the bouncer hasn't accepted or refused the pending token yet."""
        return self.pending_token_id is not None and self.error is None


class Device(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client on a device of one account."""

    id: int
    user_id: int
    push: PhonePush | None = None

    @property
    def endpoint(self) -> str:
        """The endpoint of the phone's push subscription."""
        return f"device:{self.id}"


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
    """A push subscription of a browser or another program (RFC 8030), or of a phone whose token the
    push bouncer knows."""

    id: int
    user_id: int
    endpoint: str
    """The URL at the push service. Anyone who knows it can try to push. For a phone, this is
    `Device.endpoint`."""
    p256dh: str = ""
    """The program's public key..."""
    auth: str = ""
    """... and the secret that it shares with this server, for RFC 8291: both in base64url."""
    name: str
    made_at: UnixSeconds
    session_id: int | None = None
    """The browser's session, which ends the subscription when it ends; None if it was created with
    an API key."""
    key_id: int | None = None
    """The access key that created it, if any. Revoking the key ends the subscription."""
    paused_until: int = 0
    """The time until which nothing is pushed, in UNIX seconds."""
    device_id: int | None = None
    """The phone's device ID, if it belongs to a phone."""

    @property
    def service(self) -> str:
        """The push service's host."""
        return urlsplit(self.endpoint).hostname or ""


class DeviceAdded(Change, frozen=True, tag="device_added"):
    user_id: int
    device: Device


class DeviceChanged(Change, frozen=True, tag="device_changed"):
    """A phone's registration for push notifications changed."""

    user_id: int
    device: Device
    before: PhonePush | None = None


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
