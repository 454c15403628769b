"""Topics that users follow, mute or unmute."""

from enum import IntEnum

from msgspec import Struct

from tertulia.model.change import Change


class Visibility(IntEnum):
    """A user's setting of a topic."""

    INHERIT = 0
    """That of its channel: there is no record."""
    MUTED = 1
    UNMUTED = 2
    """Shown even where its channel is muted."""
    FOLLOWED = 3


class UserTopic(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One user's setting of one topic, which need not have messages."""

    user_id: int
    channel_id: int
    key: str
    """The name as it is compared: case-folded."""
    name: str
    visibility: Visibility
    changed_at: int
    """UNIX seconds."""


class UserTopicChanged(Change, frozen=True, tag="user_topic_changed"):
    """One user's setting of a topic is new, by their own command or by taking part in it.

    `at` is UNIX seconds, `was` what it was before.
    """

    user_id: int
    channel_id: int
    topic: str
    visibility: Visibility
    was: Visibility
    at: int
