"""Devices on the wire."""

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import devices, pushes
from tertulia.domain.accounts.pushes import NewSubscription
from tertulia.model import changes
from tertulia.model.devices import PushService, PushSubscription
from tertulia.model.errors import Refused
from tertulia.service.notifications.push import may_be_plain
from tertulia.service.notifications.push_sender import send_test_push
from tertulia.store.pushes import statuses
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner, unseen
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class DeviceObject(Struct, kw_only=True):
    """How a device is reached by encrypted push notifications: none is, as long as the server
    sends none."""

    push_key_id: int | None = None
    push_token_id: str | None = None
    pending_push_token_id: str | None = None
    push_token_last_updated_timestamp: int | None = None
    push_registration_error_code: str | None = None


class DeviceAddEvent(Event, kw_only=True, tag="device"):
    """There is another device, of which nothing is known yet."""

    op: str = "add"
    device_id: int


class DeviceRemoveEvent(Event, kw_only=True, tag="device"):
    """A device is gone."""

    op: str = "remove"
    device_id: int


class AddApnsToken(Params, kw_only=True, frozen=True):
    """Where an iOS device is reached."""

    token: Annotated[str, Meta(description="Hexadecimal, at most 4096 characters.")]
    appid: Annotated[str, Meta(description="Which app it is.")]


async def add_apns_token(call: Call, params: AddApnsToken) -> ApiResponse:
    """Register an iOS device."""
    await call.submit(devices.add_token, PushService.APNS, params.token, params.appid)
    return ApiResponse()


class RemoveToken(Params, kw_only=True, frozen=True):
    """A device that was registered."""

    token: str


async def remove_apns_token(call: Call, params: RemoveToken) -> ApiResponse:
    """Forget an iOS device."""
    await call.submit(devices.remove_token, PushService.APNS, params.token)
    return ApiResponse()


class AddFcmToken(Params, kw_only=True, frozen=True):
    """Where an Android device is reached."""

    token: Annotated[str, Meta(description="At most 4096 characters.")]


async def add_fcm_token(call: Call, params: AddFcmToken) -> ApiResponse:
    """Register an Android device."""
    await call.submit(devices.add_token, PushService.FCM, params.token)
    return ApiResponse()


async def remove_fcm_token(call: Call, params: RemoveToken) -> ApiResponse:
    """Forget an Android device."""
    await call.submit(devices.remove_token, PushService.FCM, params.token)
    return ApiResponse()


class TestNotification(Params, kw_only=True, frozen=True):
    """Which device to wake."""

    token: Annotated[str | None, Meta(description="By default, all of the caller's.")] = None


async def test_notification(call: Call, params: TestNotification) -> ApiResponse:
    """Wake the caller's devices, to see whether it works."""
    call.consider(devices.test_notification, params.token)
    return ApiResponse()


class RegisterDevice(Params, kw_only=True, frozen=True):
    """No parameters."""


class NewDevice(ApiResponse, kw_only=True):
    """The new device's ID."""

    device_id: int


async def register_device(call: Call, params: RegisterDevice) -> NewDevice:
    """Say that the caller's account is used on one more device."""
    return NewDevice(device_id=await call.submit(devices.register))


class RemoveDevice(Params, kw_only=True, frozen=True):
    """A device that is used no more."""

    device_id: Int


async def remove_device(call: Call, params: RemoveDevice) -> ApiResponse:
    """Forget one of the caller's devices."""
    await call.submit(devices.remove, params.device_id)
    return ApiResponse()


class RegisterPush(Params, kw_only=True, frozen=True):
    """The key of a device, and where it is reached, encrypted."""

    device_id: Int
    push_key_id: Int | None = None
    push_key: str | None = None
    token_kind: Literal["fcm", "apns"] | None = None
    token_id: str | None = None
    bouncer_public_key: str | None = None
    encrypted_push_registration: str | None = None


async def register_push(call: Call, params: RegisterPush) -> ApiResponse:
    """Ask for encrypted push notifications on a device."""
    call.consider(devices.require_push, params.device_id)
    return ApiResponse()


class TestEncrypted(Params, kw_only=True, frozen=True):
    """Which device to wake."""

    device_id: Annotated[Int | None, Meta(description="By default, all of the caller's.")] = None


async def test_encrypted_notification(call: Call, params: TestEncrypted) -> ApiResponse:
    """Wake the caller's devices by an encrypted notification, to see whether it works."""
    call.consider(devices.require_push, params.device_id)
    return ApiResponse()


class PushSubscriptionObject(Struct, kw_only=True):
    """A program that is pushed to."""

    id: int
    name: str
    service: Annotated[str, Meta(description="The host of the push service.")]
    created_at: int
    last_pushed_at: Annotated[int | None, Meta(description="Null where it never was.")]
    paused_until: Annotated[int | None, Meta(description="Nothing is pushed before.")]
    trouble: Annotated[str, Meta(description="Why the last push failed; empty where it did not.")]
    current: Annotated[bool, Meta(description="Whether it is of the browser that asks.")]


