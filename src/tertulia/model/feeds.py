"""Feeds: pages in RSS or Atom, of which a bot tells in a topic."""

from msgspec import Struct

from tertulia.model.change import Change


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


class FeedAdded(Change, frozen=True, tag="feed_added"):
    """A bot follows another feed."""

    feed: Feed


class FeedChanged(Change, frozen=True, tag="feed_changed"):
    """A feed has another address, or its entries go elsewhere. Where it `begins_anew`, what is in
    it by now is not told."""

    feed_id: int
    url: str
    channel_id: int
    topic: str
    begins_anew: bool


class FeedRead(Change, frozen=True, tag="feed_read"):
    """Entries of a feed were told, or will not be. `forgotten` are marks of older ones."""

    feed_id: int
    seen: tuple[str, ...]
    forgotten: tuple[str, ...] = ()


class FeedRemoved(Change, frozen=True, tag="feed_removed"):
    """A bot follows a feed no more."""

    feed_id: int
