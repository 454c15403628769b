"""Pinned messages: table and folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.nouns import Noun
from tertulia.model.pins import MAX_PINS, Pin
from tertulia.state.folds import FOLDS
from tertulia.state.tables import Grouped, Table

if TYPE_CHECKING:
    from tertulia.state.state import State


class PinTable(Table[Pin]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_channel = Grouped[Pin](self, lambda pin: pin.channel_id)

    def newest_first(self, channel_id: int) -> Sequence[Pin]:
        """Return a channel's pins, newest first."""
        pins = self.of_channel[channel_id]
        return sorted(pins, key=lambda pin: (pin.pinned_at, pin.message_id), reverse=True)


FOLDS.puts(changes.MessagePinned, "pins", "pin")


@FOLDS.of(changes.MessageUnpinned)
def _(state: State, change: changes.MessageUnpinned) -> None:
    state.pins.remove(change.pin.message_id)


def take_pins_along(state: State, message_ids: BitMap, move: changes.MessagesMoved) -> None:
    """Move the pins of moved messages. If the channel has too many, remove the oldest."""
    for pin in state.pins.of_channel[move.channel_id]:
        if pin.message_id in message_ids:
            state.pins.put(
                msgspec.structs.replace(pin, channel_id=move.new_channel_id, topic=move.new_topic)
            )
    for pin in state.pins.newest_first(move.new_channel_id)[MAX_PINS:]:
        state.pins.remove(pin.message_id)


def forget_pins(state: State, message_ids: Iterable[int]) -> None:
    """Remove the pins of deleted messages."""
    for message_id in message_ids:
        if message_id in state.pins:
            state.pins.remove(message_id)
