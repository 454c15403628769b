"""The organization's own emoji: the table and its index."""

from tertulia.model.nouns import Noun
from tertulia.model.reactions import CustomEmoji
from tertulia.state.indexes import Grouped, Unique
from tertulia.state.tables import Table


class CustomEmojiTable(Table[CustomEmoji]):
    """The organization's own emoji, deactivated ones too."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_name = Unique(self, lambda emoji: None if emoji.deactivated else emoji.name)
        """The active ones."""
        self.of_author = Grouped(self, lambda emoji: emoji.author_id)
