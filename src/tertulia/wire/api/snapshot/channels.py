"""Channels, and the viewer's subscriptions to them."""

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.domain.channels.folders import in_order
from tertulia.model.channels import Subscription
from tertulia.wire.api.objects.administration import default_group_objects
from tertulia.wire.api.objects.channels import (
    channel_object,
    list_subscribers,
    own_settings,
    subscription_fields,
)
from tertulia.wire.api.objects.folders import folder_object
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.http.fragments import Fragment, array_items, json_array, object_fields


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
    others = {one: _Relation.UNKNOWN for one in context.state.channels.rows if one not in seen}
    others |= {one: _Relation.OWN for one in own if one in seen}
    return shard_ranges(context.state.channel_shards, _Relation.NONE, others)


def _channels(
    context: SnapshotContext,
    ids: Sequence[int],
    shard_range: ShardRange[Any],
    wanted: str,
    sees_subscribers: bool,
) -> Fragment:
    """These channels of the range, with their subscribers as far as they are `wanted`
    (`include_subscribers`) and the viewer sees them."""
    state = context.state
    listed = sees_subscribers and wanted != "false"
    seen = context.node.delivery.presence.lately if wanted == "partial" else None

    def made() -> bytes:
        found = []
        for channel_id in ids:
            channel = state.channels[channel_id]
            shown = channel_object(state, channel, context.now)
            list_subscribers(state, channel, shown, wanted, seen or frozenset(), visible=listed)
            found.append(shown)
        return array_items(found)

    traffic = tuple([context.traffic[channel_id] for channel_id in ids])
    return context.node.fragments.get(
        ("channels", wanted, listed, ids[0], len(ids)),
        (shard_range.version, state.users.activity.number, traffic, seen),
        made,
    )


@lru_cache(maxsize=1024)
def _settings(own: tuple[Any, ...]) -> bytes:
    """What a subscriber has set: most have set the same of most channels."""
    return object_fields(subscription_fields(own))


def subscriptions(context: SnapshotContext) -> dict[str, Any]:
    """All channels that the viewer sees: those they are subscribed to, were, and never were.

    A spectator has no subscriptions, and sees the public web's channels as anybody who never was
    subscribed.
    """
    state, viewer = context.state, context.viewer
    own = {} if viewer is None else state.subscriptions.of_user[viewer.id]
    is_member = viewer is not None and not permissions.is_guest(state, viewer)
    nulls = context.registration.capabilities.notification_settings_null
    wanted = context.registration.include_subscribers
    present: list[bytes] = []
    past: list[bytes] = []
    never: list[Fragment] = []
    for one in _by_relation(context, own):
        if one.kind is _Relation.NONE:
            never.append(_channels(context, one.ids, one, wanted, is_member))
        elif one.kind is _Relation.OWN:
            for channel_id in one.ids:
                subscription = own[channel_id]
                sees_subscribers = subscription.is_active or is_member
                channel = _channels(context, (channel_id,), one, wanted, sees_subscribers).content
                settings = _settings(own_settings(state, subscription, nulls=nulls))
                shown = b"%b,%b}" % (channel[:-1], settings)
                (present if subscription.is_active else past).append(shown)
    return {
        "subscriptions": json_array([b",".join(present)]),
        "unsubscribed": json_array([b",".join(past)]),
        "never_subscribed": json_array(never),
    }


def channels(context: SnapshotContext) -> dict[str, Any]:
    """All channels that the viewer sees, without anything of the viewer's own."""
    found = [one for one in _by_relation(context, {}) if one.kind is _Relation.NONE]
    return {
        "streams": json_array(_channels(context, one.ids, one, "false", False) for one in found)
    }


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
