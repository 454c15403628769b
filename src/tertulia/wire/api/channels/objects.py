"""Channels and subscriptions on the wire."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access
from tertulia.model.channels import Channel, Subscription
from tertulia.model.groups import SystemGroup
from tertulia.model.queues import Registration
from tertulia.model.users import PersonalSettings, User
from tertulia.state.state import State
from tertulia.wire.api.groups.objects import GroupSettingValue, group_setting

WEEK: Final = 7 * 86400
PARTIAL_FROM: Final = 250
"""Channels with fewer subscribers have their list complete even where it may be partial."""

GROUP_SETTINGS: Final = (
    "can_add_subscribers_group",
    "can_administer_channel_group",
    "can_create_topic_group",
    "can_delete_any_message_group",
    "can_delete_own_message_group",
    "can_move_messages_out_of_channel_group",
    "can_move_messages_within_channel_group",
    "can_remove_subscribers_group",
    "can_resolve_topics_group",
    "can_send_message_group",
    "can_subscribe_group",
)
"""The permission settings of a channel; called the same in the model."""

WIRE_NAMES: Final[Mapping[str, str]] = {
    "is_private": "invite_only",
    "history_public": "history_public_to_subscribers",
    "retention_days": "message_retention_days",
}
"""Fields of a channel that the wire calls differently."""

POST_POLICY: Final = {
    SystemGroup.ADMINISTRATORS.value: 2,
    SystemGroup.FULL_MEMBERS.value: 3,
    SystemGroup.MODERATORS.value: 4,
}


class ChannelObject(Struct, kw_only=True):
    """A channel."""

    stream_id: int
    name: str
    description: str
    rendered_description: str
    date_created: int
    creator_id: int | None
    invite_only: bool
    is_web_public: bool
    is_archived: bool
    is_announcement_only: bool
    stream_post_policy: int
    history_public_to_subscribers: bool
    message_retention_days: int | None
    first_message_id: int | None
    folder_id: int | None
    topics_policy: str
    is_recently_active: bool
    stream_weekly_traffic: int | None
    subscriber_count: int
    can_add_subscribers_group: GroupSettingValue
    can_administer_channel_group: GroupSettingValue
    can_create_topic_group: GroupSettingValue
    can_delete_any_message_group: GroupSettingValue
    can_delete_own_message_group: GroupSettingValue
    can_move_messages_out_of_channel_group: GroupSettingValue
    can_move_messages_within_channel_group: GroupSettingValue
    can_remove_subscribers_group: GroupSettingValue
    can_resolve_topics_group: GroupSettingValue
    can_send_message_group: GroupSettingValue
    can_subscribe_group: GroupSettingValue
    is_default: bool | UnsetType = UNSET
    subscribers: list[int] | UnsetType = UNSET
    partial_subscribers: list[int] | UnsetType = UNSET


class SubscriptionObject(ChannelObject, kw_only=True):
    """A channel with one user's own settings of it."""

    color: str
    is_muted: bool
    in_home_view: bool
    pin_to_top: bool
    desktop_notifications: bool | None
    audible_notifications: bool | None
    push_notifications: bool | None
    email_notifications: bool | None
    wildcard_mentions_notify: bool | None
    email_address: str


def post_policy(channel: Channel) -> int:
    """Who may post, in the numbers of old: 1 everybody (or a group of its own), 2 administrators,
    3 full members, 4 moderators."""
    setting = channel.can_send_message_group
    return POST_POLICY.get(setting, 1) if isinstance(setting, int) else 1


def _channel_fields(state: State, channel: Channel, now: float) -> dict[str, Any]:
    policy = post_policy(channel)
    return {
        "stream_id": channel.id,
        "name": channel.name,
        "description": channel.description,
        "rendered_description": channel.rendered_description,
        "date_created": channel.created_at,
        "creator_id": channel.creator_id,
        "invite_only": channel.is_private,
        "is_web_public": channel.is_web_public,
        "is_archived": channel.is_archived,
        "is_announcement_only": policy == 2,
        "stream_post_policy": policy,
        "history_public_to_subscribers": channel.history_public,
        "message_retention_days": channel.retention_days,
        "first_message_id": channel.first_message_id,
        "folder_id": channel.folder_id,
        "topics_policy": channel.topics_policy.value,
        "is_recently_active": channel.is_recently_active,
        "stream_weekly_traffic": weekly_traffic(state, [channel], now)[channel.id],
        "subscriber_count": len(state.active_subscribers.as_set(channel.id)),
        **{name: group_setting(state, getattr(channel, name)) for name in GROUP_SETTINGS},
    }


