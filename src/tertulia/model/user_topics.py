"""Topics that users follow, mute or unmute."""

from enum import IntEnum

from msgspec import Struct


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
