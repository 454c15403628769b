"""Personal settings."""

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import personal_settings
from tertulia.domain.accounts.addresses import NewAddress
from tertulia.domain.accounts.personal_settings import (
    NOTIFICATION_SOUNDS,
    RULES,
    PasswordChange,
    PersonalSettingsUpdate,
    Targets,
)
from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.model.changes import SettingsChanged
from tertulia.model.errors import Refused
from tertulia.model.settings import declared_settings
from tertulia.model.users import AddressVisibility, PersonalSettings, User
from tertulia.service.accounts import good_password
from tertulia.wire.api.events import Event
from tertulia.wire.api.presence import follow_settings
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, projected
from tertulia.wire.api.section import Section, SectionContext, Sections
from tertulia.wire.api.statuses import UserStatusEvent
from tertulia.wire.api.users import account_events
from tertulia.wire.api.users.account_events import AccountView, account_view
from tertulia.wire.api.users.objects import api_email
from tertulia.wire.http import cookies, sign_in
from tertulia.wire.http.parameters import Doc, Int, Params, with_optional
from tertulia.wire.http.routing import Call

WIRE_NAMES: Final[Mapping[str, str]] = {
    "automatically_unmute_topics_in_muted_channels_policy": (
        "automatically_unmute_topics_in_muted_streams_policy"
    ),
    "demote_inactive_channels": "demote_inactive_streams",
    "direct_content_in_desktop_notifications": "pm_content_in_desktop_notifications",
    "enable_channel_audible_notifications": "enable_stream_audible_notifications",
    "enable_channel_desktop_notifications": "enable_stream_desktop_notifications",
    "enable_channel_email_notifications": "enable_stream_email_notifications",
    "enable_channel_push_notifications": "enable_stream_push_notifications",
    "send_channel_typing_notifications": "send_stream_typing_notifications",
    "send_direct_typing_notifications": "send_private_typing_notifications",
    "web_channel_unreads_count_display_policy": "web_stream_unreads_count_display_policy",
}
"""Settings whose name in the API differs."""

EMOJI_SETS: Final[Mapping[str, str]] = {
    "google": "Google",
    "twitter": "Twitter",
    "text": "Plain text",
    "google-blob": "Google blobs",
}
"""The emoji sets and their display names."""


FIXED: Final[Mapping[str, str]] = {"resolved_topic_notice_auto_read_policy": "never"}
"""Settings that Zulip has and that are fixed here: messages about resolved topics are unread like
any other."""

LEGACY_DISPLAY: Final = (
    "color_scheme",
    "default_language",
    "demote_inactive_streams",
    "display_emoji_reaction_users",
    "emojiset",
    "emojiset_choices",
    "enable_drafts_synchronization",
    "enter_sends",
    "fluid_layout_width",
    "high_contrast_mode",
    "left_side_userlist",
    "starred_message_counts",
    "timezone",
    "translate_emoticons",
    "twenty_four_hour_time",
    "web_home_view",
)
LEGACY_NOTIFICATIONS: Final = (
    "available_notification_sounds",
    "desktop_icon_count_display",
    "email_notifications_batching_period_seconds",
    "enable_desktop_notifications",
    "enable_digest_emails",
    "enable_login_emails",
    "enable_marketing_emails",
    "enable_offline_email_notifications",
    "enable_offline_push_notifications",
    "enable_online_push_notifications",
    "enable_sounds",
    "enable_stream_audible_notifications",
    "enable_stream_desktop_notifications",
    "enable_stream_email_notifications",
    "enable_stream_push_notifications",
    "message_content_in_email_notifications",
    "notification_sound",
    "pm_content_in_desktop_notifications",
    "presence_enabled",
    "realm_name_in_email_notifications_policy",
    "receives_typing_notifications",
    "wildcard_mentions_notify",
)
"""The settings in the legacy notification events. `LEGACY_DISPLAY` has those in the legacy display
events."""


def wire_name(field: str) -> str:
    """Return the API's name of a setting."""
    return WIRE_NAMES.get(field, field)


@cache
def field_names() -> Mapping[str, str]:
    """Return the settings by their API names."""
    return {wire_name(field): field for field in RULES}


def settings_object(settings: PersonalSettings) -> dict[str, Any]:
    """Return all settings by their API names, including the choices for some of them and fixed
    settings."""
    values = ((name, getattr(settings, field)) for name, field in field_names().items())
    return {
        **{name: value.value if isinstance(value, Enum) else value for name, value in values},
        **FIXED,
        "emojiset_choices": [{"key": key, "text": text} for key, text in EMOJI_SETS.items()],
        "available_notification_sounds": list(NOTIFICATION_SOUNDS),
    }


@with_optional(
    {
        wire_name(field): Annotated[setting.type, Doc(setting.description or None)]
        for field, setting in sorted(declared_settings(PersonalSettings).items())
    }
)
class SettingParams(Params, kw_only=True, frozen=True):
    """Personal settings as parameters. Settings that aren't sent stay the same."""


