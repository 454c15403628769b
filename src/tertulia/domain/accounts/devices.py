"""Registered devices, and phones' push tokens for unencrypted notifications. This server sends only
encrypted ones (`phones`): it stores the tokens, and tells clients that it doesn't use them."""

import re

from tertulia.domain.accounts import signing_out
from tertulia.model.changes import (
    AnyChange,
    DeviceAdded,
    DeviceRemoved,
    PushTokenAdded,
    PushTokensRemoved,
)
from tertulia.model.devices import Device, PushService, PushToken
from tertulia.model.errors import NoSuchPushToken, PushNotOffered, Refused
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_DEVICES = 200
"""The most devices, and the most push tokens, of one account."""
MAX_TOKEN = 4096
_ENCODED = re.compile(r"[0-9A-Za-z+/_-]+={0,2}")
"""Hexadecimal or base64."""
_APP_ID = re.compile(r"[.a-zA-Z0-9-]{1,255}")


def register(context: CommandContext) -> Decision[int]:
    """Register a device for the actor and return its ID. Raise Refused if there are too many."""
    state, actor = context.state, context.actor
    if state.devices.of_user.count(actor.id) >= MAX_DEVICES:
        raise Refused(f"You can have at most {MAX_DEVICES} devices.")
    device = Device(id=state.devices.next_id(), user_id=actor.id)
    return Decision(device.id, (DeviceAdded(user_id=actor.id, device=device),))


def remove(context: CommandContext, device_id: int) -> Decision[None]:
    """Remove one of the actor's devices. Raise Refused for others."""
    return Decision(None, removal_changes(context.state, own_device(context, device_id)))


def removal_changes(state: State, device: Device) -> list[AnyChange]:
    """Return the changes that remove a device and its push subscription."""
    pushed = state.push_subscriptions.get(state.push_subscriptions.by_endpoint.get(device.endpoint))
    ended = [] if pushed is None else signing_out.unsubscription_changes(state, [pushed])
    return [*ended, DeviceRemoved(user_id=device.user_id, device_id=device.id)]


def own_device(context: CommandContext, device_id: int) -> Device:
    """Return the actor's device. Raise Refused for others."""
    device = context.state.devices.get(device_id)
    if device is None or device.user_id != context.actor.id:
        raise Refused(f"You don't have a device with ID {device_id}.")
    return device


def get_device(context: CommandContext, device_id: int) -> Decision[Device]:
    """Return the actor's device. Raise Refused for others."""
    return Decision(own_device(context, device_id))


def add_token(
    context: CommandContext, service: PushService, token: str, app_id: str = ""
) -> Decision[None]:
    """Store the push token of one of the actor's phones, if it's new. Raise Refused for invalid
    tokens and app IDs."""
    state, actor = context.state, context.actor
    _require_token(service, token)
    if service is PushService.APNS and not _APP_ID.fullmatch(app_id):
        raise Refused("Invalid app ID.")
    known = _tokens(context, service, token)
    if known:
        return Decision(None)
    if state.push_tokens.of_user.count(actor.id) >= MAX_DEVICES:
        raise Refused(f"You can register at most {MAX_DEVICES} devices.")
    added = PushToken(
        id=state.push_tokens.next_id(),
        user_id=actor.id,
        service=service,
        token=token,
        app_id=app_id,
        registered_at=int(context.now),
    )
    return Decision(None, (PushTokenAdded(user_id=actor.id, token=added),))


def remove_token(context: CommandContext, service: PushService, token: str) -> Decision[None]:
    """Remove one of the actor's push tokens. Raise Refused if it isn't registered."""
    _require_token(service, token)
    known = _tokens(context, service, token)
    if not known:
        raise Refused("No device is registered with this token.")
    removed = PushTokensRemoved(user_id=context.actor.id, token_ids=tuple(t.id for t in known))
    return Decision(None, (removed,))


def test_notification(context: CommandContext, token: str | None) -> Decision[None]:
    """Always refuse a test notification to one of the actor's phones, or (None) all of them. Raise
    NoSuchPushToken for unknown tokens, and otherwise PushNotOffered."""
    if token is not None and not any(
        push_token.token == token
        for push_token in context.state.push_tokens.of_user[context.actor.id]
    ):
        raise NoSuchPushToken()
    raise PushNotOffered()


def token_removal_changes(state: State, user_id: int) -> list[PushTokensRemoved]:
    """Return the change that removes all of an account's push tokens, because its API key is
    replaced."""
    ids = tuple(token.id for token in state.push_tokens.of_user[user_id])
    return [PushTokensRemoved(user_id=user_id, token_ids=ids)] if ids else []


def _tokens(context: CommandContext, service: PushService, token: str) -> list[PushToken]:
    return [
        push_token
        for push_token in context.state.push_tokens.of_user[context.actor.id]
        if (push_token.service, push_token.token) == (service, token)
    ]


def _require_token(service: PushService, token: str) -> None:
    if not token or len(token) > MAX_TOKEN:
        raise Refused(f"A token must have 1 to {MAX_TOKEN} characters.")
    if service is PushService.APNS and not _ENCODED.fullmatch(token):
        raise Refused("This isn't a valid token of the Apple push notification service.")
