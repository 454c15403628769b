"""Events of the organization's settings and its deactivation."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.model import changes
from tertulia.model.organization import Realm
from tertulia.state.folds import revised
from tertulia.wire.api.events import Event
from tertulia.wire.api.groups.objects import group_setting
from tertulia.wire.api.organization.objects import (
    PICTURES,
    SIGN_IN_SETTING,
    api_settings,
    authentication_methods,
    legacy_settings,
    picture_fields,
    wire_name,
)
from tertulia.wire.api.projection import (
    ProjectionContext,
    Projections,
    Viewer,
    projected,
    to_everybody,
    unseen,
)
from tertulia.wire.api.settings import settings_object
from tertulia.wire.api.settings import wire_name as personal_wire_name
from tertulia.wire.api.users import account_events
from tertulia.wire.api.users.account_events import AccountView, account_view


class RealmUpdateEvent(Event, kw_only=True, tag="realm"):
    """A setting of the organization changed."""

    op: str = "update"
    property: str
    value: Any


class RealmUpdateDictEvent(Event, kw_only=True, tag="realm"):
    """Settings of the organization changed."""

    op: str = "update_dict"
    property: str = "default"
    data: dict[str, Any]


class RealmDeactivatedEvent(Event, kw_only=True, tag="realm"):
    """The organization was deactivated. Further requests will be refused."""

    op: str = "deactivated"
    realm_id: int


_TOGETHER: Final = frozenset(
    {
        "allow_message_editing",
        "description",
        "rendered_description",
        "message_content_edit_limit_seconds",
        "message_edit_history_visibility_policy",
        "topics_policy",
    }
)
"""Settings that share one event with the permissions."""


class _View(NamedTuple):
    lost: tuple[int, ...] = ()
    """Accounts that a guest lost access to; only in changes written by version 0.1.0."""
    gained: tuple[tuple[int, AccountView], ...] = ()
    extended: bool = False
    """Whether the client supports Tertulia's own settings."""


def _changed_view(
    context: ProjectionContext, change: changes.RealmChanged, viewer: Viewer
) -> Hashable:
    users, viewer_id = context.state.users, viewer.user.id
    gained = (
        (user_id, account_view(context, users[user_id], viewer))
        for user_id in change.gained.get(viewer_id, ())
    )
    return _View(
        lost=change.lost.get(viewer_id, ()),
        gained=tuple((user_id, account) for user_id, account in gained if account is not None),
        extended=viewer.registration.capabilities.server_extensions,
    )


def _changed(
    context: ProjectionContext, change: changes.RealmChanged, view: Any
) -> Iterable[Event]:
    yield from _setting_events(context, change, extended=view.extended)
    for user_id in view.lost:
        yield account_events.removed(user_id)
    for user_id, account in view.gained:
        yield account_events.added(context, context.state.users[user_id], account)


def _setting_events(
    context: ProjectionContext, change: changes.RealmChanged, *, extended: bool
) -> Iterable[Event]:
    realm: Realm = revised(context.state.realm, change.values)
    together: dict[str, Any] = legacy_settings(realm, change.values)
    for field in change.values:
        value = getattr(realm, field)
        if field in PICTURES:
            yield RealmUpdateDictEvent(property=field, data=picture_fields(realm, field))
        elif field in REALM_SETTINGS:
            together[wire_name(field)] = group_setting(context.state, value)
        elif field in _TOGETHER:
            together[field] = value
        elif field == SIGN_IN_SETTING:
            together["authentication_methods"] = authentication_methods(
                realm, context.server_methods
            )
        elif (setting := api_settings().get(field)) and (extended or not setting.setting.extension):
            yield RealmUpdateEvent(property=wire_name(field), value=value)
        if field == "default_language":
            yield DefaultSettingEvent(property=field, value=value)
    if together:
        yield RealmUpdateDictEvent(data=together)


class DefaultSettingEvent(Event, kw_only=True, tag="realm_user_settings_defaults"):
    """A default setting for new users changed."""

    op: str = "update"
    property: str
    value: bool | int | str | None


def _defaults_changed(
    context: ProjectionContext, change: changes.RealmDefaultsChanged, view: Any
) -> Iterable[Event]:
    values = settings_object(revised(context.state.default_settings, change.values))
    for name in map(personal_wire_name, change.values):
        yield DefaultSettingEvent(property=name, value=values[name])


PROJECTIONS: Final[Projections] = (
    unseen(changes.RealmCreated),  # No accounts exist yet.
    to_everybody(
        changes.RealmDeactivated,
        lambda context, _: RealmDeactivatedEvent(realm_id=context.state.realm.id),
    ),
    unseen(changes.RealmReactivated),  # Clients notice when their requests succeed again.
    projected(changes.RealmChanged, _changed_view, _changed),
    projected(changes.RealmDefaultsChanged, lambda *_: (), _defaults_changed),
    unseen(changes.CredentialChanged),  # Delivery ends polls that use the old key.
)
