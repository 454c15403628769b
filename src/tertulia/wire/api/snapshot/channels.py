"""Channels, and the viewer's subscriptions to them."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.domain.channels.folders import in_order
from tertulia.model.channels import Subscription
from tertulia.wire.api.administration import default_group_objects
from tertulia.wire.api.channels.objects import (
    ChannelObject,
    OwnSettings,
    channel_object,
    inherited_settings,
    list_subscribers,
    own_settings,
    subscription_fields,
)
from tertulia.wire.api.folders import folder_object
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.http.fragments import Fragment, array_items, encode, json_array, object_fields


class _Relation(Enum):
    """What a viewer has to do with a channel."""

    NONE = "sees it"
    OWN = "is subscribed, or was"
    UNKNOWN = "does not know of it"


def _by_relation(
    context: SnapshotContext, own: Mapping[int, Subscription]
) -> list[ShardRange[_Relation]]:
    """All channels, those to which the viewer has these subscriptions apart."""
    seen = context.channels
    every: set[Any] = {*context.state.channels.rows}
    others = dict.fromkeys(every.difference(seen), _Relation.UNKNOWN)
    others |= dict.fromkeys(own.keys() & seen.keys(), _Relation.OWN)
    return shard_ranges(context.state.channel_shards, _Relation.NONE, others)


class _Channels:
    """Makes fragments of channels with their subscribers, as far as they are `wanted`
    (`include_subscribers`)."""

    def __init__(self, context: SnapshotContext, wanted: str) -> None:
        self._context, self._wanted = context, wanted
        self._traffic, self._fragments = context.traffic, context.node.fragments
        self._seen = context.node.delivery.presence.lately if wanted == "partial" else None
        self._activity = context.state.users.activity.number

    def of(self, one: ShardRange[Any], *, sees_subscribers: bool) -> Fragment:
        """The channels of the range, for viewers who see their subscribers or not."""
        listed = sees_subscribers and self._wanted != "false"
        traffic = tuple(map(self._traffic.__getitem__, one.ids))
        return self._fragments.get(
            ("channels", self._wanted, listed, one.ids[0], len(one.ids)),
            (one.version, self._activity, traffic, self._seen),
            lambda: array_items(self._shown(channel_id, listed) for channel_id in one.ids),
        )

    def begun(
        self, one: ShardRange[Any], sees_subscribers: Callable[[int], bool]
    ) -> Sequence[bytes]:
        """The channels of the range, each without the brace at the end."""
        if self._wanted != "false":
            return [self._begun(one, channel_id, sees_subscribers) for channel_id in one.ids]
        traffic = tuple(map(self._traffic.__getitem__, one.ids))
        # One lookup for all. (JSON has no line breaks.)
        kept = self._fragments.get(
            ("channels begun", one.ids[0], len(one.ids)),
            (one.version, self._activity, traffic),
            lambda: b"\n".join(encode(self._shown(it, listed=False))[:-1] for it in one.ids),
        )
        return kept.content.split(b"\n")

    def _begun(
        self, one: ShardRange[Any], channel_id: int, sees_subscribers: Callable[[int], bool]
    ) -> bytes:
        listed = sees_subscribers(channel_id)
        return self._fragments.get(
            ("channel", self._wanted, listed, channel_id),
            (one.version, self._activity, self._traffic[channel_id], self._seen),
            lambda: encode(self._shown(channel_id, listed))[:-1],
        ).content

    def _shown(self, channel_id: int, listed: bool) -> ChannelObject:
        state, seen = self._context.state, self._seen or frozenset()
        channel = state.channels[channel_id]
        shown = channel_object(state, channel, self._context.now)
        list_subscribers(state, channel, shown, self._wanted, seen, visible=listed)
        return shown


@lru_cache(maxsize=1024)
def _settings(own: OwnSettings, inherited: OwnSettings | None) -> bytes:
    """What a subscriber has set, as the end of the channel's object and what comes between it and
    the next one: most have set the same of most channels."""
    return b",%b}," % object_fields(subscription_fields(own, inherited))


def subscriptions(context: SnapshotContext) -> dict[str, Any]:
    """All channels that the viewer sees: those they are subscribed to, were, and never were.

    A spectator has no subscriptions, and sees the public web's channels as anybody who never was
    subscribed.
    """
    state, viewer = context.state, context.viewer
    own = {} if viewer is None else state.subscriptions.of_user[viewer.id]
    is_member = viewer is not None and not permissions.is_guest(state, viewer)
    nulls = context.registration.capabilities.notification_settings_null
    inherited = None if viewer is None else inherited_settings(state, viewer.id, nulls=nulls)
    fragments = _Channels(context, context.registration.include_subscribers)
    present: list[bytes] = []
    past: list[bytes] = []
    never: list[Fragment] = []
    for one in _by_relation(context, own):
        if one.kind is _Relation.NONE:
            never.append(fragments.of(one, sees_subscribers=is_member))
        elif one.kind is _Relation.OWN:
            begun = fragments.begun(one, lambda it: is_member or own[it].is_active)
            those = [own[channel_id] for channel_id in one.ids]
            # For hundreds of channels it counts what is called for each.
            settings = map(_settings, map(own_settings, those), repeat(inherited))
            for subscription, *shown in zip(those, begun, settings, strict=True):
                spans = subscription.spans
                (present if spans and spans[-1][1] is None else past).extend(shown)
    return {
        "subscriptions": json_array([_joined(present)]),
        "unsubscribed": json_array([_joined(past)]),
        "never_subscribed": json_array(never),
    }


def _joined(pieces: list[bytes]) -> bytes:
    if pieces:
        pieces[-1] = pieces[-1].removesuffix(b",")
    return b"".join(pieces)


def channels(context: SnapshotContext) -> dict[str, Any]:
    """All channels that the viewer sees, without anything of the viewer's own."""
    found = [one for one in _by_relation(context, {}) if one.kind is _Relation.NONE]
    fragments = _Channels(context, "false")
    return {"streams": json_array(fragments.of(one, sees_subscribers=False) for one in found)}


def default_channels(context: SnapshotContext) -> dict[str, Any]:
    """The channels that new users are subscribed to, as far as the viewer sees them; none for
    guests."""
    if context.viewer is not None and permissions.is_guest(context.state, context.viewer):
        return {"realm_default_streams": []}
    defaults = [
        channel.id
        for channel in context.state.channels
        if channel.is_default and not channel.is_archived and channel.id in context.channels
    ]
    return {"realm_default_streams": sorted(defaults)}


def default_channel_groups(context: SnapshotContext) -> dict[str, Any]:
    """The groups of channels that new users can choose; none for guests and spectators."""
    is_member = context.viewer is not None and not permissions.is_guest(
        context.state, context.viewer
    )
    return {
        "realm_default_stream_groups": default_group_objects(context.state) if is_member else []
    }


def channel_folders(context: SnapshotContext) -> dict[str, Any]:
    """All channel folders in their order, archived ones too; to a spectator, those with channels
    that the spectator sees."""
    folders = in_order(context.state)
    if context.viewer is None:
        seen = {channel.folder_id for channel in context.channels.values()}
        folders = [folder for folder in folders if folder.id in seen]
    return {"channel_folders": [folder_object(folder) for folder in folders]}


SECTIONS: Final[Sections] = {
    ("subscription",): subscriptions,
    ("stream",): channels,
    ("default_streams",): default_channels,
    ("default_stream_groups",): default_channel_groups,
    ("channel_folders",): channel_folders,
}
