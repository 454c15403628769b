"""Agents: programs, mostly language models, that act for a person and can do less than they can."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Reach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent can do of what its owner can. Anything else is denied."""

    may_write: bool = False
    """Whether it can change anything: send, react, edit, mark as read, follow."""
    channel_ids: tuple[int, ...] | None = ()
    """The channels that it can see, ascending; None for all that its owner sees."""
    directs: bool = False
    """Whether it can read its owner's direct messages."""

    def reaches(self, channel_id: int | None) -> bool:
        """Whether it can access that channel, or direct messages (None)."""
        if channel_id is None:
            return self.directs
        return self.channel_ids is None or channel_id in self.channel_ids


class AgentKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's key, stored as a digest only: the key is shown once."""

    id: int
    user_id: int
    """The owner, for whom the agent acts."""
    name: str
    digest: str
    """SHA-256 of the key in hexadecimal. Requests are looked up by it."""
    reach: Reach
    created_at: UnixSeconds
    used_at: int = 0
    """UNIX seconds of its last use, as last stored (`domain/accounts/agents.py`); 0 for never."""

    @property
    def client(self) -> str:
        """The client name of messages that the agent sends."""
        return f"agent {self.name}"


class AgentKeyMade(Change, frozen=True, tag="agent_key_made"):
    key: AgentKey


class AgentKeyUsed(Change, frozen=True, tag="agent_key_used"):
    """An agent was used after a break. `at` is in UNIX seconds."""

    key_id: int
    at: int


class AgentKeysEnded(Change, frozen=True, tag="agent_keys_ended"):
    """Keys of an owner's agents were revoked."""

    user_id: int
    key_ids: tuple[int, ...]
