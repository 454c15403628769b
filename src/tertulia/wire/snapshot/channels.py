"""Channels, and the viewer's subscriptions to them."""

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.domain.folders import in_order
from tertulia.model.channels import Subscription
from tertulia.wire.fragments import Fragment, Run, array, fields, listed, runs
from tertulia.wire.objects.administration import default_group_objects
from tertulia.wire.objects.channels import (
    channel_object,
    list_subscribers,
    own_settings,
    subscription_fields,
)
from tertulia.wire.objects.folders import folder_object
from tertulia.wire.snapshot.scene import Scene, Sections


class _Relation(Enum):
    """What a viewer has to do with a channel."""

    NONE = "sees it"
    OWN = "is subscribed, or was"
    UNKNOWN = "does not know of it"


def _by_relation(scene: Scene, own: Mapping[int, Subscription]) -> list[Run[_Relation]]:
    """All channels, those to which the viewer has these subscriptions apart."""
    seen = scene.channels
    odd = {one: _Relation.UNKNOWN for one in scene.state.channels.rows if one not in seen}
    odd |= {one: _Relation.OWN for one in own if one in seen}
    return runs(scene.state.places, _Relation.NONE, odd)


def _channels(scene: Scene, ids: Sequence[int], run: Run[Any], wanted: str, told: bool) -> Fragment:
    """These channels of the run, with so much of their subscribers if the viewer is `told`."""
    state = scene.state
    told = told and wanted != "false"
    seen = scene.node.delivery.presence.lately if wanted == "partial" else None

    def made() -> bytes:
        found = []
        for channel_id in ids:
            channel = state.channels[channel_id]
            shown = channel_object(state, channel, scene.now)
            list_subscribers(state, channel, shown, wanted, seen or frozenset(), told=told)
            found.append(shown)
        return listed(found)

    traffic = tuple([scene.traffic[channel_id] for channel_id in ids])
    return scene.node.fragments.get(
        ("channels", wanted, told, ids[0], len(ids)),
        (run.version, state.activity_of_users, traffic, seen),
        made,
    )


@lru_cache(maxsize=1024)
def _settings(own: tuple[Any, ...]) -> bytes:
    """What a subscriber has set: most have set the same of most channels."""
    return fields(subscription_fields(own))


def subscriptions(scene: Scene) -> dict[str, Any]:
    """All channels that the viewer sees: those they are subscribed to, were, and never were.

    A spectator has no subscriptions, and sees the public web's channels as anybody who never was
    subscribed.
    """
    state, viewer = scene.state, scene.viewer
    own = {} if viewer is None else state.subscriptions_of_user.get(viewer.id, {})
    to_others = viewer is not None and not permissions.is_guest(state, viewer)
    nulls = scene.registration.capabilities.notification_settings_null
    wanted = scene.registration.include_subscribers
    present: list[bytes] = []
    past: list[bytes] = []
    never: list[Fragment] = []
    for run in _by_relation(scene, own):
        if run.kind is _Relation.NONE:
            never.append(_channels(scene, run.ids, run, wanted, to_others))
        elif run.kind is _Relation.OWN:
            for channel_id in run.ids:
                subscription = own[channel_id]
                told = subscription.is_active or to_others
                channel = _channels(scene, (channel_id,), run, wanted, told).content
                settings = _settings(own_settings(state, subscription, nulls=nulls))
                shown = b"%b,%b}" % (channel[:-1], settings)
                (present if subscription.is_active else past).append(shown)
    return {
        "subscriptions": array([b",".join(present)]),
        "unsubscribed": array([b",".join(past)]),
        "never_subscribed": array(never),
    }


def channels(scene: Scene) -> dict[str, Any]:
    """All channels that the viewer sees, without anything of the viewer's own."""
    found = [run for run in _by_relation(scene, {}) if run.kind is _Relation.NONE]
    return {"streams": array(_channels(scene, run.ids, run, "false", False) for run in found)}


def default_channels(scene: Scene) -> dict[str, Any]:
    """The channels that new users are subscribed to, as far as the viewer sees them; guests are
    not told."""
    if scene.viewer is not None and permissions.is_guest(scene.state, scene.viewer):
        return {"realm_default_streams": []}
    defaults = [
        channel.id
        for channel in scene.state.channels
        if channel.is_default and not channel.is_archived and channel.id in scene.channels
    ]
    return {"realm_default_streams": sorted(defaults)}


def default_channel_groups(scene: Scene) -> dict[str, Any]:
    """The groups of channels that new users can choose; neither guests nor spectators are told."""
    told = scene.viewer is not None and not permissions.is_guest(scene.state, scene.viewer)
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