def settings_sent(params: SettingParams) -> dict[str, Any]:
    """Return the settings that were sent, by their names in the domain."""
    sent = ((field, getattr(params, name)) for name, field in field_names().items())
    return {field: value for field, value in sent if value is not UNSET}


class UserSettingsEvent(Event, kw_only=True, tag="user_settings"):
    """One of your settings changed. `language_name` is present only for `default_language`."""

    op: str = "update"
    property: str
    value: Any
    language_name: str | UnsetType = UNSET


class DisplaySettingEvent(Event, kw_only=True, tag="update_display_settings"):
    """The legacy form of `user_settings`, for clients that request it. `user` is your email
    address."""

    user: str
    setting_name: str
    setting: Any
    language_name: str | UnsetType = UNSET


class NotificationSettingEvent(Event, kw_only=True, tag="update_global_notifications"):
    """The legacy form of `user_settings`, for clients that request it. `user` is your email
    address."""

    user: str
    notification_name: str
    setting: Any


class LegacyEvents(NamedTuple):
    """The legacy settings events that the client requested."""

    display: bool
    notifications: bool


def legacy_events(viewer: Viewer) -> LegacyEvents:
    types = viewer.registration.event_types or ()
    return LegacyEvents("update_display_settings" in types, "update_global_notifications" in types)


def own_setting_events(
    context: ProjectionContext, user_id: int, legacy: LegacyEvents, name: str, value: Any
) -> Iterable[Event]:
    """Return the events of one setting, by its API name: the current one and the legacy ones."""
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
    """Whether exports may contain someone's private data. Sent when they change it, or when their
    account is created or reactivated."""

    user_id: int
    consented: bool


def export_consent(context: ProjectionContext, user: User, viewer: Viewer) -> bool | None:
    """Return whether exports may contain the user's private data. Return None for bots, and if the
    viewer isn't an administrator."""
    if user.is_bot or not permissions.is_administrator(context.state, viewer.user):
        return None
    return context.state.settings[user.id].allow_private_data_export


class _View(NamedTuple):
    own: LegacyEvents | None
    account: AccountView | None
    address_changed: bool
    consent: bool = False
    """Whether the viewer administers exports."""


_CONSENT: Final = "allow_private_data_export"
_SEEN_BY_OTHERS: Final = frozenset({_CONSENT, "email_address_visibility", "presence_enabled"})


def _changed_view(
    context: ProjectionContext, change: SettingsChanged, viewer: Viewer
) -> Hashable | None:
    legacy = legacy_events(viewer) if viewer.user.id == change.user_id else None
    if not _SEEN_BY_OTHERS & change.values.keys():
        return None if legacy is None else _View(legacy, None, False)
    user = context.state.users[change.user_id]
    return _View(
        legacy,
        account_view(context, user, viewer),
        _address_changes(context, change, viewer),
        export_consent(context, user, viewer) is not None,
    )


def _changed(context: ProjectionContext, change: SettingsChanged, view: Any) -> Iterable[Event]:
    user_id, values = change.user_id, change.values
    if view.own is not None:
        for name, value in values.items():
            if name in RULES:  # Old entries may have settings that no longer exist.
                yield from own_setting_events(context, user_id, view.own, wire_name(name), value)
    if view.consent and _CONSENT in values:
        yield ExportConsentEvent(user_id=user_id, consented=values[_CONSENT])
    if view.account is None:
        return
    user = context.state.users[user_id]
    if view.address_changed:
        yield from account_events.address_seen(user, view.account)
    if AddressVisibility.EVERYONE in (_visibilities(change) or ()) and not user.is_bot:
        yield account_events.email(context, user)
    if "presence_enabled" in values:
        yield UserStatusEvent(user_id=user_id, away=not values["presence_enabled"])


def _visibilities(change: SettingsChanged) -> tuple[AddressVisibility, AddressVisibility] | None:
    name = "email_address_visibility"
    if name not in change.values:
        return None
    return AddressVisibility(change.was[name]), AddressVisibility(change.values[name])


def _address_changes(context: ProjectionContext, change: SettingsChanged, viewer: Viewer) -> bool:
    """Whether the viewer gained or lost access to the address."""
    both = _visibilities(change)
    if both is None or viewer.user.id == change.user_id:
        return False
    was, now = both
    role = permissions.role_of(context.state, viewer.user)
    return permissions.opens_address(was, role) != permissions.opens_address(now, role)


class TargetUsers(Struct, kw_only=True, frozen=True):
    """The people whose settings to change: these accounts, and all active members of these groups.
    `skip_if_already_edited` leaves out people who have changed any of their settings."""

    user_ids: list[Int] = []
    group_ids: list[Int] = []
    skip_if_already_edited: bool = False


