"""Access keys: keys with which devices, programs, and agents act for a person, and can do less than
they can."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Reach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an access key can reach of what its owner can. Anything else is denied."""

    may_write: bool = False
    """Whether it can work with messages: send, edit its owner's, react, mark, draft, and follow
    topics. An agent (`/mcp`) edits only what it wrote."""
    channel_ids: tuple[int, ...] | None = ()
    """The channels that it can see, ascending; None for all that its owner sees."""
    directs: bool = False
    """Whether it can read its owner's direct messages."""

    def reaches(self, channel_id: int | None) -> bool:
        """Whether it can access that channel, or direct messages (None)."""
        if channel_id is None:
            return self.directs
        return self.channel_ids is None or channel_id in self.channel_ids

    @property
    def is_limited(self) -> bool:
        """Whether it sees less than its owner does."""
        return self.channel_ids is not None or not self.directs


class KeyAccess(StrEnum):
    """What a key can do with what it sees."""

    READ = "read"
    SEND = "send"
    """Read, and work with messages: send, edit, react, mark, draft."""
    FULL = "full"
    """Everything but managing keys, sessions, and whatever else decides who can sign in."""


class AccessKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key of a device, a program, or an agent, stored as a digest only: the key is shown once."""

    id: int
    user_id: int
    """The owner, for whom it acts."""
    name: str
    digest: str
    """SHA-256 of the key in hexadecimal. Requests are looked up by it."""
    reach: Reach
    created_at: UnixSeconds
    used_at: int = 0
    """UNIX seconds of its last use, as last stored (`domain/accounts/access_keys.py`); 0 for
    never."""
    used_from: str = ""
    """The network address of that use; empty if unknown."""
    is_full: bool = False
    """Whether it can also change what isn't sending."""
    opens_api: bool = False
    """Whether it is accepted wherever its owner's API key is. Agents' keys are accepted only at
    `/mcp`."""
    expires_at: int = 0
    """UNIX seconds; 0 for never."""
    is_of_client: bool = False
    """Whether it was made for a client that signed in. The least recently used of these makes room
    for another."""

    @property
    def access(self) -> KeyAccess:
        if self.is_full:
            return KeyAccess.FULL
        return KeyAccess.SEND if self.reach.may_write else KeyAccess.READ

    @property
    def client(self) -> str:
        """The client name of messages that it sends as an agent."""
        return f"agent {self.name}"

    def lasts(self, now: float) -> bool:
        """Whether it hasn't expired."""
        return not self.expires_at or now < self.expires_at


class AccessKeyMade(Change, frozen=True, tag="agent_key_made"):
    key: AccessKey


class AccessKeyUsed(Change, frozen=True, tag="agent_key_used"):
    """A key was used after a break. `at` is in UNIX seconds."""

    key_id: int
    at: int
    address: str = ""


class AccessKeysEnded(Change, frozen=True, tag="agent_keys_ended"):
    """Keys of an account were revoked, or expired."""

    user_id: int
    key_ids: tuple[int, ...]
