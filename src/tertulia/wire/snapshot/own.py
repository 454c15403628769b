"""What the viewer keeps for themselves: what they write before it is sent, views, devices.

A spectator has nothing of it."""

from typing import Any, Final

from tertulia.domain import drafts as author_drafts
from tertulia.domain import reminders as reader_reminders
from tertulia.domain import scheduled as author_scheduled
from tertulia.wire.objects.composing import draft_object, snippet_object
from tertulia.wire.objects.devices import DeviceObject
from tertulia.wire.objects.navigation import view_object
from tertulia.wire.objects.scheduled import reminder_object, scheduled_object
from tertulia.wire.snapshot.scene import Scene, Sections

_NOBODY = 0


def _owner(scene: Scene) -> int:
    return _NOBODY if scene.viewer is None else scene.viewer.id


def drafts(scene: Scene) -> dict[str, Any]:
    """What the viewer has begun to write, edited last first."""
    own = author_drafts.of_user(scene.state, _owner(scene))
    return {"drafts": [draft_object(draft) for draft in own]}


def snippets(scene: Scene) -> dict[str, Any]:
    """The viewer's snippets, the oldest first."""
    own = scene.state.snippets_of_user[_owner(scene)]
    return {"saved_snippets": [snippet_object(snippet) for snippet in own]}


def scheduled(scene: Scene) -> dict[str, Any]:
    """What waits to be sent, in the order of its times."""
    own = author_scheduled.of_user(scene.state, _owner(scene))
    return {"scheduled_messages": [scheduled_object(message) for message in own]}


def reminders(scene: Scene) -> dict[str, Any]:
    """Of what the viewer is to be reminded, in the order of the times."""
    own = reader_reminders.of_user(scene.state, _owner(scene))
    return {"reminders": [reminder_object(reminder) for reminder in own]}


def views(scene: Scene) -> dict[str, Any]:
    """The viewer's navigation views, the oldest first."""
    own = scene.state.views_of_user[_owner(scene)]
    return {"navigation_views": [view_object(view) for view in own]}


def devices(scene: Scene) -> dict[str, Any]:
    """On what devices the viewer's account is used."""
    own = scene.state.devices_of_user[_owner(scene)]
    return {"devices": {str(device.id): DeviceObject() for device in own}}


SECTIONS: Final[Sections] = {
    ("drafts",): drafts,
    ("saved_snippets",): snippets,
    ("scheduled_messages",): scheduled,
    ("reminders",): reminders,
    ("navigation_views",): views,
    ("device",): devices,
}
