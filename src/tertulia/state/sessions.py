"""Folds of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.SessionBegun)
def _(state: State, change: changes.SessionBegun) -> None:
    state.sessions.put(change.session)


@FOLDS.of(changes.SessionUsed)
def _(state: State, change: changes.SessionUsed) -> None:
    session = state.sessions[change.session_id]
    state.sessions.put(revised(session, {"used_at": change.at}))


@FOLDS.of(changes.SessionConfirmed)
def _(state: State, change: changes.SessionConfirmed) -> None:
    session = state.sessions[change.session_id]
    state.sessions.put(revised(session, {"confirmed_at": change.at}))


@FOLDS.of(changes.SessionsEnded)
def _(state: State, change: changes.SessionsEnded) -> None:
    for session_id in change.session_ids:
        # Whoever has signed out of a browser is not called there any more.
        for one in state.push_subscriptions.of_session[session_id]:
            state.push_subscriptions.remove(one.id)
        state.sessions.remove(session_id)
