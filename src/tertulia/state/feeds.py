"""Feeds: table and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.model.feeds import Feed
from tertulia.model.nouns import Noun
from tertulia.state.folds import FOLDS, revised
from tertulia.state.tables import Grouped, Table

if TYPE_CHECKING:
    from tertulia.state.state import State


class FeedTable(Table[Feed]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_bot = Grouped(self, lambda feed: feed.bot_id)


FOLDS.puts(changes.FeedAdded, "feeds", "feed")


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


FOLDS.removes(changes.FeedRemoved, "feeds", "feed_id")
