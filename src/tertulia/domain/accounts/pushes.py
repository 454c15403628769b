"""Push subscriptions of browsers and other programs (RFC 8030)."""

import base64
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.accounts.signing_out import unsubscription_changes
from tertulia.domain.accounts.users import require_person
from tertulia.model.changes import AnyChange, PushSubscribed
from tertulia.model.devices import Device, PushSubscription
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_SUBSCRIPTIONS: Final = 30
"""Per account. Another subscription replaces the oldest one."""
MAX_ENDPOINT: Final = 1000
MAX_NAME: Final = 60
LONGEST_PAUSE: Final = 366 * 86400
"""Seconds."""
_KEY_BYTES: Final = 65
"""The size of an uncompressed point of P-256."""
_SECRET_BYTES: Final = 16
_PRINTABLE: Final = re.compile(r"[!-~]+")


class NewSubscription(Struct, frozen=True, kw_only=True):
    """A push subscription to create, as in `PushSubscription`."""

    endpoint: str
    p256dh: str
    auth: str
    name: str
    session_id: int | None
    key_id: int | None


def subscribe(
    context: CommandContext, new: NewSubscription, may_be_plain: Callable[[str], bool]
) -> Decision[PushSubscription]:
    """Create a push subscription for one of the actor's programs. Subscribing again updates the
    keys, and takes over a browser's subscription from another account.

    `may_be_plain` returns whether a host's endpoint may use HTTP without TLS. Raise NotPermitted
    for bots; Refused for invalid endpoints and keys.
    """
    state, actor = context.state, context.actor
    require_person(actor)
    _require_endpoint(new.endpoint, may_be_plain)
    if not is_point(new.p256dh):
        raise Refused("p256dh must be a P-256 public key in base64url.")
    if len(decoded(new.auth)) != _SECRET_BYTES:
        raise Refused(f"auth must be a secret of {_SECRET_BYTES} bytes in base64url.")
    known = state.push_subscriptions.get(state.push_subscriptions.by_endpoint.get(new.endpoint))
    changes: list[AnyChange] = []
    if known is not None and known.user_id == actor.id:
        subscription = msgspec.structs.replace(
            known,
            p256dh=new.p256dh,
            auth=new.auth,
            session_id=new.session_id,
            key_id=new.key_id,
        )
        changes += (
            [PushSubscribed(user_id=actor.id, subscription=subscription)]
            if subscription != known
            else []
        )
        return Decision(subscription, changes)
    if known is not None:
        changes += unsubscription_changes(state, [known])
    changes += _room_changes(state, actor.id)
    subscription = PushSubscription(
        id=state.push_subscriptions.next_id(),
        user_id=actor.id,
        name=_name(new.name) or "Push",
        made_at=int(context.now),
        endpoint=new.endpoint,
        p256dh=new.p256dh,
        auth=new.auth,
        session_id=new.session_id,
        key_id=new.key_id,
    )
    return Decision(
        subscription, [*changes, PushSubscribed(user_id=actor.id, subscription=subscription)]
    )


def _room_changes(state: State, user_id: int) -> list[AnyChange]:
    """Return the changes that remove the oldest subscriptions to make room for another one."""
    there = sorted(state.push_subscriptions.of_user[user_id], key=lambda old: old.id)
    return unsubscription_changes(state, there[: max(0, len(there) + 1 - MAX_SUBSCRIPTIONS)])


def phone_changes(context: CommandContext, device: Device, name: str) -> list[AnyChange]:
    """Return the changes that create a push subscription for a phone that the push bouncer
    knows."""
    subscription = PushSubscription(
        id=context.state.push_subscriptions.next_id(),
        user_id=device.user_id,
        endpoint=device.endpoint,
        name=name,
        made_at=int(context.now),
        device_id=device.id,
    )
    return [
        *_room_changes(context.state, device.user_id),
        PushSubscribed(user_id=device.user_id, subscription=subscription),
    ]


