"""Feeds: pages in RSS or Atom, of which a bot tells in a topic."""

from msgspec import Struct


class Feed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A feed that a bot follows."""

    id: int
    bot_id: int
    url: str
    channel_id: int
    topic: str = ""
    """Empty: the feed's own title."""
    has_begun: bool = False
    """Whether it was read since it has this address. What was in it before is not told."""
    seen: tuple[str, ...] = ()
    """The marks of entries that were told, or will not be; those that came first stand first."""
