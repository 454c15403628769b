"""Devices on the wire."""

from msgspec import Struct


class DeviceObject(Struct, kw_only=True):
    """How a device is reached by encrypted push notifications: none is, as long as the server
    sends none."""

    push_key_id: int | None = None
    push_token_id: str | None = None
    pending_push_token_id: str | None = None
    push_token_last_updated_timestamp: int | None = None
    push_registration_error_code: str | None = None
