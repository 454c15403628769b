"""Ending sessions, agent keys, and pushes: verbs, and changes for other verbs."""

from collections.abc import Iterable

from tertulia.model.changes import AccessKeysEnded, PushUnsubscribed, SessionsEnded
from tertulia.model.errors import NoSuchItem
from tertulia.model.sessions import Session
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def end_sessions(sessions: Iterable[Session]) -> list[SessionsEnded]:
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


def end_all_sessions(state: State, user_id: int, but: int | None = None) -> list[SessionsEnded]:
    """Return the change that ends all sessions of an account, except `but`."""
    return end_sessions(session for session in state.sessions.of_user[user_id] if session.id != but)


def end_access_keys(state: State, user_id: int) -> list[AccessKeysEnded]:
    """Return the change that revokes the keys of all agents that act for the account, if any."""
    ids = tuple(sorted(key.id for key in state.access_keys.of_user[user_id]))
    return [AccessKeysEnded(user_id=user_id, key_ids=ids)] if ids else []


def end_pushes(state: State, user_id: int) -> list[PushUnsubscribed]:
    """Return the change that ends push notifications to programs that use the account's API key, if
    any. Those to browsers end with their sessions."""
    subscriptions = state.push_subscriptions.of_user[user_id]
    ids = tuple(
        sorted(subscription.id for subscription in subscriptions if subscription.session_id is None)
    )
    return [PushUnsubscribed(user_id=user_id, subscription_ids=ids)] if ids else []


def end(context: CommandContext, session_id: int) -> Decision[None]:
    """End a session of the actor's. Raise NoSuchItem for others."""
    session = context.state.sessions.get(session_id)
    if session is None or session.user_id != context.actor.id:
        raise NoSuchItem("session")
    return Decision(None, end_sessions([session]))


def end_others(context: CommandContext, but: int | None) -> Decision[None]:
    """End all of the actor's sessions except `but`."""
    return Decision(None, end_all_sessions(context.state, context.actor.id, but))


def end_of_provider(
    context: CommandContext, method: str, subject: str, provider_session: str
) -> Decision[int]:
    """End the sessions that began with a sign-in method, of the person with this ID there, or of
    one session there, or both; the other one is empty. Return how many there were."""
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
    return Decision(len(over), end_sessions(over))


def next_expiry(state: State, now: float) -> float | None:
    """Return when the next session expires."""
    first = state.sessions.by_use.first
    return None if first is None else first.expires_at


def expire(context: CommandContext) -> Decision[None]:
    """End expired sessions."""
    over = [session for session in context.state.sessions if session.expires_at <= context.now]
    return Decision(None, end_sessions(over))
