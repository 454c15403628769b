"""Feeds that bots follow: the table and its index."""

from tertulia.model.feeds import Feed
from tertulia.model.nouns import Noun
from tertulia.state.indexes import Grouped
from tertulia.state.tables import Table


class Feeds(Table[Feed]):
    """All feeds."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_bot = Grouped(self, lambda feed: feed.bot_id)
