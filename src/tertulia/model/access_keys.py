"""Access keys, with which devices, programs, and agents act for a person, with fewer rights than
the person."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Reach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of its owner's access that an access key has. Anything else is denied."""

    may_write: bool = False
    """Whether it can send and edit messages, react, mark messages, save drafts, and follow topics.
    An agent (`/mcp`) can edit only messages that it sent."""
    channel_ids: tuple[int, ...] | None = ()
    """The channels that it can see, ascending; None for all that its owner sees."""
    directs: bool = False
    """Whether it can read its owner's direct messages."""

    def reaches(self, channel_id: int | None) -> bool:
        """Whether it can access this channel, or direct messages (None)."""
        if channel_id is None:
            return self.directs
        return self.channel_ids is None or channel_id in self.channel_ids

    @property
    def is_limited(self) -> bool:
        """Whether it sees less than its owner does."""
        return self.channel_ids is not None or not self.directs


class KeyAccess(StrEnum):
    """The operations that a key allows on the data it can access."""

    READ = "read"
    SEND = "send"
    """Reading, and sending and editing messages, reacting, marking, and saving drafts."""
    FULL = "full"
    """Everything except managing keys, sessions, and other ways to sign in."""


class AccessKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key of a device, a program, or an agent. Only its digest is stored, so the key is shown
    only once."""

    id: int
    user_id: int
    """The account that the key acts for."""
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
    """Whether it can also change settings and other things besides messages."""
    opens_api: bool = False
    """Whether it's accepted wherever its owner's API key is. Agents' keys are accepted only at
    `/mcp`."""
    expires_at: int = 0
    """UNIX seconds; 0 for never."""
    is_of_client: bool = False
    """Whether it was created for a client that signed in. If the account has too many keys, the
    least recently used of these is revoked."""

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
    """A key was used for the first time in a while. `at` is in UNIX seconds."""

    key_id: int
    at: int
    address: str = ""


class AccessKeysEnded(Change, frozen=True, tag="agent_keys_ended"):
    """Keys of an account were revoked, or expired."""

    user_id: int
    key_ids: tuple[int, ...]
