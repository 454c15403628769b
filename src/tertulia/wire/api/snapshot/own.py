"""What the viewer keeps for themselves: what they write before it is sent, views, devices.

A spectator has nothing of it."""

from typing import Any, Final

from tertulia.domain.messages import drafts as author_drafts
from tertulia.domain.messages import scheduled as author_scheduled
from tertulia.domain.messages import scheduled as reader_reminders
from tertulia.wire.api.devices import DeviceObject
from tertulia.wire.api.drafts import draft_object, snippet_object
from tertulia.wire.api.navigation import view_object
from tertulia.wire.api.quiet_times import QuietTimesObject
from tertulia.wire.api.quiet_times import quiet_times_object as quiet_times_object
from tertulia.wire.api.scheduled import reminder_object, scheduled_object
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext

_NOBODY = 0


def _owner(context: SnapshotContext) -> int:
    return _NOBODY if context.viewer is None else context.viewer.id


def drafts(context: SnapshotContext) -> dict[str, Any]:
    """What the viewer has begun to write, edited last first."""
    own = author_drafts.of_user(context.state, _owner(context))
    return {"drafts": [draft_object(draft) for draft in own]}


def snippets(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's snippets, the oldest first."""
    own = context.state.snippets.of_user[_owner(context)]
    return {"saved_snippets": [snippet_object(snippet) for snippet in own]}


def scheduled(context: SnapshotContext) -> dict[str, Any]:
    """What waits to be sent, in the order of its times."""
    own = author_scheduled.of_user(context.state, _owner(context))
    return {"scheduled_messages": [scheduled_object(message) for message in own]}


def reminders(context: SnapshotContext) -> dict[str, Any]:
    """Of what the viewer is to be reminded, in the order of the times."""
    own = reader_reminders.reminders_of(context.state, _owner(context))
    return {"reminders": [reminder_object(reminder) for reminder in own]}


def views(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's navigation views, the oldest first."""
    own = context.state.navigation_views.of_user[_owner(context)]
    return {"navigation_views": [view_object(view) for view in own]}


def devices(context: SnapshotContext) -> dict[str, Any]:
    """On what devices the viewer's account is used."""
    own = context.state.devices.of_user[_owner(context)]
    return {"devices": {str(device.id): DeviceObject() for device in own}}


def quiet_times(context: SnapshotContext) -> dict[str, Any]:
    """When the viewer is left in peace."""
    if context.viewer is None:
        return {"quiet_times": QuietTimesObject(paused_until=None, hours=[], timezone="", spans=[])}
    return {"quiet_times": quiet_times_object(context.state, context.viewer, context.now)}


NAMED: Final[Sections] = {("quiet_times",): quiet_times}
"""Of this server's own, which clients of the reference do not ask for: answered only where they are
named."""

SECTIONS: Final[Sections] = {
    ("drafts",): drafts,
    ("saved_snippets",): snippets,
    ("scheduled_messages",): scheduled,
    ("reminders",): reminders,
    ("navigation_views",): views,
    ("device",): devices,
}
