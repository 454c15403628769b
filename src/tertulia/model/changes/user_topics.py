"""Topics that users follow, mute or unmute."""

from tertulia.model.changes.base import Change
from tertulia.model.user_topics import Visibility


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
