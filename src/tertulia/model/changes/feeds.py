"""Feeds that bots follow."""

from tertulia.model.changes.base import Change
from tertulia.model.feeds import Feed


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
