"""Events of personal settings."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts.personal_settings import RULES
from tertulia.domain.organization.languages import LANGUAGES
from tertulia.model.changes import SettingsChanged
from tertulia.model.users import AddressVisibility
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.settings import LEGACY_DISPLAY, LEGACY_NOTIFICATIONS, wire_name
from tertulia.wire.api.objects.users import api_email
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.projections import people
from tertulia.wire.api.projections.people import AccountView, account_view
from tertulia.wire.api.projections.status import UserStatusEvent


class UserSettingsEvent(Event, kw_only=True, tag="user_settings"):
    """One of one's own settings is new. `language_name` is with `default_language` alone."""

    op: str = "update"
    property: str
    value: Any
    language_name: str | UnsetType = UNSET


class DisplaySettingEvent(Event, kw_only=True, tag="update_display_settings"):
    """The same of old, for those who ask for it by name. `user` is the address."""

    user: str
    setting_name: str
    setting: Any
    language_name: str | UnsetType = UNSET


class NotificationSettingEvent(Event, kw_only=True, tag="update_global_notifications"):
    """The same of old, for those who ask for it by name. `user` is the address."""

    user: str
    notification_name: str
    setting: Any


class LegacyEvents(NamedTuple):
    """Which of the legacy events of settings the client asked for by name."""

    display: bool
    notifications: bool


def legacy_events(viewer: Viewer) -> LegacyEvents:
    """The legacy events among the event types of the queue."""
    types = viewer.registration.event_types or ()
    return LegacyEvents("update_display_settings" in types, "update_global_notifications" in types)


def own_setting_events(
    context: ProjectionContext, user_id: int, legacy: LegacyEvents, name: str, value: Any
) -> Iterable[Event]:
    """The events of one setting, named as in the API: the current one and the legacy ones."""
    language = LANGUAGES.get(value, UNSET) if name == "default_language" else UNSET
    yield UserSettingsEvent(property=name, value=value, language_name=language)
    address = api_email(context.state, context.state.users[user_id], context.host)
    if legacy.display and name in LEGACY_DISPLAY:
        yield DisplaySettingEvent(
            user=address, setting_name=name, setting=value, language_name=language
        )
    if legacy.notifications and name in LEGACY_NOTIFICATIONS:
        yield NotificationSettingEvent(user=address, notification_name=name, setting=value)


class ExportConsentEvent(Event, kw_only=True, tag="realm_export_consent"):
    """Somebody lets an export have what is private of theirs, or does not any more."""

    user_id: int
    consented: bool


class _View(NamedTuple):
    own: LegacyEvents | None
    account: AccountView | None
    address_changed: bool
    consent: bool = False
    """Whether the viewer administers exports."""


_CONSENT: Final = "allow_private_data_export"
_SEEN_BY_OTHERS: Final = frozenset({_CONSENT, "email_address_visibility", "presence_enabled"})


class SettingsChangedProjection(Projection[SettingsChanged]):
    """New settings, to their owner; and to others what they see of them."""

    of = SettingsChanged

    def audience(self, state: State, change: SettingsChanged) -> Collection[int] | None:
        return None if _SEEN_BY_OTHERS & change.values.keys() else (change.user_id,)

    def view(
        self, context: ProjectionContext, change: SettingsChanged, viewer: Viewer
    ) -> Hashable | None:
        own = legacy_events(viewer) if viewer.user.id == change.user_id else None
        if not _SEEN_BY_OTHERS & change.values.keys():
            return None if own is None else _View(own, None, False)
        user = context.state.users[change.user_id]
        consent = permissions.is_administrator(context.state, viewer.user) and not user.is_bot
        return _View(
            own,
            account_view(context, user, viewer),
            _address_changes(context, change, viewer),
            consent,
        )

    def events(
        self, context: ProjectionContext, change: SettingsChanged, view: Any
    ) -> Iterable[Event]:
        if view.own is not None:
            for name, value in change.values.items():
                if name in RULES:  # What was one once is stored still.
                    yield from own_setting_events(
                        context, change.user_id, view.own, wire_name(name), value
                    )
        if view.consent and _CONSENT in change.values:
            yield ExportConsentEvent(user_id=change.user_id, consented=change.values[_CONSENT])
        if view.account is None:
            return
        user = context.state.users[change.user_id]
        if view.address_changed:
            yield from people.address_seen(user, view.account)
        if _is_new_name(change) and not user.is_bot:
            yield people.email(context, user)
        if "presence_enabled" in change.values:
            yield UserStatusEvent(user_id=user.id, away=not change.values["presence_enabled"])


def _visibilities(change: SettingsChanged) -> tuple[AddressVisibility, AddressVisibility] | None:
    name = "email_address_visibility"
    if name not in change.values:
        return None
    return AddressVisibility(change.was[name]), AddressVisibility(change.values[name])


def _address_changes(context: ProjectionContext, change: SettingsChanged, viewer: Viewer) -> bool:
    """Whether the address came into the viewer's sight, or went out of it."""
    both = _visibilities(change)
    if both is None or viewer.user.id == change.user_id:
        return False
    was, now = both
    role = permissions.role_of(context.state, viewer.user)
    return permissions.opens_address(was, role) != permissions.opens_address(now, role)


def _is_new_name(change: SettingsChanged) -> bool:
    """Whether the interface knows the account by another address now."""
    both = _visibilities(change)
    return both is not None and (AddressVisibility.EVERYONE in both)


PROJECTIONS: Final[Projections] = (SettingsChangedProjection(),)
