"""Subscriptions: one's own and, where that is allowed, other people's."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.channels import channels, subscriptions
from tertulia.domain.channels.subscriptions import SubscribeRequest, SubscriptionProperty
from tertulia.model.errors import Refused
from tertulia.service import bulk_subscriptions
from tertulia.wire.api.channels.endpoints import NewChannelOptions, new_channel
from tertulia.wire.api.channels.objects import (
    SubscriptionObject,
    add_subscribers,
    subscription_object,
)
from tertulia.wire.api.register import read_include_subscribers
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.routing import ApiResponse


class GetSubscriptions(Params, kw_only=True, frozen=True):
    """Whether to list each channel's subscribers."""

    include_subscribers: Annotated[
        str, Reads(read_include_subscribers, {"enum": [True, False, "partial"]})
    ] = "false"


class OwnSubscriptions(ApiResponse, kw_only=True):
    """The caller's subscriptions to channels that are not archived, by ID."""

    subscriptions: list[SubscriptionObject]


async def get_subscriptions(call: Call, params: GetSubscriptions) -> OwnSubscriptions:
    """The channels that the caller is subscribed to."""
    state, user, now = call.state, call.user, call.now
    seen = call.node.delivery.presence.lately
    shown = []
    for channel_id in sorted(state.channel_ids_of(user.id)):
        channel = state.channels[channel_id]
        if channel.is_archived:
            continue
        subscription = state.subscriptions[(channel_id, user.id)]
        one = subscription_object(state, subscription, now, nulls=True)
        add_subscribers(state, user, channel, one, params.include_subscribers, seen)
        shown.append(one)
    return OwnSubscriptions(subscriptions=shown)


class GetSubscriptionStatus(Params, kw_only=True, frozen=True):
    """Somebody and a channel."""

    user_id: Annotated[Int, Path()]
    stream_id: Annotated[Int, Path()]


class SubscriptionStatus(ApiResponse, kw_only=True):
    """Whether the one is subscribed to the other."""

    is_subscribed: bool


async def get_subscription_status(call: Call, params: GetSubscriptionStatus) -> SubscriptionStatus:
    """Whether somebody is subscribed to a channel."""
    state, user = call.state, call.user
    other = state.users.get(params.user_id)
    if other is None or not permissions.sees_user(state, user, other):
        raise Refused("This user doesn't exist.")
    channel = channels.known(state, user, params.stream_id)
    if other.id != user.id and not channel_access.sees_subscribers(state, user, channel):
        raise Refused("You don't have permission to see this channel's subscribers.")
    return SubscriptionStatus(
        is_subscribed=other.is_active and state.is_subscribed(other.id, channel.id)
    )


class GetChannelsOf(Params, kw_only=True, frozen=True):
    """Somebody."""

    user_id: Annotated[Int, Path()]


class ChannelsOf(ApiResponse, kw_only=True):
    """IDs of channels, ascending."""

    subscribed_channel_ids: list[int]


async def get_user_channels(call: Call, params: GetChannelsOf) -> ChannelsOf:
    """The channels that somebody is subscribed to, as far as the caller may know."""
    state, user = call.state, call.user
    other = state.users.get(params.user_id)
    if other is None or not permissions.sees_user(state, user, other):
        raise Refused("This user doesn't exist.")
    found = [
        channel_id
        for channel_id in (state.channel_ids_of(other.id) if other.is_active else [])
        if not state.channels[channel_id].is_archived
        and channel_access.sees_subscribers(state, user, state.channels[channel_id])
    ]
    return ChannelsOf(subscribed_channel_ids=sorted(found))


# Subscribing and unsubscribing

Principals = Annotated[
    list[Int | str], Meta(description="People by ID (or address); the caller by default.")
]


MAX_CHANNELS = 1000
"""Channels that one request may name."""


class NamedChannel(Struct, kw_only=True, frozen=True):
    """A channel by name; the description is for one that does not exist yet."""

    name: str
    description: str | None = None
    color: str | None = None


NamedChannels = Annotated[list[NamedChannel], Meta(max_length=MAX_CHANNELS)]
ChannelNames = Annotated[list[str], Meta(max_length=MAX_CHANNELS)]


class Subscribe(NewChannelOptions, kw_only=True, frozen=True):
    """Channels, who is to be subscribed to them, and how those are that do not exist yet."""

    subscriptions: NamedChannels
    principals: Principals = []
    authorization_errors_fatal: Annotated[
        bool, Meta(description="False lists channels that are closed to the caller instead.")
    ] = True


class SubscribeAnswer(ApiResponse, kw_only=True):
    """Names of channels by user ID. `unauthorized` and `new_subscription_messages_sent` are only
    there where the request asked for it."""

    subscribed: dict[str, list[str]]
    already_subscribed: dict[str, list[str]]
    unauthorized: list[str] | UnsetType = UNSET
    new_subscription_messages_sent: bool | UnsetType = UNSET


