"""The viewer's own settings, and the organization's defaults of them."""

from typing import Any, Final

from tertulia.domain.accounts import navigation
from tertulia.wire.api.administration import onboarding_objects
from tertulia.wire.api.settings import LEGACY_DISPLAY, LEGACY_NOTIFICATIONS, settings_object
from tertulia.wire.api.snapshot.context import Section, Sections, SnapshotContext


def user_settings(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's settings; a spectator has the defaults."""
    viewer = context.viewer
    own = None if viewer is None else context.state.settings.get(viewer.id)
    return {
        "user_settings": {
            **settings_object(own or context.state.default_settings),
            "timezone": "" if viewer is None else viewer.timezone,
        }
    }


def _at_top_level(names: tuple[str, ...]) -> Section:
    """Some of the viewer's settings where they were before there was an object of them."""

    def section(context: SnapshotContext) -> dict[str, Any]:
        own = user_settings(context)["user_settings"]
        return {name: own[name] for name in names}

    return section


LEGACY: Final[Sections] = {
    ("update_display_settings",): _at_top_level(LEGACY_DISPLAY),
    ("update_global_notifications",): _at_top_level(LEGACY_NOTIFICATIONS),
}
"""Fetch types that the interface dropped (level 439), and zulip-terminal 0.7 cannot start without.
They are answered only where they are named."""


def defaults(context: SnapshotContext) -> dict[str, Any]:
    """The settings that new accounts begin with."""
    return {"realm_user_settings_defaults": settings_object(context.state.default_settings)}


def onboarding(context: SnapshotContext) -> dict[str, Any]:
    """The hints for beginners that the viewer has not seen. There is no tour to watch."""
    left = (
        []
        if context.viewer is None
        else navigation.onboarding_steps_left(context.state, context.viewer.id)
    )
    return {"onboarding_steps": onboarding_objects(left), "navigation_tour_video_url": None}


def alert_words(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's alert words."""
    own = None if context.viewer is None else context.state.alert_words.get(context.viewer.id)
    return {"alert_words": list(own.words) if own else []}


SECTIONS: Final[Sections] = {
    ("user_settings",): user_settings,
    ("realm_user_settings_defaults",): defaults,
    ("onboarding_steps",): onboarding,
    ("alert_words",): alert_words,
}
