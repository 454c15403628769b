"""Phones that get encrypted push notifications through the push bouncer."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain.accounts import devices, pushes
from tertulia.domain.accounts.signing_out import unsubscription_changes
from tertulia.model.changes import AnyChange, DeviceChanged, PushTokensRemoved
from tertulia.model.devices import Device, PhonePush, PushService
from tertulia.model.errors import NoActivePhone, Refused
from tertulia.state.decision import CommandContext, Decision

MAX_REGISTRATION: Final = 10_000
"""The most characters of an encrypted registration."""
MAX_KEY_ID: Final = 2**32 - 1
SECRETBOX: Final = 0x31
"""The first byte of a key for libsodium's secretbox."""
_KEY_BYTES: Final = 33
_TOKEN_ID_BYTES: Final = 8
_NAMES: Final = {PushService.APNS: "iOS app", PushService.FCM: "Android app"}


class NewPushKey(Struct, frozen=True):
    """The key that notifications are encrypted with."""

    id: int
    key: str


class NewPushToken(Struct, frozen=True):
    """A phone's token at its push service, encrypted for the push bouncer."""

    service: PushService
    id: str
    bouncer_public_key: str
    registration: str


def register(
    context: CommandContext, device_id: int, key: NewPushKey | None, token: NewPushToken | None
) -> Decision[None]:
    """Register one of the actor's phones for encrypted push notifications, or replace its key or
    token. The token is used once the push bouncer accepts it.

    Raise Refused for others' devices, for invalid keys and tokens, and if a new registration lacks
    one of them.
    """
    device = devices.own_device(context, device_id)
    before = device.push
    if key is not None:
        _require_key(key)
    if token is not None:
        _require_new_token(token)
    if before is None:
        if key is None or token is None:
            raise Refused("A new registration needs both a push key and a push token.")
        after = PhonePush(
            key_id=key.id,
            key=key.key,
            service=token.service,
            token_given_at=int(context.now),
        )
    elif key is None and token is None:
        raise Refused("Send a push key, a push token, or both.")
    else:
        after = before
        if key is not None:
            after = msgspec.structs.replace(after, key_id=key.id, key=key.key)
    if token is not None and not _is_known(before, token):
        after = msgspec.structs.replace(
            after,
            service=token.service,
            pending_token_id=token.id,
            token_given_at=int(context.now),
            error=None,
            bouncer_public_key=token.bouncer_public_key,
            registration=token.registration,
        )
    return Decision(None, _device_changes(device, after))


def _is_known(before: PhonePush | None, token: NewPushToken) -> bool:
    """Whether the push bouncer knows the token, or is about to be asked."""
    if before is None:
        return False
    if before.pending_token_id is None:
        return before.token_id == token.id
    return before.is_waiting and before.pending_token_id == token.id


def accept_token(context: CommandContext, device_id: int, token_id: str) -> Decision[None]:
    """Record that the push bouncer accepted a phone's token, and start sending notifications,
    unless the phone has another token by now. The token no longer gets unencrypted
    notifications."""
    state = context.state
    device = state.devices.get(device_id)
    if device is None or device.push is None or device.push.pending_token_id != token_id:
        return Decision(None)
    after = msgspec.structs.replace(
        device.push,
        token_id=token_id,
        pending_token_id=None,
        error=None,
        bouncer_public_key="",
        registration="",
    )
    changes = _device_changes(device, after)
    if state.push_subscriptions.by_endpoint.get(device.endpoint) is None:
        changes += pushes.phone_changes(context, device, _NAMES[after.service])
    old = tuple(
        token.id
        for token in state.push_tokens.of_user[device.user_id]
        if _token_id(token.token) == token_id
    )
    if old:
        changes.append(PushTokensRemoved(user_id=device.user_id, token_ids=old))
    return Decision(None, changes)


def refuse_token(
    context: CommandContext, device_id: int, token_id: str, code: str
) -> Decision[None]:
    """Record that the push bouncer refused a phone's token with this code, unless the phone has
    another token by now. A token that it accepted earlier stays in use."""
    device = context.state.devices.get(device_id)
    if device is None or device.push is None or device.push.pending_token_id != token_id:
        return Decision(None)
    after = msgspec.structs.replace(device.push, error=code, bouncer_public_key="", registration="")
    return Decision(None, _device_changes(device, after))


def forget_gone(context: CommandContext, device_id: int, token_id: str) -> Decision[None]:
    """Stop push notifications to a phone whose token no longer exists, unless it has another token
    by now."""
    state = context.state
    device = state.devices.get(device_id)
    if device is None or device.push is None or device.push.token_id != token_id:
        return Decision(None)
    subscription = state.push_subscriptions.get(
        state.push_subscriptions.by_endpoint.get(device.endpoint)
    )
    return Decision(
        None, [] if subscription is None else unsubscription_changes(state, [subscription])
    )


def list_registered(context: CommandContext, device_id: int | None) -> Decision[Sequence[Device]]:
    """Return the actor's devices that get push notifications, or only the given one. Raise Refused
    for others' devices; NoActivePhone if none qualifies."""
    all_own = context.state.devices.of_user[context.actor.id]
    wanted = all_own if device_id is None else [devices.own_device(context, device_id)]
    if active := [device for device in wanted if device.push and device.push.token_id]:
        return Decision(sorted(active, key=lambda device: device.id))
    raise NoActivePhone()


def _device_changes(device: Device, after: PhonePush) -> list[AnyChange]:
    if after == device.push:
        return []
    changed = msgspec.structs.replace(device, push=after)
    return [DeviceChanged(user_id=device.user_id, device=changed, before=device.push)]


def _decoded(text: str) -> bytes:
    """Decode base64. Return no bytes if it's invalid."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _require_key(key: NewPushKey) -> None:
    if not 0 <= key.id <= MAX_KEY_ID:
        raise Refused(f"push_key_id must be a number from 0 to {MAX_KEY_ID}.")
    decoded = _decoded(key.key)
    if len(decoded) != _KEY_BYTES or decoded[0] != SECRETBOX:
        raise Refused("Invalid `push_key`")


def _require_new_token(token: NewPushToken) -> None:
    if len(_decoded(token.id)) != _TOKEN_ID_BYTES:
        raise Refused("Invalid `token_id`")
    if not 0 < len(token.bouncer_public_key) <= devices.MAX_TOKEN:
        raise Refused("Invalid `bouncer_public_key`")
    if not 0 < len(token.registration) <= MAX_REGISTRATION:
        raise Refused("Invalid `encrypted_push_registration`")


def _token_id(token: str) -> str:
    """Return the ID that clients and the push bouncer use for a token."""
    return base64.b64encode(hashlib.sha256(token.encode()).digest()[:_TOKEN_ID_BYTES]).decode()
