"""Channels and subscriptions as JSON objects."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.model.channels import Channel, Subscription
from tertulia.model.groups import SystemGroup
from tertulia.model.queues import Registration
from tertulia.model.users import PersonalSettings
from tertulia.state.state import State
from tertulia.wire.api.groups.objects import GroupSettingValue, group_setting

WEEK: Final = 7 * 86400
PARTIAL_FROM: Final = 250
"""Channels with fewer subscribers than this list all of them, even if a partial list is allowed."""

WIRE_NAMES: Final[Mapping[str, str]] = {
    "is_private": "invite_only",
    "history_public": "history_public_to_subscribers",
    "retention_days": "message_retention_days",
}
"""Fields of a channel with another name in the API."""

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
    """A channel with your personal settings for it."""

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
    """Return the legacy number for who can post: 1 everyone or a custom group, 2 administrators, 3
    full members, 4 moderators."""
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
        **{name: group_setting(state, getattr(channel, name)) for name in CHANNEL_SETTINGS},
    }


def weekly_traffic(state: State, channels: Iterable[Channel], now: float) -> dict[int, int | None]:
    """Return the average number of messages per week in each channel, or None in a channel's first
    week."""
    counts = state.topics.message_counts.by_channel
    return {
        channel.id: None
        if (age := now - channel.created_at) < WEEK
        else round(counts.get(channel.id, 0) * WEEK / age)
        for channel in channels
    }


def channel_object(
    state: State, channel: Channel, now: float, *, with_default: bool = False
) -> ChannelObject:
    made = ChannelObject(**_channel_fields(state, channel, now))
    if with_default:
        made.is_default = channel.is_default
    return made


NOTIFICATIONS: Final[Mapping[str, str]] = {
    "desktop_notifications": "enable_channel_desktop_notifications",
    "audible_notifications": "enable_channel_audible_notifications",
    "push_notifications": "enable_channel_push_notifications",
    "email_notifications": "enable_channel_email_notifications",
    "wildcard_mentions_notify": "wildcard_mentions_notify",
}
"""A channel's notification settings, and the personal settings that they inherit from."""


def subscription_object(
    state: State,
    subscription: Subscription,
    now: float,
    *,
    nulls: bool,
) -> SubscriptionObject:
    """Return the subscription. Without `nulls`, inherited notification settings are filled in."""
    channel = state.channels[subscription.channel_id]
    return SubscriptionObject(
        **_channel_fields(state, channel, now),
        **subscription_fields(
            own_settings(subscription),
            inherited_settings(state, subscription.user_id, nulls=nulls),
        ),
    )


_INHERITED = attrgetter(*NOTIFICATIONS.values())
SubscriptionValues = tuple[Any, ...]
"""The values of `own_settings` or `inherited_settings`."""


def inherited_settings(state: State, user_id: int, *, nulls: bool) -> SubscriptionValues | None:
    """Return the user's settings for all channels, or None if `nulls` stay."""
    if nulls:
        return None
    settings = state.settings.get(user_id) or PersonalSettings(user_id=user_id)
    return (None, None, None, *_INHERITED(settings))


own_settings: Final[Callable[[Subscription], SubscriptionValues]] = attrgetter(
    "color", "is_muted", "pin_to_top", *NOTIFICATIONS
)
"""The subscriber's settings for the channel; None if inherited."""


def subscription_fields(
    values: SubscriptionValues, inherited: SubscriptionValues | None
) -> dict[str, Any]:
    """Return the fields that a subscription adds to its channel."""
    if inherited is not None:
        values = tuple(
            other if value is None else value
            for value, other in zip(values, inherited, strict=True)
        )
    color, is_muted, pin_to_top, *notifications = values
    return {
        "color": color,
        "is_muted": is_muted,
        "in_home_view": not is_muted,
        "pin_to_top": pin_to_top,
        **dict(zip(NOTIFICATIONS, notifications, strict=True)),
        # Older clients can't display a channel without this field.
        "email_address": "",
    }


def list_subscribers(
    state: State,
    channel: Channel,
    to: ChannelObject,
    include_subscribers: str,
    lately: frozenset[int] = frozenset(),
    *,
    visible: bool,
) -> None:
    """Add the subscribers that `include_subscribers` asks for: all of them (`true`), or in large
    channels (`partial`) only bots and users seen `lately`. The list is empty unless `visible`."""
    if include_subscribers == "false":
        return
    if not visible:
        to.subscribers = []
        return
    subscribers = state.subscribers(channel.id)
    if include_subscribers == "partial" and len(subscribers) >= PARTIAL_FROM:
        listed = lately | {*state.users.bots}
        to.partial_subscribers = [user_id for user_id in subscribers if user_id in listed]
    else:
        to.subscribers = list(subscribers)


def excluded(channel: Channel, registration: Registration, *, archived: bool = False) -> bool:
    """Whether the channel is archived, or was at the time of an event (`archived`), and the client
    doesn't support archived channels."""
    return (channel.is_archived or archived) and not registration.capabilities.archived_channels
