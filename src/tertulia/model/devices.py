"""Programs on phones and computers, and the addresses at which phones are woken."""

from enum import StrEnum

from msgspec import Struct


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
