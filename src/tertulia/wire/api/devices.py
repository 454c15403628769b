"""Devices of mobile apps, and subscriptions to web push notifications."""

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.accounts import devices, phones, pushes
from tertulia.domain.accounts.phones import NewPushKey, NewPushToken
from tertulia.domain.accounts.pushes import NewSubscription
from tertulia.model import changes
from tertulia.model.devices import PhonePush, PushService, PushSubscription
from tertulia.model.errors import PushBouncerMissing, Refused
from tertulia.service.notifications.push import may_be_plain
from tertulia.service.notifications.push_sender import send_test_push, send_test_to_phones
from tertulia.store.pushes import statuses
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner, unseen
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class DeviceObject(Struct, kw_only=True):
    """A device's registration for encrypted push notifications."""

    push_key_id: int | None = None
    push_token_id: Annotated[
        str | None, Doc("The token that the push bouncer accepted, if any.")
    ] = None
    pending_push_token_id: Annotated[
        str | None, Doc("A newer token that the push bouncer hasn't accepted.")
    ] = None
    push_token_last_updated_timestamp: int | None = None
    push_registration_error_code: Annotated[
        str | None,
        Doc(
            "Why the push bouncer refused the pending token: `INVALID_BOUNCER_PUBLIC_KEY`,"
            " `INVALID_ENCRYPTED_PUSH_REGISTRATION`, or `REQUEST_EXPIRED`."
        ),
    ] = None


class DeviceAddEvent(Event, kw_only=True, tag="device"):
    """A device was registered."""

    op: str = "add"
    device_id: int


class DeviceUpdateEvent(Event, kw_only=True, tag="device"):
    """A device's registration for push notifications changed. Fields that didn't change are
    missing."""

    op: str = "update"
    device_id: int
    push_key_id: int | UnsetType | None = UNSET
    push_token_id: str | UnsetType | None = UNSET
    pending_push_token_id: str | UnsetType | None = UNSET
    push_token_last_updated_timestamp: int | UnsetType | None = UNSET
    push_registration_error_code: str | UnsetType | None = UNSET


class DeviceRemoveEvent(Event, kw_only=True, tag="device"):
    """A device was removed."""

    op: str = "remove"
    device_id: int


def _device_object(push: PhonePush | None) -> DeviceObject:
    if push is None:
        return DeviceObject()
    return DeviceObject(
        push_key_id=push.key_id,
        push_token_id=push.token_id,
        pending_push_token_id=push.pending_token_id,
        push_token_last_updated_timestamp=push.token_given_at,
        push_registration_error_code=push.error,
    )


def _updated(change: changes.DeviceChanged) -> DeviceUpdateEvent:
    before, after = _device_object(change.before), _device_object(change.device.push)
    changed = {
        name: getattr(after, name)
        for name in DeviceObject.__struct_fields__
        if getattr(after, name) != getattr(before, name)
    }
    return DeviceUpdateEvent(device_id=change.device.id, **changed)


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
    """Register another one of your devices."""
    return NewDeviceResponse(device_id=await call.submit(devices.register))


async def remove_device(call: Call, device_id: Int) -> None:
    """Remove one of your devices."""
    await call.submit(devices.remove, device_id)