async def subscribe(call: Call, params: Subscribe) -> SubscribeAnswer:
    """Subscribe oneself or others to channels, creating those that do not exist."""
    wanted = SubscribeRequest(
        channels=tuple(
            new_channel(call, one.name, one.description, params) for one in params.subscriptions
        ),
        principals=_principals(call, params.principals),
        colors=_colors(params.subscriptions),
        refusals_are_fatal=params.authorization_errors_fatal,
        announce=params.announce,
        notify_subscribed=params.send_new_subscription_messages,
    )
    outcome = await bulk_subscriptions.subscribe(call, wanted)
    return SubscribeAnswer(
        subscribed=_by_user(outcome.subscribed),
        already_subscribed=_by_user(outcome.already_subscribed),
        unauthorized=UNSET if wanted.refusals_are_fatal else outcome.unauthorized,
        new_subscription_messages_sent=outcome.notified if wanted.notify_subscribed else UNSET,
    )


def _principals(call: Call, given: list[int | str]) -> tuple[int, ...] | None:
    """People by ID; None for the caller. Refused for unknown addresses."""
    found: list[int] = []
    for one in given:
        if isinstance(one, int):
            found.append(one)
            continue
        user = call.account_with(one)
        if user is None:
            raise Refused(f"User {one[:100]} doesn't exist.")
        found.append(user.id)
    return tuple(found) or None


def _colors(wanted: list[NamedChannel]) -> dict[str, str]:
    return {
        one.name.strip().casefold(): subscriptions.color(one.color)
        for one in wanted
        if one.color is not None
    }


def _by_user(found: dict[int, list[str]]) -> dict[str, list[str]]:
    return {str(user_id): channel_names for user_id, channel_names in found.items()}


class Unsubscribe(Params, kw_only=True, frozen=True):
    """Channels by name, and whose subscriptions are to end."""

    subscriptions: ChannelNames
    principals: Principals = []


class UnsubscribeAnswer(ApiResponse, kw_only=True):
    """Names of channels; one may be in both lists where several people are concerned."""

    removed: list[str]
    not_removed: list[str]


async def unsubscribe(call: Call, params: Unsubscribe) -> UnsubscribeAnswer:
    """Unsubscribe oneself or others from channels."""
    removal = await bulk_subscriptions.unsubscribe(
        call, params.subscriptions, _principals(call, params.principals)
    )
    return UnsubscribeAnswer(removed=removal.removed, not_removed=removal.not_removed)


class ExchangeSubscriptions(Params, kw_only=True, frozen=True):
    """Channels to subscribe oneself to, and to unsubscribe from."""

    add: NamedChannels = []
    delete: ChannelNames = []


class ExchangeAnswer(ApiResponse, kw_only=True):
    """Names of channels, as subscribing and unsubscribing tell them."""

    subscribed: dict[str, list[str]]
    already_subscribed: dict[str, list[str]]
    removed: list[str]
    not_removed: list[str]


async def update_subscriptions(call: Call, params: ExchangeSubscriptions) -> ExchangeAnswer:
    """Subscribe oneself to some channels and unsubscribe from others, at once."""
    if not params.add and not params.delete:
        raise Refused('Nothing to change: list at least one channel in "add" or "delete".')
    usual = NewChannelOptions()
    wanted = SubscribeRequest(
        channels=tuple(new_channel(call, one.name, one.description, usual) for one in params.add),
        colors=_colors(params.add),
    )
    done = await bulk_subscriptions.exchange(call, wanted, params.delete)
    return ExchangeAnswer(
        subscribed=_by_user(done.outcome.subscribed),
        already_subscribed=_by_user(done.outcome.already_subscribed),
        removed=done.removal.removed,
        not_removed=done.removal.not_removed,
    )


# One's own settings

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
    """A boolean or null as JSON, or a color as it is or as JSON."""
    if "\0" in text:
        raise ValueError("it contains a null byte")
    try:
        return msgspec.json.decode(text, type=bool | str | None)
    except (msgspec.DecodeError, UnicodeError):
        return text


class UpdateProperty(Params, kw_only=True, frozen=True):
    """A setting of a channel for oneself."""

    stream_id: Annotated[Int, Path()]
    property: PropertyName
    value: Annotated[
        bool | str | None,
        Reads(_read_value, {"oneOf": [{"type": "boolean"}, {"type": "string"}, {"type": "null"}]}),
        Meta(description="null, of notifications: as one's general settings say."),
    ]


class PropertyChange(Struct, kw_only=True, frozen=True):
    """The same, one of several."""

    stream_id: Int
    property: str
    value: bool | str | None
    """null, of notifications: as one's general settings say."""


class UpdateProperties(Params, kw_only=True, frozen=True):
    """Settings of channels for oneself."""

    subscription_data: Annotated[list[PropertyChange], Meta(max_length=10_000)]


def _property(channel_id: int, name: str, value: bool | str | None) -> SubscriptionProperty:
    """`in_home_view` is what not being muted was called."""
    if name == "in_home_view":
        if not isinstance(value, bool):
            raise Refused("in_home_view must be true or false.")
        return SubscriptionProperty(channel_id=channel_id, name="is_muted", value=not value)
    return SubscriptionProperty(channel_id=channel_id, name=name, value=value)


async def update_subscription_property(call: Call, params: UpdateProperty) -> ApiResponse:
    """Change one setting of a channel for oneself."""
    given = [_property(params.stream_id, params.property, params.value)]
    await call.submit(subscriptions.set_properties, given)
    return ApiResponse()


async def update_subscription_properties(call: Call, params: UpdateProperties) -> ApiResponse:
    """Change settings of channels for oneself, all of them or none."""
    given = [_property(one.stream_id, one.property, one.value) for one in params.subscription_data]
    await call.submit(subscriptions.set_properties, given)
    return ApiResponse()
