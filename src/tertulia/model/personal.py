"""What people set up for themselves: words to be alerted of, and whom they do not want to read."""

from msgspec import Struct


class AlertWords(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The words whose use one person wants to hear of."""

    user_id: int
    words: tuple[str, ...] = ()
    """As they were written, in the order in which they were added; no two differ by case only."""


class MutedUser(Struct, frozen=True, kw_only=True):
    """Somebody whose messages one person does not want to read."""

    user_id: int
    """Who muted."""
    muted_id: int
    """Whom."""
    since: int
    """UNIX seconds."""