async def register_push(
    call: Call,
    device_id: Int,
    push_key_id: Annotated[
        Int | None, Doc("Your ID for the key, from 0 to 4294967295. Requires `push_key`.")
    ] = None,
    push_key: Annotated[
        str | None,
        Doc("In base64: the byte `0x31`, and a key of 32 bytes for libsodium's secretbox."),
    ] = None,
    token_kind: Annotated[
        Literal["fcm", "apns"] | None,
        Doc("Requires `token_id`, `bouncer_public_key`, and `encrypted_push_registration`."),
    ] = None,
    token_id: Annotated[
        str | None, Doc("In base64: the first 8 bytes of the token's SHA-256 hash.")
    ] = None,
    bouncer_public_key: str | None = None,
    encrypted_push_registration: Annotated[
        str | None, Doc("The token, encrypted with `bouncer_public_key`. At most 10000 characters.")
    ] = None,
) -> None:
    """Register a device for encrypted push notifications, or replace its key or its token. Later,
    a `device` event says whether the push bouncer accepted the token."""
    if not call.node.config.push_bouncer_url:
        call.consider(devices.get_device, device_id)
        raise PushBouncerMissing()
    key = token = None
    if push_key_id is not None or push_key is not None:
        if push_key_id is None or push_key is None:
            raise Refused("Send push_key_id and push_key together.")
        key = NewPushKey(push_key_id, push_key)
    of_token = token_kind, token_id, bouncer_public_key, encrypted_push_registration
    if any(value is not None for value in of_token):
        if token_kind is None or token_id is None:
            raise Refused(_INCOMPLETE_TOKEN)
        if bouncer_public_key is None or encrypted_push_registration is None:
            raise Refused(_INCOMPLETE_TOKEN)
        token = NewPushToken(
            PushService(token_kind), token_id, bouncer_public_key, encrypted_push_registration
        )
    await call.submit(phones.register, device_id, key, token)


_INCOMPLETE_TOKEN: Final = (
    "Send token_kind, token_id, bouncer_public_key, and encrypted_push_registration together."  # noqa: S105 (a message)
)


async def test_encrypted_notification(
    call: Call,
    device_id: Annotated[Int | None, Doc("By default, all of your devices.")] = None,  # noqa: PT028
) -> None:
    """Send an encrypted test notification to your devices."""
    if not call.node.config.push_bouncer_url:
        if device_id is not None:
            call.consider(devices.get_device, device_id)
        raise PushBouncerMissing()
    await send_test_to_phones(
        call.node, call.user, call.consider(phones.list_registered, device_id)
    )


class PushSubscriptionObject(Struct, kw_only=True):
    """A browser or app that receives push notifications."""

    id: int
    name: str
    service: Annotated[str, Doc("The push service's host; empty for Zulip's mobile apps.")]
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
    subscriptions = call.consider(pushes.list_subscriptions)
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
    subscription = await call.submit(pushes.update, subscription_id, name, paused_until)
    return PushSubscriptionResponse(subscription=_object(call, subscription))


async def remove_push_subscription(call: Call, subscription_id: IntPath) -> None:
    """Remove a push subscription. This endpoint is a Tertulia extension."""
    await call.submit(pushes.unsubscribe, subscription_id)


async def test_push_subscription(call: Call, subscription_id: IntPath) -> None:
    """Send a test notification. If the push service refuses it, the error has its reason. This
    endpoint is a Tertulia extension."""
    subscription = call.consider(pushes.get_subscription, subscription_id)
    if subscription.device_id is None and not call.node.config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    await send_test_push(call.node, call.user, subscription)


class PushSubscriptionsEvent(Event, kw_only=True, tag="push_subscriptions"):
    """Your push subscriptions changed. Fetch them again."""

    op: str = "change"


SECTIONS: Final[Sections] = {
    ("device",): lambda context: {
        "devices": {
            str(device.id): _device_object(device.push)
            for device in context.state.devices.of_user[context.viewer_id]
        }
    }
}


PROJECTIONS: Final[Projections] = (
    to_owner(changes.DeviceAdded, lambda _, change: DeviceAddEvent(device_id=change.device.id)),
    to_owner(changes.DeviceChanged, lambda _, change: _updated(change)),
    to_owner(
        changes.DeviceRemoved, lambda _, change: DeviceRemoveEvent(device_id=change.device_id)
    ),
    unseen(changes.PushTokenAdded),
    unseen(changes.PushTokensRemoved),
    to_owner(changes.PushSubscribed, lambda _, __: PushSubscriptionsEvent()),
    to_owner(changes.PushUnsubscribed, lambda _, __: PushSubscriptionsEvent()),
)
