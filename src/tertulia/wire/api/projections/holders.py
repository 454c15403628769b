"""Permission settings whose holders come and go with an account.

A setting that names an account shows it while it is active, so each such setting has a new value
when the account is deactivated, and when it comes back.
"""

from collections.abc import Collection, Iterable

from tertulia.domain import permissions
from tertulia.model.changes import Named
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.channels import excluded
from tertulia.wire.api.objects.groups import group_setting
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.projections.channels import ChannelUpdateEvent
from tertulia.wire.api.projections.groups import GroupUpdateEvent, groups_known
from tertulia.wire.api.projections.organization import RealmUpdateDictEvent


def named_in_sight(
    context: ProjectionContext, named: Named, deactivated: Collection[int], viewer: Viewer
) -> Named:
    """The settings that the viewer may know. `deactivated` are the groups that were deactivated at
    the time of the entry."""
    state, user = context.state, viewer.user
    channels = state.channels
    known = groups_known({group_id for group_id, _ in named.groups}, deactivated, viewer)
    return Named(
        channels=tuple(
            (channel_id, name)
            for channel_id, name in named.channels
            if not excluded(channels[channel_id], viewer.registration)
            and permissions.sees_channel(state, user, channels[channel_id])
        ),
        groups=tuple((group_id, name) for group_id, name in named.groups if group_id in known),
        realm=named.realm,
    )


def holders_changed(context: ProjectionContext, named: Named) -> Iterable[Event]:
    """The settings' present values."""
    state = context.state
    for channel_id, name in named.channels:
        channel = state.channels[channel_id]
        yield ChannelUpdateEvent(
            stream_id=channel_id,
            name=channel.name,
            property=name,
            value=group_setting(state, getattr(channel, name)),
        )
    for group_id, name in named.groups:
        value = group_setting(state, getattr(state.groups[group_id], name))
        yield GroupUpdateEvent(group_id=group_id, data={name: value})
    for name in named.realm:
        value = group_setting(state, getattr(state.realm, name))
        yield RealmUpdateDictEvent(data={name: value})