class PushSubscriptions(ApiResponse, kw_only=True):
    """The newest first."""

    enabled: Annotated[bool, Meta(description="Whether this server pushes at all.")]
    public_key: Annotated[
        str,
        Meta(description="What to subscribe with at the push service (VAPID), in base64url."),
    ]
    subscriptions: list[PushSubscriptionObject]


async def get_push_subscriptions(call: Call, params: NoParams) -> PushSubscriptions:
    """Where the caller is pushed to, and the key to subscribe with. Not of the reference's
    interface: this server's."""
    found = call.consider(pushes.listed)
    doing = await call.node.store.read(statuses, [one.id for one in found])
    return PushSubscriptions(
        enabled=call.node.config.web_push,
        public_key=call.node.push_key.public,
        subscriptions=[_shown(call, one, *doing.get(one.id, (0.0, ""))) for one in found],
    )


def _shown(
    call: Call, one: PushSubscription, pushed_at: float = 0.0, trouble: str = ""
) -> PushSubscriptionObject:
    return PushSubscriptionObject(
        id=one.id,
        name=one.name,
        service=one.service,
        created_at=one.made_at,
        last_pushed_at=int(pushed_at) or None,
        paused_until=one.paused_until if one.paused_until > call.now else None,
        trouble=trouble,
        current=one.session_id is not None and one.session_id == call.session_id,
    )


class AddPushSubscription(Params, kw_only=True, frozen=True):
    """A program to push to, as the browser's `PushSubscription` has it."""

    endpoint: Annotated[str, Meta(description="The https address at the push service.")]
    p256dh: Annotated[str, Meta(description="The program's public key, in base64url.")]
    auth: Annotated[str, Meta(description="The secret for the encryption, in base64url.")]
    name: Annotated[
        str, Meta(description="What the person calls it. At most 60 characters are kept.")
    ] = ""


class AddedPushSubscription(ApiResponse, kw_only=True):
    """What was added, or was there."""

    subscription: PushSubscriptionObject


async def add_push_subscription(call: Call, params: AddPushSubscription) -> AddedPushSubscription:
    """Push to a program of the caller's. Where it was added with a browser's session, it ends with
    that. Not of the reference's interface: this server's."""
    config = call.node.config
    if not config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    new = NewSubscription(
        endpoint=params.endpoint,
        p256dh=params.p256dh,
        auth=params.auth,
        name=params.name,
        session_id=call.session_id,
    )
    one = await call.submit(pushes.subscribe, new, partial(may_be_plain, config))
    return AddedPushSubscription(subscription=_shown(call, one))


class RevisePushSubscription(Params, kw_only=True, frozen=True):
    """What is to be different."""

    subscription_id: Annotated[Int, Path()]
    name: str | UnsetType = UNSET
    paused_until: Annotated[
        Int | UnsetType,
        Meta(description="Push nothing before that UNIX time, of the next year; 0 to go on."),
    ] = UNSET


async def revise_push_subscription(
    call: Call, params: RevisePushSubscription
) -> AddedPushSubscription:
    """Give a program another name, or leave it in peace for a while. Not of the reference's
    interface: this server's."""
    one = await call.submit(pushes.revise, params.subscription_id, params.name, params.paused_until)
    return AddedPushSubscription(subscription=_shown(call, one))


class OnePushSubscription(Params, kw_only=True, frozen=True):
    """Which one."""

    subscription_id: Annotated[Int, Path()]


async def remove_push_subscription(call: Call, params: OnePushSubscription) -> ApiResponse:
    """Push to a program no more. Not of the reference's interface: this server's."""
    await call.submit(pushes.unsubscribe, params.subscription_id)
    return ApiResponse()


async def test_push_subscription(call: Call, params: OnePushSubscription) -> ApiResponse:
    """Push something to a program, to see whether it works: refused with what the push service
    says. Not of the reference's interface: this server's."""
    if not call.node.config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    one = call.consider(pushes.found, params.subscription_id)
    await send_test_push(call.node, call.user, one)
    return ApiResponse()


class PushSubscriptionsEvent(Event, kw_only=True, tag="push_subscriptions"):
    """The list of the account's programs is another one: it is to be fetched again."""

    op: str = "change"


SECTIONS: Final[Sections] = {
    ("device",): lambda context: {
        "devices": {
            str(device.id): DeviceObject()
            for device in context.state.devices.of_user[context.viewer_id]
        }
    }
}


PROJECTIONS: Final[Projections] = (
    to_owner(changes.DeviceAdded, lambda _, change: DeviceAddEvent(device_id=change.device.id)),
    to_owner(
        changes.DeviceRemoved, lambda _, change: DeviceRemoveEvent(device_id=change.device_id)
    ),
    unseen(changes.PushTokenAdded),
    unseen(changes.PushTokensRemoved),
    to_owner(changes.PushSubscribed, lambda _, __: PushSubscriptionsEvent()),
    to_owner(changes.PushUnsubscribed, lambda _, __: PushSubscriptionsEvent()),
)
