"""Pinned messages: the table and its index."""

from collections.abc import Sequence

from tertulia.model.nouns import Noun
from tertulia.model.pins import Pin
from tertulia.state.indexes import Grouped
from tertulia.state.tables import Table


class Pins(Table[Pin]):
    """The messages that are pinned in channels."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_channel = Grouped[Pin](self, lambda pin: pin.channel_id)

    def newest_first(self, channel_id: int) -> Sequence[Pin]:
        """Those of a channel, in the order in which they are shown."""
        found = self.of_channel[channel_id]
        return sorted(found, key=lambda pin: (pin.pinned_at, pin.message_id), reverse=True)
