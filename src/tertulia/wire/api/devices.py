"""Devices of mobile apps, and subscriptions to web push notifications."""

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import UNSET, Struct, UnsetType

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
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class DeviceObject(Struct, kw_only=True):
    """A device's registration for encrypted push notifications. All fields are null, because this
    server doesn't send them."""

    push_key_id: int | None = None
    push_token_id: str | None = None
    pending_push_token_id: str | None = None
    push_token_last_updated_timestamp: int | None = None
    push_registration_error_code: str | None = None


class DeviceAddEvent(Event, kw_only=True, tag="device"):
    """A device was registered."""

    op: str = "add"
    device_id: int


class DeviceRemoveEvent(Event, kw_only=True, tag="device"):
    """A device was removed."""

    op: str = "remove"
    device_id: int


async def add_apns_token(
    call: Call,
    token: Annotated[str, Doc("In hexadecimal or base64, at most 4096 characters.")],
    appid: Annotated[str, Doc("The app's bundle ID.")],
) -> None:
    """Register an iOS device for push notifications."""
    await call.submit(devices.add_token, PushService.APNS, token, appid)


async def remove_apns_token(call: Call, token: str) -> None:
    """Unregister an iOS device."""
    await call.submit(devices.remove_token, PushService.APNS, token)


async def add_fcm_token(call: Call, token: Annotated[str, Doc("At most 4096 characters.")]) -> None:
    """Register an Android device for push notifications."""
    await call.submit(devices.add_token, PushService.FCM, token)


async def remove_fcm_token(call: Call, token: str) -> None:
    """Unregister an Android device."""
    await call.submit(devices.remove_token, PushService.FCM, token)


async def test_notification(
    call: Call,
    token: Annotated[str | None, Doc("By default, all of your devices.")] = None,  # noqa: PT028
) -> None:
    """Send a test notification to your mobile devices."""
    call.consider(devices.test_notification, token)


class NewDeviceResponse(ApiResponse, kw_only=True):
    """The new device's ID."""

    device_id: int


async def register_device(call: Call) -> NewDeviceResponse:
    """Register another device that you use."""
    return NewDeviceResponse(device_id=await call.submit(devices.register))


async def remove_device(call: Call, device_id: Int) -> None:
    """Remove one of your devices."""
    await call.submit(devices.remove, device_id)


async def register_push(
    call: Call,
    device_id: Int,
    push_key_id: Int | None = None,
    push_key: str | None = None,
    token_kind: Literal["fcm", "apns"] | None = None,
    token_id: str | None = None,
    bouncer_public_key: str | None = None,
    encrypted_push_registration: str | None = None,
) -> None:
    """Register a device for encrypted push notifications."""
    call.consider(devices.require_push, device_id)


async def test_encrypted_notification(
    call: Call,
    device_id: Annotated[Int | None, Doc("By default, all of your devices.")] = None,  # noqa: PT028
) -> None:
    """Send an encrypted test notification to your devices."""
    call.consider(devices.require_push, device_id)


class PushSubscriptionObject(Struct, kw_only=True):
    """A browser or app that receives push notifications."""

    id: int
    name: str
    service: Annotated[str, Doc("The push service's host.")]
    created_at: int
    last_pushed_at: Annotated[int | None, Doc("Null if nothing was sent yet.")]
    paused_until: Annotated[
        int | None, Doc("Nothing is sent before this time. Null if not paused.")
    ]
    trouble: Annotated[
        str, Doc("Why the last notification couldn't be sent; empty after a success.")
    ]
    current: Annotated[bool, Doc("Whether it belongs to the browser that made this request.")]


class PushSubscriptionsResponse(ApiResponse, kw_only=True):
    """Your push subscriptions, newest first."""

    enabled: Annotated[bool, Doc("Whether this server sends web push notifications.")]
    public_key: Annotated[
        str, Doc("The server's VAPID key for subscribing at the push service, in base64url.")
    ]
    subscriptions: list[PushSubscriptionObject]


async def get_push_subscriptions(call: Call) -> PushSubscriptionsResponse:
    """Get your push subscriptions and the key to subscribe with. This endpoint is a Tertulia
    extension."""
    subscriptions = call.consider(pushes.listed)
    by_id = await call.node.store.read(
        statuses, [subscription.id for subscription in subscriptions]
    )
    return PushSubscriptionsResponse(
        enabled=call.node.config.web_push,
        public_key=call.node.push_key.public,
        subscriptions=[
            _object(call, subscription, *by_id.get(subscription.id, (0.0, "")))
            for subscription in subscriptions
        ],
    )


def _object(
    call: Call, subscription: PushSubscription, pushed_at: float = 0.0, trouble: str = ""
) -> PushSubscriptionObject:
    return PushSubscriptionObject(
        id=subscription.id,
        name=subscription.name,
        service=subscription.service,
        created_at=subscription.made_at,
        last_pushed_at=int(pushed_at) or None,
        paused_until=subscription.paused_until if subscription.paused_until > call.now else None,
        trouble=trouble,
        current=subscription.session_id is not None and subscription.session_id == call.session_id,
    )


class PushSubscriptionResponse(ApiResponse, kw_only=True):
    """The subscription."""

    subscription: PushSubscriptionObject


async def add_push_subscription(
    call: Call,
    endpoint: Annotated[str, Doc("The https URL at the push service.")],
    p256dh: Annotated[str, Doc("The client's public key, in base64url.")],
    auth: Annotated[str, Doc("The encryption secret, in base64url.")],
    name: Annotated[
        str, Doc("A name for this device. Only the first 60 characters are stored.")
    ] = "",
) -> PushSubscriptionResponse:
    """Send push notifications to a browser, given its `PushSubscription`.

    The subscription ends with the browser session or the access key that you use. This endpoint is
    a Tertulia extension.
    """
    config = call.node.config
    if not config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    new = NewSubscription(
        endpoint=endpoint,
        p256dh=p256dh,
        auth=auth,
        name=name,
        session_id=call.session_id,
        key_id=call.key_id,
    )
    subscription = await call.submit(pushes.subscribe, new, partial(may_be_plain, config))
    return PushSubscriptionResponse(subscription=_object(call, subscription))


async def revise_push_subscription(
    call: Call,
    subscription_id: IntPath,
    name: str | UnsetType = UNSET,
    paused_until: Annotated[
        Int | UnsetType,
        Doc("Send nothing before this UNIX time, at most a year ahead. 0 resumes notifications."),
    ] = UNSET,
) -> PushSubscriptionResponse:
    """Rename or pause a push subscription. This endpoint is a Tertulia extension."""
    subscription = await call.submit(pushes.revise, subscription_id, name, paused_until)
    return PushSubscriptionResponse(subscription=_object(call, subscription))


async def remove_push_subscription(call: Call, subscription_id: IntPath) -> None:
    """Remove a push subscription. This endpoint is a Tertulia extension."""
    await call.submit(pushes.unsubscribe, subscription_id)


async def test_push_subscription(call: Call, subscription_id: IntPath) -> None:
    """Send a test notification. If the push service refuses it, the error has its reason. This
    endpoint is a Tertulia extension."""
    if not call.node.config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    subscription = call.consider(pushes.found, subscription_id)
    await send_test_push(call.node, call.user, subscription)


class PushSubscriptionsEvent(Event, kw_only=True, tag="push_subscriptions"):
    """Your push subscriptions changed. Fetch them again."""

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
