"""Channels, subscriptions, and topics."""

from enum import Enum
from typing import Any, Final

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.groups import GroupSetting, SystemGroup
from tertulia.model.numbers import UnixSeconds


class TopicsPolicy(Enum):
    """Whether messages in the channel need a topic."""

    INHERIT = "inherit"
    ALLOW_EMPTY = "allow_empty_topic"
    DISABLE_EMPTY = "disable_empty_topic"
    EMPTY_ONLY = "empty_topic_only"


class Channel(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: int
    name: str
    """Unique, ignoring case, including archived channels."""
    description: str = ""
    rendered_description: str = ""
    created_at: UnixSeconds
    creator_id: int | None = None
    is_private: bool = False
    is_web_public: bool = False
    is_archived: bool = False
    is_default: bool = False
    """Whether new users are subscribed to it."""
    history_public: bool = True
    """Whether new subscribers can read older messages."""
    retention_days: int | None = None
    """Days for which messages are kept. None uses the organization's setting; -1 keeps messages
    forever."""
    topics_policy: TopicsPolicy = TopicsPolicy.INHERIT
    folder_id: int | None = None
    first_message_id: int | None = None
    last_message_at: int | None = None
    """The time of the newest message in UNIX seconds, at most one day behind."""
    read_until: int = 0
    """The last message before the channel was archived. Messages up to it count as read by
    everyone."""
    is_recently_active: bool = True
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
    """A user's subscription to a channel, present or past.

    `spans` are the ranges of message IDs during which the user was subscribed, oldest first:
    `(after, until)` contains messages with after < id <= until, and the open one has until None.
    They say which messages the user received, so messages need no row per recipient.
    """

    channel_id: int
    user_id: int
    spans: tuple[tuple[int, int | None], ...]
    began: int = 0
    """The log's entry that began the present (or last) subscription."""
    color: str
    """`#rrggbb` in lowercase."""
    is_muted: bool = False
    pin_to_top: bool = False
    desktop_notifications: bool | None = None
    """None, here and below, uses the user's general setting."""
    audible_notifications: bool | None = None
    push_notifications: bool | None = None
    email_notifications: bool | None = None
    wildcard_mentions_notify: bool | None = None

    @property
    def is_active(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] is None

    @property
    def since(self) -> int:
        """The newest message ID before the present subscription, if it's active."""
        return self.spans[-1][0]

    def covers(self, message_id: int) -> bool:
        """Whether the user was subscribed when the message was sent."""
        # A loop is faster than a generator: this is called for each message of a page.
        for after, until in reversed(self.spans):
            if after < message_id and (until is None or message_id <= until):
                return True
        return False


RESOLVED_PREFIX: Final = "✔ "
"""The prefix of resolved topics' names. Case-folding doesn't change it."""


class Topic(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A topic of a channel. It exists while it has messages."""

    channel_id: int
    key: str
    """The case-folded name, for comparison."""
    name: str
    """The name as its newest message spells it; empty for the general chat."""
    last_message_id: int
    message_count: int


def topic_key(name: str) -> str:
    """Return the key that all spellings of a topic share."""
    return name.casefold()


class ChannelCreated(Change, frozen=True, tag="channel_created"):
    """A channel was created, without subscribers."""

    channel: Channel


class ChannelChanged(Change, frozen=True, tag="channel_changed"):
    """Fields of a channel have new values; `was` has the old values.

    `gained` and `lost` are users who gained or lost sight of the channel. If there are `gained`, or
    the channel was unarchived, `subscribers` are its subscribers then. `archived` is the previous
    value of `is_archived`. The three privacy fields always come together.
    """

    channel_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class Subscribed(Change, frozen=True, tag="subscribed"):
    """Users were subscribed to a channel; `colors` has each one's color.

    `after` is the newest message that they did not receive. `gained` are those who couldn't see the
    channel before. `count` is the number of active subscribers afterwards.
    """

    channel_id: int
    colors: dict[int, str]
    after: int
    gained: tuple[int, ...] = ()
    count: int | None = None
    archived: bool = False

    @property
    def user_ids(self) -> tuple[int, ...]:
        return tuple(self.colors)


class Unsubscribed(Change, frozen=True, tag="unsubscribed"):
    """Users were unsubscribed from a channel.

    `until` is the last message that they received. `lost` are those who can no longer see the
    channel. `name` is the channel's name then.
    """

    channel_id: int
    user_ids: tuple[int, ...]
    until: int
    lost: tuple[int, ...] = ()
    name: str = ""
    archived: bool = False


class SubscriptionChanged(Change, frozen=True, tag="subscription_changed"):
    """A personal setting of a channel (`color`, `is_muted`, …) has a new value."""

    channel_id: int
    user_id: int
    property: str
    value: bool | str | None
    archived: bool = False
