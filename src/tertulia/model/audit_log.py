"""Records of the audit log: who did what to whom, and from where."""

from typing import Any, Literal

from msgspec import Struct

Way = Literal["session", "api_key", "access_key", "page", "directory", "command_line", "server"]
"""How a request was authenticated: by a browser session, the account's API key, or another key.
`page`: by nothing yet, such as a password that is being entered. `directory`: by a directory
service's token. The operator's command line and the server's own jobs need no authentication."""


class Origin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where something was done from."""

    way: Way = "server"
    address: str = ""
    """The client's IP address."""
    agent: str = ""
    """The client's user agent."""
    session_id: int | None = None
    key_id: int | None = None
    """The access key."""
    command: str = ""
    """The operator's command, such as `tertulia users erase`."""


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was done. It has no names of people, and nothing from messages."""

    kind: str
    at: float
    """UNIX seconds."""
    actor_id: int | None = None
    """The account that did it; None for the server and for people who aren't signed in."""
    user_id: int | None = None
    """The account that it was done to."""
    origin: Origin = Origin()
    details: dict[str, Any] = {}
    """By name; see `state/audit_log.py`. Personal data is in `addresses`, and in `changes` of names
    and addresses."""
