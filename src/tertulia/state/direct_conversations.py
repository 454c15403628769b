"""Direct conversations: the table and its indexes."""

from tertulia.model.messages import DirectConversation
from tertulia.model.nouns import Noun
from tertulia.state.indexes import Inverted, Unique
from tertulia.state.tables import Table


class DirectConversations(Table[DirectConversation]):
    """Who has ever written to each other. The members of a conversation stay the same."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_members = Unique(self, lambda conversation: conversation.members)
        self.of_user = Inverted(self, lambda conversation: conversation.members)
        """The IDs of an account's conversations."""
