"""Ending sessions, access keys, and push notifications."""

from collections.abc import Iterable

import msgspec

from tertulia.model.changes import (
    AccessKeysEnded,
    AnyChange,
    DeviceChanged,
    PushUnsubscribed,
    SessionsEnded,
)
from tertulia.model.devices import Device, PushSubscription
from tertulia.model.errors import NoSuchItem
from tertulia.model.sessions import Session
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def session_end_changes(sessions: Iterable[Session]) -> list[SessionsEnded]:
    """Return the change that ends the sessions, if any."""
    over = sorted(sessions, key=lambda session: session.id)
    if not over:
        return []
    return [
        SessionsEnded(
            session_ids=tuple(session.id for session in over),
            user_ids=tuple(sorted({session.user_id for session in over})),
        )
    ]


def all_session_end_changes(
    state: State, user_id: int, but: int | None = None
) -> list[SessionsEnded]:
    """Return the change that ends all of an account's sessions except `but`."""
    return session_end_changes(
        session for session in state.sessions.of_user[user_id] if session.id != but
    )


def access_key_end_changes(state: State, user_id: int) -> list[AccessKeysEnded]:
    """Return the change that revokes all of an account's access keys, if it has any."""
    ids = tuple(sorted(key.id for key in state.access_keys.of_user[user_id]))
    return [AccessKeysEnded(user_id=user_id, key_ids=ids)] if ids else []


def push_end_changes(state: State, user_id: int) -> list[AnyChange]:
    """Return the changes that end push notifications to programs and phones that use the account's
    API key. Browsers' push subscriptions end with their sessions."""
    subscriptions = state.push_subscriptions.of_user[user_id]
    over = [subscription for subscription in subscriptions if subscription.session_id is None]
    waiting = [device for device in state.devices.of_user[user_id] if device.push is not None]
    known = {subscription.device_id for subscription in over}
    return [
        *unsubscription_changes(state, over),
        *(_without_push(device) for device in waiting if device.id not in known),
    ]


def unsubscription_changes(
    state: State, subscriptions: Iterable[PushSubscription]
) -> list[AnyChange]:
    """Return the changes that remove push subscriptions of one account. The phones among them are
    no longer registered."""
    over = sorted(subscriptions, key=lambda subscription: subscription.id)
    if not over:
        return []
    phones = [state.devices.get(subscription.device_id) for subscription in over]
    return [
        PushUnsubscribed(
            user_id=over[0].user_id,
            subscription_ids=tuple(subscription.id for subscription in over),
        ),
        *(_without_push(phone) for phone in phones if phone is not None),
    ]


def _without_push(device: Device) -> DeviceChanged:
    return DeviceChanged(
        user_id=device.user_id,
        device=msgspec.structs.replace(device, push=None),
        before=device.push,
    )


def end(context: CommandContext, session_id: int) -> Decision[None]:
    """End one of the actor's sessions. Raise NoSuchItem for others' sessions."""
    session = context.state.sessions.get(session_id)
    if session is None or session.user_id != context.actor.id:
        raise NoSuchItem("session")
    return Decision(None, session_end_changes([session]))


def end_others(context: CommandContext, but: int | None) -> Decision[None]:
    """End all of the actor's sessions except `but`."""
    return Decision(None, all_session_end_changes(context.state, context.actor.id, but))


def end_of_provider(
    context: CommandContext, method: str, subject: str, provider_session: str
) -> Decision[int]:
    """End sessions that began with a sign-in method: all sessions of the person with this ID there,
    one session there, or the sessions that match both. An empty `subject` or `provider_session`
    matches all. Return the number of ended sessions."""
    state = context.state
    if subject:
        identity = state.identities.get(state.identities.by_subject.get((method, subject)))
        candidates = [] if identity is None else state.sessions.of_user[identity.user_id]
    else:
        candidates = state.sessions.of_provider[method, provider_session]
    over = [
        candidate
        for candidate in candidates
        if candidate.method == method and provider_session in {"", candidate.provider_session}
    ]
    return Decision(len(over), session_end_changes(over))


def next_expiry(state: State, now: float) -> float | None:
    """Return when the next session expires, in UNIX seconds."""
    first = state.sessions.by_use.first
    return None if first is None else first.expires_at


def expire(context: CommandContext) -> Decision[None]:
    """End expired sessions."""
    over = [session for session in context.state.sessions if session.expires_at <= context.now]
    return Decision(None, session_end_changes(over))