def weekly_traffic(state: State, channels: Iterable[Channel], now: float) -> dict[int, int | None]:
    """Messages a week in each of the channels, by its ID: on average over the channel's life; None
    in its first week."""
    # Without a call for each: all channels are asked for at once.
    counts = state.topics.message_counts.by_channel
    return {
        one.id: None
        if (age := now - one.created_at) < WEEK
        else round(counts.get(one.id, 0) * WEEK / age)
        for one in channels
    }


def channel_object(
    state: State, channel: Channel, now: float, *, with_default: bool = False
) -> ChannelObject:
    """The channel, for those who may know of it."""
    shown = ChannelObject(**_channel_fields(state, channel, now))
    if with_default:
        shown.is_default = channel.is_default
    return shown


NOTIFICATIONS: Final[Mapping[str, str]] = {
    "desktop_notifications": "enable_channel_desktop_notifications",
    "audible_notifications": "enable_channel_audible_notifications",
    "push_notifications": "enable_channel_push_notifications",
    "email_notifications": "enable_channel_email_notifications",
    "wildcard_mentions_notify": "wildcard_mentions_notify",
}
"""A channel's notification settings, and the personal setting that each inherits from."""


def subscription_object(
    state: State,
    subscription: Subscription,
    now: float,
    *,
    nulls: bool,
) -> SubscriptionObject:
    """The subscription. Without `nulls`, inherited notification settings are spelled out."""
    channel = state.channels[subscription.channel_id]
    return SubscriptionObject(
        **_channel_fields(state, channel, now),
        **subscription_fields(
            own_settings(subscription),
            inherited_settings(state, subscription.user_id, nulls=nulls),
        ),
    )


_INHERITED = attrgetter(*NOTIFICATIONS.values())
OwnSettings = tuple[Any, ...]
"""What a subscriber has set of a channel, or has for all channels: for `subscription_fields`."""


def inherited_settings(state: State, user_id: int, *, nulls: bool) -> OwnSettings | None:
    """What the user has for all channels; None where that is not spelled out."""
    if nulls:
        return None
    settings = state.settings.get(user_id) or PersonalSettings(user_id=user_id)
    return (None, None, None, *_INHERITED(settings))


own_settings: Final[Callable[[Subscription], OwnSettings]] = attrgetter(
    "color", "is_muted", "pin_to_top", *NOTIFICATIONS
)
"""What the subscriber has set of the channel; None for what is inherited."""


def subscription_fields(own: OwnSettings, inherited: OwnSettings | None) -> dict[str, Any]:
    """What a subscription adds to its channel."""
    if inherited is not None:
        own = tuple(
            other if one is None else one for one, other in zip(own, inherited, strict=True)
        )
    color, is_muted, pin_to_top, *notifications = own
    return {
        "color": color,
        "is_muted": is_muted,
        "in_home_view": not is_muted,
        "pin_to_top": pin_to_top,
        **dict(zip(NOTIFICATIONS, notifications, strict=True)),
        # For clients of old, which cannot show a channel without it: no channel takes mail.
        "email_address": "",
    }


def add_subscribers(
    state: State,
    viewer: User | None,
    channel: Channel,
    shown: ChannelObject,
    wanted: str,
    lately: frozenset[int] = frozenset(),
) -> None:
    """Add the list of subscribers, as far as the viewer may know it."""
    visible = viewer is None or channel_access.sees_subscribers(state, viewer, channel)
    list_subscribers(state, channel, shown, wanted, lately, visible=visible)


def list_subscribers(
    state: State,
    channel: Channel,
    shown: ChannelObject,
    wanted: str,
    lately: frozenset[int],
    *,
    visible: bool,
) -> None:
    """Add the list of subscribers, complete (`true`) or, for large channels and `partial`, of
    bots and those seen `lately`; an empty one if they are not `visible`."""
    if wanted == "false":
        return
    if not visible:
        shown.subscribers = []
        return
    subscribers = state.subscribers(channel.id)
    if wanted == "partial" and len(subscribers) >= PARTIAL_FROM:
        there = lately | {*state.users.bots}
        shown.partial_subscribers = [user_id for user_id in subscribers if user_id in there]
    else:
        shown.subscribers = list(subscribers)


def excluded(channel: Channel, registration: Registration, *, archived: bool = False) -> bool:
    """Whether the client does not know what an archived channel is, and this is one, or was one
    (`archived`) when something happened to it."""
    return (channel.is_archived or archived) and not registration.capabilities.archived_channels
