"""Agents: programs, mostly language models, that act for somebody and may do less than they."""

from msgspec import Struct

from tertulia.model.change import Change


class Reach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent may do of what its owner may. What is not said is denied."""

    may_write: bool = False
    """Whether it may change anything: send, react, edit, mark as read, follow."""
    channel_ids: tuple[int, ...] | None = ()
    """The channels that it knows of, ascending; None for all that its owner knows of."""
    directs: bool = False
    """Whether it knows of its owner's direct messages."""

    def reaches(self, channel_id: int | None) -> bool:
        """Whether it may come to what is in that channel; None for direct messages."""
        if channel_id is None:
            return self.directs
        return self.channel_ids is None or channel_id in self.channel_ids


class AgentKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one agent proves itself with. The key itself is shown once, and kept nowhere."""

    id: int
    user_id: int
    """The owner: the person for whom the agent acts."""
    name: str
    digest: str
    """SHA-256 of the key, hexadecimal: what a request is looked up by."""
    reach: Reach
    created_at: int
    """UNIX seconds."""
    used_at: int = 0
    """UNIX seconds of its last use, as last stored (`domain/accounts/agents.py`); 0 for none."""

    @property
    def client(self) -> str:
        """The name of the program that messages of the agent are sent by."""
        return f"agent {self.name}"


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
