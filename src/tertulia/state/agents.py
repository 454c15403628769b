"""Folds of agents' keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.AgentKeyMade)
def _(state: State, change: changes.AgentKeyMade) -> None:
    state.agent_keys.put(change.key)


@FOLDS.of(changes.AgentKeyUsed)
def _(state: State, change: changes.AgentKeyUsed) -> None:
    key = state.agent_keys[change.key_id]
    state.agent_keys.put(revised(key, {"used_at": change.at}))


@FOLDS.of(changes.AgentKeysEnded)
def _(state: State, change: changes.AgentKeysEnded) -> None:
    for key_id in change.key_ids:
        state.agent_keys.remove(key_id)
