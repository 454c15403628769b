"""Events of the organization itself."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from tertulia.domain.group_settings import REALM_SETTINGS
from tertulia.model import changes
from tertulia.model.realm import Realm
from tertulia.state.folds.registry import revised
from tertulia.state.organization import State
from tertulia.wire.events import Event, Projection, Scene, Unseen, Viewer
from tertulia.wire.objects.groups import group_setting
from tertulia.wire.objects.realm import UNSHOWN, wire_name


class RealmUpdateEvent(Event, kw_only=True, tag="realm"):
    """One setting of the organization has a new value."""

    op: str = "update"
    property: str
    value: Any


class RealmUpdateDictEvent(Event, kw_only=True, tag="realm"):
    """Settings of the organization have new values."""

    op: str = "update_dict"
    property: str = "default"
    data: dict[str, Any]


class RealmCreatedProjection(Unseen):
    """Nobody was there yet."""

    of = changes.RealmCreated


_TOGETHER: Final = frozenset(
    {
        "allow_message_editing",
        "description",
        "message_content_edit_limit_seconds",
        "message_edit_history_visibility_policy",
        "topics_policy",
    }
)
"""Settings that clients hear of in one event with their permissions, and not each by itself."""


class RealmChangedProjection(Projection[changes.RealmChanged]):
    """New settings, to everybody."""

    of = changes.RealmChanged

    def audience(self, state: State, change: changes.RealmChanged) -> None:
        return None

    def view(self, scene: Scene, change: changes.RealmChanged, viewer: Viewer) -> Hashable:
        return ()

    def events(self, scene: Scene, change: changes.RealmChanged, view: Any) -> Iterable[Event]:
        realm: Realm = revised(scene.state.realm, change.values)
        together: dict[str, Any] = {}
        for field in change.values:
            value = getattr(realm, field)
            if field in REALM_SETTINGS:
                together[wire_name(field)] = group_setting(scene.state, value)
            elif field in _TOGETHER:
                together[field] = value
            elif field not in UNSHOWN:
                yield RealmUpdateEvent(property=wire_name(field), value=value)
        if together:
            yield RealmUpdateDictEvent(data=together)


class CredentialChangedProjection(Unseen):
    """Nobody's business; polls with the old key end by themselves."""

    of = changes.CredentialChanged
