"""Channels and the viewer's subscriptions in the initial data that POST /register returns."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.model.channels import Subscription
from tertulia.wire.api.channels.objects import (
    ChannelObject,
    SubscriptionValues,
    channel_object,
    inherited_settings,
    list_subscribers,
    own_settings,
    subscription_fields,
)
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.http.responses import Fragment, array_items, encode, json_array, object_fields


class _Relation(Enum):
    """A viewer's relation to a channel."""

    NONE = "can see it"
    OWN = "is subscribed, or was"
    UNKNOWN = "can't see it"


def _by_relation(
    context: SectionContext, subscriptions: Mapping[int, Subscription]
) -> list[ShardRange[_Relation]]:
    """Return all channels, with those of the viewer's subscriptions separately."""
    seen = context.channels
    every: set[Any] = {*context.state.channels.rows}
    others = dict.fromkeys(every.difference(seen), _Relation.UNKNOWN)
    others |= dict.fromkeys(subscriptions.keys() & seen.keys(), _Relation.OWN)
    return shard_ranges(context.state.channel_shards, _Relation.NONE, others)


class _Channels:
    """Makes fragments of channels, with the subscribers that `include_subscribers` asks for."""

    def __init__(self, context: SectionContext, include_subscribers: str) -> None:
        self._context, self._wanted = context, include_subscribers
        self._traffic, self._fragments = context.traffic, context.node.fragments
        is_partial = include_subscribers == "partial"
        self._seen = context.node.delivery.presence.lately if is_partial else None
        self._activity = context.state.users.activity.number

    def of(self, item: ShardRange[Any], *, sees_subscribers: bool) -> Fragment:
        """Return the channels of the range, for viewers who can or can't see their subscribers."""
        listed = sees_subscribers and self._wanted != "false"
        traffic = tuple(map(self._traffic.__getitem__, item.ids))
        return self._fragments.get(
            ("channels", self._wanted, listed, item.ids[0], len(item.ids)),
            (item.version, self._activity, traffic, self._seen),
            lambda: array_items(self._shown(channel_id, listed) for channel_id in item.ids),
        )

    def begun(
        self, item: ShardRange[Any], sees_subscribers: Callable[[int], bool]
    ) -> Sequence[bytes]:
        """Return the channels of the range as JSON without the closing brace."""
        if self._wanted != "false":
            return [self._begun(item, channel_id, sees_subscribers) for channel_id in item.ids]
        traffic = tuple(map(self._traffic.__getitem__, item.ids))
        # One cache lookup for all items: JSON has no line breaks.
        lines = self._fragments.get(
            ("channels begun", item.ids[0], len(item.ids)),
            (item.version, self._activity, traffic),
            lambda: b"\n".join(encode(self._shown(it, listed=False))[:-1] for it in item.ids),
        )
        return lines.content.split(b"\n")

    def _begun(
        self, item: ShardRange[Any], channel_id: int, sees_subscribers: Callable[[int], bool]
    ) -> bytes:
        listed = sees_subscribers(channel_id)
        return self._fragments.get(
            ("channel", self._wanted, listed, channel_id),
            (item.version, self._activity, self._traffic[channel_id], self._seen),
            lambda: encode(self._shown(channel_id, listed))[:-1],
        ).content

    def _shown(self, channel_id: int, listed: bool) -> ChannelObject:
        state, seen = self._context.state, self._seen or frozenset()
        channel = state.channels[channel_id]
        made = channel_object(state, channel, self._context.now)
        list_subscribers(state, channel, made, self._wanted, seen, visible=listed)
        return made


@lru_cache(maxsize=1024)
def _settings(values: SubscriptionValues, inherited: SubscriptionValues | None) -> bytes:
    """Return a subscription's settings as the end of the channel's JSON and the comma after it.
    Cached, since most people have the same settings for most channels."""
    return b",%b}," % object_fields(subscription_fields(values, inherited))


def subscriptions(context: SectionContext) -> dict[str, Any]:
    """The channels that the viewer can see: subscribed, formerly subscribed, and never subscribed.
    A spectator has no subscriptions."""
    state, viewer = context.state, context.viewer
    subscriptions = {} if viewer is None else state.subscriptions.of_user[viewer.id]
    is_member = viewer is not None and not permissions.is_guest(state, viewer)
    nulls = context.registration.capabilities.notification_settings_null
    inherited = None if viewer is None else inherited_settings(state, viewer.id, nulls=nulls)
    fragments = _Channels(context, context.registration.include_subscribers)
    present: list[bytes] = []
    past: list[bytes] = []
    never: list[Fragment] = []
    for item in _by_relation(context, subscriptions):
        if item.kind is _Relation.NONE:
            never.append(fragments.of(item, sees_subscribers=is_member))
        elif item.kind is _Relation.OWN:
            begun = fragments.begun(item, lambda it: is_member or subscriptions[it].is_active)
            those = [subscriptions[channel_id] for channel_id in item.ids]
            # With hundreds of channels, every call per channel matters.
            settings = map(_settings, map(own_settings, those), repeat(inherited))
            for subscription, *pieces in zip(those, begun, settings, strict=True):
                spans = subscription.spans
                (present if spans and spans[-1][1] is None else past).extend(pieces)
    return {
        "subscriptions": json_array([_joined(present)]),
        "unsubscribed": json_array([_joined(past)]),
        "never_subscribed": json_array(never),
    }


def _joined(pieces: list[bytes]) -> bytes:
    if pieces:
        pieces[-1] = pieces[-1].removesuffix(b",")
    return b"".join(pieces)


def channels(context: SectionContext) -> dict[str, Any]:
    """The channels that the viewer can see, without personal settings."""
    ranges = [item for item in _by_relation(context, {}) if item.kind is _Relation.NONE]
    fragments = _Channels(context, "false")
    return {"streams": json_array(fragments.of(item, sees_subscribers=False) for item in ranges)}


def default_channels(context: SectionContext) -> dict[str, Any]:
    """The channels that new users are subscribed to and the viewer can see; none for guests."""
    if context.viewer is not None and permissions.is_guest(context.state, context.viewer):
        return {"realm_default_streams": []}
    defaults = [
        channel.id
        for channel in context.state.channels
        if channel.is_default and not channel.is_archived and channel.id in context.channels
    ]
    return {"realm_default_streams": sorted(defaults)}


SECTIONS: Final[Sections] = {
    ("subscription",): subscriptions,
    ("stream",): channels,
    ("default_streams",): default_channels,
}
