"""Folds of feeds."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.FeedAdded)
def _(state: State, change: changes.FeedAdded) -> None:
    state.feeds.put(change.feed)


@FOLDS.of(changes.FeedChanged)
def _(state: State, change: changes.FeedChanged) -> None:
    feed = state.feeds[change.feed_id]
    values = {"url": change.url, "channel_id": change.channel_id, "topic": change.topic}
    has_begun = feed.has_begun and not change.begins_anew
    state.feeds.put(revised(feed, {**values, "has_begun": has_begun}))


@FOLDS.of(changes.FeedRead)
def _(state: State, change: changes.FeedRead) -> None:
    feed = state.feeds[change.feed_id]
    forgotten = frozenset(change.forgotten)
    seen = (*(mark for mark in feed.seen if mark not in forgotten), *change.seen)
    state.feeds.put(revised(feed, {"seen": seen, "has_begun": True}))


@FOLDS.of(changes.FeedRemoved)
def _(state: State, change: changes.FeedRemoved) -> None:
    state.feeds.remove(change.feed_id)
