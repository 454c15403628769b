"""Folds of agents' keys."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

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
