"""Channels, who is subscribed to them, and their topics."""

from enum import Enum

from msgspec import Struct

from tertulia.model.groups import GroupSetting, SystemGroup


class TopicsPolicy(Enum):
    """Whether messages may be sent without a topic."""

    INHERIT = "inherit"
    ALLOW_EMPTY = "allow_empty_topic"
    DISABLE_EMPTY = "disable_empty_topic"
    EMPTY_ONLY = "empty_topic_only"


class Channel(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A named place for topics."""

    id: int
    name: str
    """Unique without regard to case, archived channels included."""
    description: str = ""
    rendered_description: str = ""
    created_at: int
    """UNIX seconds."""
    creator_id: int | None = None
    is_private: bool = False
    is_web_public: bool = False
    is_archived: bool = False
    is_default: bool = False
    """New users are subscribed to it."""
    history_public: bool = True
    """New subscribers see what was written before they came."""
    retention_days: int | None = None
    """None inherits the organization's; -1 keeps messages for ever."""
    topics_policy: TopicsPolicy = TopicsPolicy.INHERIT
    folder_id: int | None = None
    first_message_id: int | None = None
    last_message_at: int | None = None
    """UNIX seconds of the newest message, a day at most behind."""
    read_until: int = 0
    """Up to this message everything counts as read by everybody: the last one before the channel
    was archived."""
    is_recently_active: bool = True
    """False when nothing was written in it for a long time."""
    can_add_subscribers_group: GroupSetting = SystemGroup.NOBODY.value
    can_administer_channel_group: GroupSetting = SystemGroup.NOBODY.value
    can_create_topic_group: GroupSetting = SystemGroup.EVERYONE.value
    can_delete_any_message_group: GroupSetting = SystemGroup.NOBODY.value
    can_delete_own_message_group: GroupSetting = SystemGroup.NOBODY.value
    can_move_messages_out_of_channel_group: GroupSetting = SystemGroup.NOBODY.value
    can_move_messages_within_channel_group: GroupSetting = SystemGroup.NOBODY.value
    can_remove_subscribers_group: GroupSetting = SystemGroup.ADMINISTRATORS.value
    can_resolve_topics_group: GroupSetting = SystemGroup.NOBODY.value
    can_send_message_group: GroupSetting = SystemGroup.EVERYONE.value
    can_subscribe_group: GroupSetting = SystemGroup.NOBODY.value


class Subscription(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One user's relation to one channel: now, and in the past.

    `spans` are the ranges of message IDs during which the user was subscribed, oldest first,
    each `(after, until)`: a message is in it when after < id <= until, and the open one has
    until None. They say which messages the user received, so that no message needs a row per
    recipient.
    """

    channel_id: int
    user_id: int
    spans: tuple[tuple[int, int | None], ...]
    began: int = 0
    """The log's entry that began the present subscription (or the last)."""
    color: str
    """`#rrggbb` in lower case."""
    is_muted: bool = False
    pin_to_top: bool = False
    desktop_notifications: bool | None = None
    """None, here and below, follows the user's own setting."""
    audible_notifications: bool | None = None
    push_notifications: bool | None = None
    email_notifications: bool | None = None
    wildcard_mentions_notify: bool | None = None

    @property
    def is_active(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] is None

    @property
    def since(self) -> int:
        """The newest message ID that came before the present subscription (if active)."""
        return self.spans[-1][0]

    def covers(self, message_id: int) -> bool:
        """Whether the user was subscribed when the message was sent."""
        # Without a generator: it is asked for each message of a page.
        for after, until in reversed(self.spans):
            if after < message_id and (until is None or message_id <= until):
                return True
        return False


class Topic(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A conversation in a channel. It exists while it has messages."""

    channel_id: int
    key: str
    """The name as it is compared: case-folded."""
    name: str
    """As its newest message spells it; empty for the general chat."""
    last_message_id: int
    message_count: int


def topic_key(name: str) -> str:
    """What two spellings of one topic have in common."""
    return name.casefold()
