"""Channels, and the viewer's subscriptions to them."""

import copy
from typing import Any, Final

from tertulia.domain.folders import in_order
from tertulia.wire.objects.administration import default_group_objects
from tertulia.wire.objects.channels import (
    ChannelObject,
    add_subscribers,
    as_subscription,
    recently_seen,
)
from tertulia.wire.objects.folders import folder_object
from tertulia.wire.snapshot.scene import Scene, Sections


def subscriptions(scene: Scene) -> dict[str, Any]:
    """All channels that the viewer sees: those they are subscribed to, were, and never were.

    A spectator has no subscriptions, and sees the public web's channels as anybody who never was
    subscribed.
    """
    state, viewer = scene.state, scene.viewer
    own = {} if viewer is None else state.subscriptions_of_user.get(viewer.id, {})
    nulls = scene.registration.capabilities.notification_settings_null
    seen = recently_seen(scene.node.delivery.presence, scene.now)
    present: list[ChannelObject] = []
    past: list[ChannelObject] = []
    never: list[ChannelObject] = []
    for channel_id, channel in scene.channels.items():
        subscription = own.get(channel_id)
        if subscription is None:
            shown = copy.copy(channel)
            never.append(shown)
        else:
            shown = as_subscription(state, channel, subscription, nulls=nulls)
            (present if subscription.is_active else past).append(shown)
        add_subscribers(
            state,
            viewer,
            state.channels[channel_id],
            shown,
            scene.registration.include_subscribers,
            scene.now,
            seen,
        )
    return {"subscriptions": present, "unsubscribed": past, "never_subscribed": never}


def channels(scene: Scene) -> dict[str, Any]:
    """All channels that the viewer sees, without anything of the viewer's own."""
    return {"streams": list(scene.channels.values())}


def default_channels(scene: Scene) -> dict[str, Any]:
    """The channels that new users are subscribed to, as far as the viewer sees them; guests are
    not told."""
    if scene.viewer is not None and scene.viewer.is_guest:
        return {"realm_default_streams": []}
    defaults = [
        channel.id
        for channel in scene.state.channels
        if channel.is_default and not channel.is_archived and channel.id in scene.channels
    ]
    return {"realm_default_streams": sorted(defaults)}


def default_channel_groups(scene: Scene) -> dict[str, Any]:
    """The groups of channels that new users can choose; neither guests nor spectators are told."""
    told = scene.viewer is not None and not scene.viewer.is_guest
    return {"realm_default_stream_groups": default_group_objects(scene.state) if told else []}


def channel_folders(scene: Scene) -> dict[str, Any]:
    """All channel folders in their order, archived ones too; to a spectator, those with channels
    that the spectator sees."""
    folders = in_order(scene.state)
    if scene.viewer is None:
        seen = {channel.folder_id for channel in scene.channels.values()}
        folders = [folder for folder in folders if folder.id in seen]
    return {"channel_folders": [folder_object(folder) for folder in folders]}


SECTIONS: Final[Sections] = {
    ("subscription",): subscriptions,
    ("stream",): channels,
    ("default_streams",): default_channels,
    ("default_stream_groups",): default_channel_groups,
    ("channel_folders",): channel_folders,
}