class UpdateSettings(SettingParams, kw_only=True, frozen=True):
    target_users: Annotated[
        TargetUsers | None, Doc("Change the settings of other users. Requires an administrator.")
    ] = None
    full_name: str | UnsetType = UNSET
    email: Annotated[
        str | UnsetType,
        Doc("The new email address. It's changed when you follow the emailed link."),
    ] = UNSET
    timezone: Annotated[str | UnsetType, Doc("An IANA time zone name, or empty.")] = UNSET
    old_password: str | UnsetType = UNSET
    new_password: Annotated[
        str | UnsetType, Doc("Requires `old_password`. Ends all other sessions.")
    ] = UNSET
    end_keys: Annotated[
        bool | UnsetType,
        Doc(
            "Tertulia only: with a new password, also replace your API key and end all access keys,"
            " so that apps and scripts have to sign in again."
        ),
    ] = UNSET


async def update_settings(call: Call, params: UpdateSettings) -> None:
    """Change your personal settings. Settings that already have the value are listed in
    `ignored_parameters_unsupported`."""
    settings = settings_sent(params)
    revision = PersonalSettingsUpdate(
        settings=settings,
        full_name=params.full_name,
        timezone=params.timezone,
        password=await _password(call, params),
        address=_address(call, params),
    )
    targets = params.target_users
    if targets is None:
        changed = await call.submit(personal_settings.change, revision)
    else:
        accounts = Targets(
            user_ids=tuple(targets.user_ids),
            group_ids=tuple(targets.group_ids),
            skip_if_already_edited=targets.skip_if_already_edited,
        )
        changed = await call.submit(personal_settings.change_for, accounts, revision)
    for user_id in changed.users_with("presence_enabled"):
        follow_settings(call.node, user_id, is_present=user_id == call.user.id)
    new = frozenset[str]().union(*changed.names.values())
    sent = [
        *settings,
        *(n for n in ("full_name", "email", "timezone") if getattr(params, n) is not UNSET),
    ]
    if "password" in new and call.session_id is not None:
        cookies.set_device_cookie(call.node, call.request, call.user.id)
    call.ignored.extend(wire_name(name) for name in sent if name not in new)
    if params.old_password is not UNSET and "password" not in new:
        call.ignored.append("old_password")
    if params.end_keys is True and "password" not in new:
        call.ignored.append("end_keys")


def _address(call: Call, params: UpdateSettings) -> NewAddress | UnsetType:
    if isinstance(params.email, UnsetType):
        return UNSET
    if params.email.strip() != call.user.address:
        sign_in.require_confirmed(call)
    return NewAddress(
        text=params.email, nonce=call.node.vault.nonce(), site=call.node.config.mail_site
    )


async def _password(call: Call, params: UpdateSettings) -> PasswordChange | UnsetType:
    """Return the hashed new password, if one was sent. Refuses a wrong old password and an
    unsuitable new one."""
    if params.new_password is UNSET:
        return UNSET
    if params.target_users is not None:
        raise Refused("You can't change other people's passwords.")
    if params.old_password is UNSET:
        raise Refused("To set a new password, include your old one.")
    vault = call.node.vault
    if not call.state.realm.password_sign_in:
        raise Refused("Password sign-in is disabled in this organization.")
    credential = await sign_in.require_password(
        call, params.old_password, "The old password is incorrect."
    )
    user = call.user
    password = await good_password(call.node, params.new_password, user.address, user.full_name)
    hashed = await vault.hash_password(password)
    return PasswordChange(
        old_hash=credential.password_hash,
        new_hash=hashed,
        session_id=call.session_id,
        site=call.node.config.mail_site,
        key=vault.new_key() if params.end_keys is True else None,
    )


def user_settings_section(context: SectionContext) -> dict[str, Any]:
    """The viewer's settings. Spectators have the defaults."""
    settings = context.state.settings.get(context.viewer_id) or context.state.default_settings
    timezone = "" if context.viewer is None else context.viewer.timezone
    return {"user_settings": {**settings_object(settings), "timezone": timezone}}


def _at_top_level(names: tuple[str, ...]) -> Section:
    def section(context: SectionContext) -> dict[str, Any]:
        values = user_settings_section(context)["user_settings"]
        return {name: values[name] for name in names}

    return section


SECTIONS: Final[Sections] = {
    ("user_settings",): user_settings_section,
    ("realm_user_settings_defaults",): lambda context: {
        "realm_user_settings_defaults": settings_object(context.state.default_settings)
    },
}
NAMED_SECTIONS: Final[Sections] = {
    ("update_display_settings",): _at_top_level(LEGACY_DISPLAY),
    ("update_global_notifications",): _at_top_level(LEGACY_NOTIFICATIONS),
}
"""Fetch types that Zulip removed at feature level 439, and that zulip-terminal 0.7 needs."""


PROJECTIONS: Final[Projections] = (
    projected(
        SettingsChanged,
        _changed_view,
        _changed,
        audience=lambda _, change: (
            None if _SEEN_BY_OTHERS & change.values.keys() else (change.user_id,)
        ),
    ),
)
