"""Registered devices and push tokens of phones.

This server has no push service for phones: it stores tokens, and says so to clients that ask.
"""

import re

from tertulia.model.changes import (
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
"""Devices, and push tokens, of one account."""
MAX_TOKEN = 4096
_ENCODED = re.compile(r"[0-9A-Za-z+/_-]+={0,2}")
"""Hexadecimal or base64."""
_APP_ID = re.compile(r"[.a-zA-Z0-9-]{1,255}")


def register(context: CommandContext) -> Decision[int]:
    """Register a device of the actor's and return its ID. Raise Refused if there are too many."""
    state, actor = context.state, context.actor
    if state.devices.of_user.count(actor.id) >= MAX_DEVICES:
        raise Refused(f"You can have at most {MAX_DEVICES} devices.")
    device = Device(id=state.devices.next_id(), user_id=actor.id)
    return Decision(device.id, (DeviceAdded(user_id=actor.id, device=device),))


def remove(context: CommandContext, device_id: int) -> Decision[None]:
    """Remove a device of the actor's. Raise Refused for others."""
    device = own(context, device_id)
    return Decision(None, (DeviceRemoved(user_id=context.actor.id, device_id=device.id),))


def own(context: CommandContext, device_id: int) -> Device:
    """Return the actor's device. Raise Refused for others."""
    device = context.state.devices.get(device_id)
    if device is None or device.user_id != context.actor.id:
        raise Refused(f"You don't have a device with ID {device_id}.")
    return device


def require_push(context: CommandContext, device_id: int | None) -> Decision[None]:
    """Raise PushNotOffered; Refused for a device (None: any) that isn't the actor's."""
    if device_id is not None:
        own(context, device_id)
    raise PushNotOffered()


def add_token(
    context: CommandContext, service: PushService, token: str, app_id: str = ""
) -> Decision[None]:
    """Store a push token of the actor's phone, if it's new.

    Raise Refused for invalid tokens and app IDs.
    """
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
    """Remove a push token of the actor's. Raise Refused if it isn't registered."""
    _require_token(service, token)
    known = _tokens(context, service, token)
    if not known:
        raise Refused("No device is registered with this token.")
    removed = PushTokensRemoved(user_id=context.actor.id, token_ids=tuple(t.id for t in known))
    return Decision(None, (removed,))


def test_notification(context: CommandContext, token: str | None) -> Decision[None]:
    """Send a test notification to the actor's phones (None), or one of them.

    Raise NoSuchPushToken, and otherwise PushNotOffered.
    """
    if token is not None and not any(
        push_token.token == token
        for push_token in context.state.push_tokens.of_user[context.actor.id]
    ):
        raise NoSuchPushToken()
    raise PushNotOffered()


def all_tokens_removed(state: State, user_id: int) -> list[PushTokensRemoved]:
    """Return the change that removes an account's push tokens when its API key is replaced."""
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