def update(
    context: CommandContext,
    subscription_id: int,
    name: str | UnsetType = UNSET,
    paused_until: int | UnsetType = UNSET,
) -> Decision[PushSubscription]:
    """Rename one of the actor's subscriptions, or pause it until that UNIX time (0 resumes it).
    Raise NoSuchItem for others' subscriptions; Refused for an empty name and for a pause longer
    than a year."""
    before = own_subscription(context, subscription_id)
    after = before
    if name is not UNSET:
        if not _name(name):
            raise Refused("Enter a name for the device.")
        after = msgspec.structs.replace(after, name=_name(name))
    if paused_until is not UNSET:
        if not 0 <= paused_until <= context.now + LONGEST_PAUSE:
            raise Refused("You can pause notifications for at most a year.")
        after = msgspec.structs.replace(after, paused_until=paused_until)
    if after == before:
        return Decision(before)
    return Decision(after, (PushSubscribed(user_id=context.actor.id, subscription=after),))


def unsubscribe(context: CommandContext, subscription_id: int) -> Decision[None]:
    """Remove one of the actor's subscriptions. Raise NoSuchItem for others' subscriptions."""
    subscription = own_subscription(context, subscription_id)
    return Decision(None, unsubscription_changes(context.state, [subscription]))


def forget_gone(context: CommandContext, subscription_id: int, endpoint: str) -> Decision[None]:
    """Remove a subscription whose endpoint the push service no longer knows, unless its endpoint
    has changed by now."""
    subscription = context.state.push_subscriptions.get(subscription_id)
    if subscription is None or subscription.endpoint != endpoint:
        return Decision(None)
    return Decision(None, unsubscription_changes(context.state, [subscription]))


def own_subscription(context: CommandContext, subscription_id: int) -> PushSubscription:
    """Return the actor's subscription. Raise NoSuchItem for others' subscriptions."""
    subscription = context.state.push_subscriptions.get(subscription_id)
    if subscription is None or subscription.user_id != context.actor.id:
        raise NoSuchItem("push subscription")
    return subscription


def get_subscription(context: CommandContext, subscription_id: int) -> Decision[PushSubscription]:
    """Return the actor's subscription. Raise NoSuchItem for others' subscriptions."""
    return Decision(own_subscription(context, subscription_id))


def list_subscriptions(context: CommandContext) -> Decision[list[PushSubscription]]:
    """Return the actor's subscriptions, newest first."""
    subscriptions = context.state.push_subscriptions.of_user[context.actor.id]
    return Decision(sorted(subscriptions, key=lambda subscription: -subscription.id))


def decoded(text: str) -> bytes:
    """Decode base64url, with or without padding. Return no bytes if it's invalid."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), b"-_", True)
    except ValueError:
        return b""


def is_point(key: str) -> bool:
    """Whether the base64url key is a point on the curve P-256."""
    key_bytes = decoded(key)
    if len(key_bytes) != _KEY_BYTES or key_bytes[0] != 4:
        return False
    x, y = int.from_bytes(key_bytes[1:33], "big"), int.from_bytes(key_bytes[33:], "big")
    # The curve of RFC 8291: y² = x³ - 3x + b.
    return max(x, y) < _PRIME and (y * y - (x * x * x - 3 * x + _B)) % _PRIME == 0


_PRIME: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B


def _name(name: str) -> str:
    return "".join(filter(str.isprintable, name)).strip()[:MAX_NAME].strip()


def _require_endpoint(endpoint: str, may_be_plain: Callable[[str], bool]) -> None:
    if len(endpoint) > MAX_ENDPOINT or not _PRINTABLE.fullmatch(endpoint):
        raise Refused(f"The endpoint must be a URL of 1 to {MAX_ENDPOINT} characters.")
    try:
        parts = urlsplit(endpoint)
        host, is_port = parts.hostname or "", parts.port != 0
    except ValueError:
        raise Refused("The endpoint isn't a valid URL.") from None
    if parts.username is not None or parts.fragment or not host or not is_port:
        raise Refused("The endpoint isn't a valid URL.")
    if parts.scheme != "https" and not (parts.scheme == "http" and may_be_plain(host)):
        raise Refused("The endpoint must be an https:// URL.")
