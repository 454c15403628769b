"""Subscriptions: your own and, with permission, other people's."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.channels import channels, subscription_settings
from tertulia.domain.channels.subscription_settings import SubscriptionProperty
from tertulia.domain.channels.subscriptions import SubscribeRequest
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service import bulk_subscriptions
from tertulia.service.messages.sending import people_addressed
from tertulia.wire.api.channels.endpoints import NewChannelOptions, new_channel
from tertulia.wire.api.channels.objects import (
    SubscriptionObject,
    list_subscribers,
    subscription_object,
)
from tertulia.wire.api.register import read_include_subscribers
from tertulia.wire.http.parameters import Doc, Int, IntPath, Reads
from tertulia.wire.http.routing import ApiResponse, Call


class SubscriptionsResponse(ApiResponse, kw_only=True):
    """Your subscriptions in ascending order of channel ID, without archived channels."""

    subscriptions: list[SubscriptionObject]


async def get_subscriptions(
    call: Call,
    include_subscribers: Annotated[
        str, Reads(read_include_subscribers, {"enum": [True, False, "partial"]})
    ] = "false",
) -> SubscriptionsResponse:
    """List the channels you're subscribed to."""
    turns = call.node.fragments.turns
    return await turns.in_one_turn(call.request, lambda: _subscriptions(call, include_subscribers))


def _subscriptions(call: Call, include_subscribers: str) -> SubscriptionsResponse:
    state, user, now = call.state, call.user, call.now
    lately = call.node.delivery.presence.lately
    subscriptions = []
    for channel_id in sorted(state.channel_ids_of(user.id)):
        channel = state.channels[channel_id]
        if channel.is_archived or not user.reaches(channel_id):
            continue
        subscription = state.subscriptions[(channel_id, user.id)]
        shown = subscription_object(state, subscription, now, nulls=True)
        visible = channel_access.sees_subscribers(state, user, channel)
        list_subscribers(state, channel, shown, include_subscribers, lately, visible=visible)
        subscriptions.append(shown)
    return SubscriptionsResponse(subscriptions=subscriptions)


class SubscriptionStatusResponse(ApiResponse, kw_only=True):
    """Whether the user is subscribed."""

    is_subscribed: bool


async def get_subscription_status(
    call: Call, user_id: IntPath, stream_id: IntPath
) -> SubscriptionStatusResponse:
    """Check whether a user is subscribed to a channel."""
    state, user = call.state, call.user
    other = _known_user(call, user_id)
    channel = channels.existing_channel(state, user, stream_id)
    if other.id != user.id and not channel_access.sees_subscribers(state, user, channel):
        raise Refused("You don't have permission to see this channel's subscribers.")
    return SubscriptionStatusResponse(
        is_subscribed=other.is_active and state.is_subscribed(other.id, channel.id)
    )


def _known_user(call: Call, user_id: int) -> User:
    other = call.state.users.get(user_id)
    if other is None or not permissions.sees_user(call.state, call.user, other):
        raise Refused("This user doesn't exist.")
    return other


class UserChannelsResponse(ApiResponse, kw_only=True):
    """The IDs of channels, in ascending order."""

    subscribed_channel_ids: list[int]


async def get_user_channels(call: Call, user_id: IntPath) -> UserChannelsResponse:
    """List the channels that a user is subscribed to, as far as you can see their subscribers."""
    state, user, other = call.state, call.user, _known_user(call, user_id)
    return UserChannelsResponse(
        subscribed_channel_ids=sorted(
            channel_id
            for channel_id in (state.channel_ids_of(other.id) if other.is_active else [])
            if not state.channels[channel_id].is_archived
            and channel_access.sees_subscribers(state, user, state.channels[channel_id])
        )
    )


# Subscribing and unsubscribing

Principals = Annotated[Sequence[Int | str], Doc("Users by ID or email address; you by default.")]


MAX_CHANNELS = 1000
"""The maximum number of channels in a request."""


class NamedChannel(Struct, kw_only=True, frozen=True):
    """A channel by name. `description` is used only if the channel is created."""

    name: str
    description: str | None = None
    color: str | None = None


NamedChannels = Annotated[Sequence[NamedChannel], Meta(max_length=MAX_CHANNELS)]
ChannelNames = Annotated[Sequence[str], Meta(max_length=MAX_CHANNELS)]


class Subscribe(NewChannelOptions, kw_only=True, frozen=True):
    subscriptions: NamedChannels
    principals: Principals = ()
    authorization_errors_fatal: Annotated[
        bool,
        Doc(
            "If true, the request fails if you can't access one of the channels. If false, such"
            " channels are listed in `unauthorized`."
        ),
    ] = True


class SubscribeResponse(ApiResponse, kw_only=True):
    """Names of channels by user ID. `unauthorized` and `new_subscription_messages_sent` are present
    only if the request asked for them."""

    subscribed: dict[str, list[str]]
    already_subscribed: dict[str, list[str]]
    unauthorized: list[str] | UnsetType = UNSET
    new_subscription_messages_sent: bool | UnsetType = UNSET


