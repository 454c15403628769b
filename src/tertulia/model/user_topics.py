"""Topics that users follow, mute, or unmute."""

from enum import IntEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Visibility(IntEnum):
    INHERIT = 0
    """Uses the channel's setting; isn't stored."""
    MUTED = 1
    UNMUTED = 2
    """The topic is shown even in a muted channel."""
    FOLLOWED = 3


class UserTopic(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A user's visibility policy for a topic, which can be empty."""

    user_id: int
    channel_id: int
    key: str
    """The case-folded name, for comparison."""
    name: str
    visibility: Visibility
    changed_at: UnixSeconds


class UserTopicChanged(Change, frozen=True, tag="user_topic_changed"):
    """A user's visibility policy for a topic changed, by their command or automatically. `at` is in
    UNIX seconds; `was` is the old policy."""

    user_id: int
    channel_id: int
    topic: str
    visibility: Visibility
    was: Visibility
    at: int
