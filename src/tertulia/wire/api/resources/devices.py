"""Devices and push notifications. This server sends none, and says so wherever it is asked to."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain.accounts import devices
from tertulia.model.devices import PushService
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params
from tertulia.wire.http.routing import Answer


class AddApnsToken(Params, kw_only=True, frozen=True):
    """Where an iOS device is reached."""

    token: Annotated[str, Meta(description="Hexadecimal, at most 4096 characters.")]
    appid: Annotated[str, Meta(description="Which app it is.")]


async def add_apns_token(call: Call, params: AddApnsToken) -> Answer:
    """Register an iOS device."""
    await call.submit(devices.add_token, PushService.APNS, params.token, params.appid)
    return Answer()


class RemoveToken(Params, kw_only=True, frozen=True):
    """A device that was registered."""

    token: str


async def remove_apns_token(call: Call, params: RemoveToken) -> Answer:
    """Forget an iOS device."""
    await call.submit(devices.remove_token, PushService.APNS, params.token)
    return Answer()


class AddFcmToken(Params, kw_only=True, frozen=True):
    """Where an Android device is reached."""

    token: Annotated[str, Meta(description="At most 4096 characters.")]


async def add_fcm_token(call: Call, params: AddFcmToken) -> Answer:
    """Register an Android device."""
    await call.submit(devices.add_token, PushService.FCM, params.token)
    return Answer()


async def remove_fcm_token(call: Call, params: RemoveToken) -> Answer:
    """Forget an Android device."""
    await call.submit(devices.remove_token, PushService.FCM, params.token)
    return Answer()


class TestNotification(Params, kw_only=True, frozen=True):
    """Which device to wake."""

    token: Annotated[str | None, Meta(description="By default, all of the caller's.")] = None


async def test_notification(call: Call, params: TestNotification) -> Answer:
    """Wake the caller's devices, to see whether it works."""
    call.consider(devices.test_notification, params.token)
    return Answer()


class RegisterDevice(Params, kw_only=True, frozen=True):
    """No parameters."""


class NewDevice(Answer, kw_only=True):
    """The new device's ID."""

    device_id: int


async def register_device(call: Call, params: RegisterDevice) -> NewDevice:
    """Say that the caller's account is used on one more device."""
    return NewDevice(device_id=await call.submit(devices.register))


class RemoveDevice(Params, kw_only=True, frozen=True):
    """A device that is used no more."""

    device_id: Int


async def remove_device(call: Call, params: RemoveDevice) -> Answer:
    """Forget one of the caller's devices."""
    await call.submit(devices.remove, params.device_id)
    return Answer()


class RegisterPush(Params, kw_only=True, frozen=True):
    """The key of a device, and where it is reached, encrypted."""

    device_id: Int
    push_key_id: Int | None = None
    push_key: str | None = None
    token_kind: Literal["fcm", "apns"] | None = None
    token_id: str | None = None
    bouncer_public_key: str | None = None
    encrypted_push_registration: str | None = None


async def register_push(call: Call, params: RegisterPush) -> Answer:
    """Ask for encrypted push notifications on a device."""
    call.consider(devices.require_push, params.device_id)
    return Answer()


class TestEncrypted(Params, kw_only=True, frozen=True):
    """Which device to wake."""

    device_id: Annotated[Int | None, Meta(description="By default, all of the caller's.")] = None


async def test_encrypted_notification(call: Call, params: TestEncrypted) -> Answer:
    """Wake the caller's devices by an encrypted notification, to see whether it works."""
    call.consider(devices.require_push, params.device_id)
    return Answer()
