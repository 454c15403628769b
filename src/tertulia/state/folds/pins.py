"""Folds of pinned messages, and what moves and deletions of messages do to pins."""

from collections.abc import Iterable

import msgspec
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.pins import MAX_PINS
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.MessagePinned)
def _(state: State, change: changes.MessagePinned) -> None:
    state.pins.put(change.pin)


@FOLDS.of(changes.MessageUnpinned)
def _(state: State, change: changes.MessageUnpinned) -> None:
    state.pins.remove(change.pin.message_id)


def take_pins_along(state: State, message_ids: BitMap, move: changes.MessagesMoved) -> None:
    """The pins of messages that were moved are where the messages are. Of more than a channel may
    have, those that were pinned first are given up."""
    for pin in state.pins.of_channel[move.channel_id]:
        if pin.message_id in message_ids:
            state.pins.put(
                msgspec.structs.replace(pin, channel_id=move.new_channel_id, topic=move.new_topic)
            )
    for pin in state.pins.newest_first(move.new_channel_id)[MAX_PINS:]:
        state.pins.remove(pin.message_id)


def forget_pins(state: State, message_ids: Iterable[int]) -> None:
    """The messages are gone, and their pins with them."""
    for message_id in message_ids:
        if message_id in state.pins:
            state.pins.remove(message_id)
