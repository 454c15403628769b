"""RSS and Atom feeds that bots post from."""

from msgspec import Struct

from tertulia.model.change import Change


class Feed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: int
    bot_id: int
    url: str
    channel_id: int
    topic: str = ""
    """The topic; empty to use the feed's title."""
    has_begun: bool = False
    """Whether it was read since its URL was set. Entries from before aren't posted."""
    seen: tuple[str, ...] = ()
    """IDs of entries that were posted or skipped, oldest first."""


class FeedAdded(Change, frozen=True, tag="feed_added"):
    feed: Feed


class FeedChanged(Change, frozen=True, tag="feed_changed"):
    """A feed has a new URL or destination. If it `begins_anew`, its current entries aren't
    posted."""

    feed_id: int
    url: str
    channel_id: int
    topic: str
    begins_anew: bool


class FeedRead(Change, frozen=True, tag="feed_read"):
    """Entries of a feed were posted or skipped. `forgotten` are the IDs of old entries to
    forget."""

    feed_id: int
    seen: tuple[str, ...]
    forgotten: tuple[str, ...] = ()


class FeedRemoved(Change, frozen=True, tag="feed_removed"):
    feed_id: int
