"""Gains: things that viewers can see only since a recent entry of the log. Events of earlier
entries, for clients that poll late, are made from the current state, and must not mention what the
client gets with a later entry."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.change import Change
from tertulia.model.changes import Entry
from tertulia.model.users import Role

REMEMBERED: Final = 1024
"""The number of remembered gains."""
WITHOUT_ARCHIVED: Final = 0
"""The viewer that stands for all clients that don't support archived channels."""
RECALLED: Final = 10_000
"""The number of the log's newest entries whose gains are recalled when the state is loaded."""


class Gain(NamedTuple):
    """Things that an entry made visible to viewers."""

    seq: int
    viewers: BitMap
    ids: BitMap


class RecentGains:
    """The most recent gains of one kind of thing."""

    def __init__(self) -> None:
        self._gains: deque[Gain] = deque(maxlen=REMEMBERED)

    def add(self, seq: int, viewers: Iterable[int], ids: Iterable[int]) -> None:
        """Record that these viewers can see these things since that entry."""
        self._gains.append(Gain(seq, BitMap(viewers), BitMap(ids)))

    def since(self, seq: int, viewer_id: int, thing_id: int) -> bool:
        """Whether the viewer can see the thing only since an entry after `seq`, according to the
        remembered gains."""
        for gain in reversed(self._gains):
            if gain.seq <= seq:
                return False
            if viewer_id in gain.viewers and thing_id in gain.ids:
                return True
        return False


_OF_CHANNELS: Final = (
    changes.ChannelChanged,
    changes.FullMembersChanged,
    changes.Subscribed,
    changes.UserChanged,
    changes.UserGroupMembersChanged,
)
GAINING: Final = (*_OF_CHANNELS, changes.UserVisibilityChanged)
"""Changes that can make something visible to someone."""


def channels_gained(entry: Entry) -> Iterator[tuple[Iterable[int], Iterable[int]]]:
    """Yield groups of viewers, each with the channels that the entry made visible to them."""
    change: Change = entry.change
    if not isinstance(change, _OF_CHANNELS):
        return
    if isinstance(change, changes.ChannelChanged) and change.values.get("is_archived") is False:
        yield (WITHOUT_ARCHIVED,), (change.channel_id,)
    match change:
        case changes.ChannelChanged() | changes.Subscribed() if change.gained:
            yield change.gained, (change.channel_id,)
        case changes.UserChanged() if change.gained:
            yield (change.user_id,), change.gained
    for sight in getattr(change, "sight", ()):
        if sight.gained:
            yield sight.gained, (sight.channel_id,)


def new_administrators(entry: Entry) -> Iterator[int]:
    """Yield the account that became an administrator with the entry, if any."""
    change = entry.change
    if (
        isinstance(change, changes.UserChanged)
        and "role" in change.values
        and change.values["role"] <= Role.ADMINISTRATOR < change.was["role"]
    ):
        yield change.user_id
