"""Keys of agents."""

from tertulia.model.agents import AgentKey
from tertulia.model.changes.base import Change


class AgentKeyMade(Change, frozen=True, tag="agent_key_made"):
    """Somebody lets an agent act for them."""

    key: AgentKey


class AgentKeyUsed(Change, frozen=True, tag="agent_key_used"):
    """An agent that was not heard of for a while came again. `at` is in UNIX seconds."""

    key_id: int
    at: int


class AgentKeysEnded(Change, frozen=True, tag="agent_keys_ended"):
    """Agents may act for their owner no more."""

    user_id: int
    key_ids: tuple[int, ...]