async def subscribe(call: Call, params: Subscribe) -> SubscribeResponse:
    """Subscribe yourself or others to channels. Channels that don't exist are created."""
    request = SubscribeRequest(
        channels=tuple(
            new_channel(call, subscription.name, subscription.description, params)
            for subscription in params.subscriptions
        ),
        principals=_principals(call, params.principals),
        colors=_colors(params.subscriptions),
        refusals_are_fatal=params.authorization_errors_fatal,
        announce=params.announce,
        notify_subscribed=params.send_new_subscription_messages,
    )
    outcome = await bulk_subscriptions.subscribe(call, request)
    return SubscribeResponse(
        subscribed=_by_user(outcome.subscribed),
        already_subscribed=_by_user(outcome.already_subscribed),
        unauthorized=UNSET if request.refusals_are_fatal else outcome.unauthorized,
        new_subscription_messages_sent=outcome.notified if request.notify_subscribed else UNSET,
    )


def _principals(call: Call, given: Sequence[int | str]) -> tuple[int, ...] | None:
    """Return the users' IDs, or None for the caller. Refuses unknown addresses."""
    return tuple(people_addressed(call, given)) or None


def _colors(named: Sequence[NamedChannel]) -> dict[str, str]:
    return {
        named_channel.name.strip().casefold(): subscription_settings.color(named_channel.color)
        for named_channel in named
        if named_channel.color is not None
    }


def _by_user(names: dict[int, list[str]]) -> dict[str, list[str]]:
    return {str(user_id): channel_names for user_id, channel_names in names.items()}


class UnsubscribeResponse(ApiResponse, kw_only=True):
    """Names of channels. A channel may be in both lists if the request was for several users."""

    removed: list[str]
    not_removed: list[str]


async def unsubscribe(
    call: Call, subscriptions: ChannelNames, principals: Principals = ()
) -> UnsubscribeResponse:
    """Unsubscribe yourself or others from channels."""
    removal = await bulk_subscriptions.unsubscribe(
        call, subscriptions, _principals(call, principals)
    )
    return UnsubscribeResponse(removed=removal.removed, not_removed=removal.not_removed)


class UpdateSubscriptionsResponse(ApiResponse, kw_only=True):
    """Names of channels, as in the responses of subscribing and unsubscribing."""

    subscribed: dict[str, list[str]]
    already_subscribed: dict[str, list[str]]
    new_subscription_messages_sent: bool
    removed: list[str]
    not_removed: list[str]


async def update_subscriptions(
    call: Call, add: NamedChannels = (), delete: ChannelNames = ()
) -> UpdateSubscriptionsResponse:
    """Subscribe to some channels and unsubscribe from others in one request."""
    if not add and not delete:
        raise Refused('Nothing to change: list at least one channel in "add" or "delete".')
    defaults = NewChannelOptions()
    request = SubscribeRequest(
        channels=tuple(
            new_channel(call, named_channel.name, named_channel.description, defaults)
            for named_channel in add
        ),
        colors=_colors(add),
    )
    done = await bulk_subscriptions.exchange(call, request, delete)
    return UpdateSubscriptionsResponse(
        subscribed=_by_user(done.outcome.subscribed),
        already_subscribed=_by_user(done.outcome.already_subscribed),
        new_subscription_messages_sent=done.outcome.notified,
        removed=done.removal.removed,
        not_removed=done.removal.not_removed,
    )


# Personal settings of a channel

PropertyName = Literal[
    "color",
    "is_muted",
    "in_home_view",
    "pin_to_top",
    "desktop_notifications",
    "audible_notifications",
    "push_notifications",
    "email_notifications",
    "wildcard_mentions_notify",
]


def _read_value(text: str) -> bool | str | None:
    """Read a Boolean or null as JSON, or a color as JSON or plain text."""
    if "\0" in text:
        raise ValueError("it contains a null byte")
    try:
        return msgspec.json.decode(text, type=bool | str | None)
    except (msgspec.DecodeError, UnicodeError):
        return text


class PropertyChange(Struct, kw_only=True, frozen=True):
    """A setting of a channel to change."""

    stream_id: Int
    property: str
    value: bool | str | None
    """For notification settings, null means to use your general settings."""


def _property(channel_id: int, name: str, value: bool | str | None) -> SubscriptionProperty:
    """Convert the setting. `in_home_view` is the older name for the opposite of `is_muted`."""
    if name == "in_home_view":
        if not isinstance(value, bool):
            raise Refused("in_home_view must be true or false.")
        return SubscriptionProperty(channel_id=channel_id, name="is_muted", value=not value)
    return SubscriptionProperty(channel_id=channel_id, name=name, value=value)


async def update_subscription_property(
    call: Call,
    stream_id: IntPath,
    property: PropertyName,
    value: Annotated[
        bool | str | None,
        Reads(_read_value, {"oneOf": [{"type": "boolean"}, {"type": "string"}, {"type": "null"}]}),
        Doc("For notification settings, null means to use your general settings."),
    ],
) -> None:
    """Change one of your settings for a channel."""
    given = [_property(stream_id, property, value)]
    await call.submit(subscription_settings.set_properties, given)


async def update_subscription_properties(
    call: Call, subscription_data: Annotated[list[PropertyChange], Meta(max_length=10_000)]
) -> None:
    """Change your settings for channels. If one is invalid, none are changed."""
    given = [
        _property(property_change.stream_id, property_change.property, property_change.value)
        for property_change in subscription_data
    ]
    await call.submit(subscription_settings.set_properties, given)
