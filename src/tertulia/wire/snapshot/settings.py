"""The viewer's own settings, and the organization's defaults of them."""

from typing import Any, Final

from tertulia.domain import onboarding as steps
from tertulia.wire.objects.administration import onboarding_objects
from tertulia.wire.objects.settings import (
    LEGACY_DISPLAY,
    LEGACY_NOTIFICATIONS,
    settings_object,
)
from tertulia.wire.snapshot.scene import Scene, Section, Sections


def user_settings(scene: Scene) -> dict[str, Any]:
    """The viewer's settings; a spectator has the defaults."""
    viewer = scene.viewer
    own = None if viewer is None else scene.state.settings.get(viewer.id)
    return {
        "user_settings": {
            **settings_object(own or scene.state.default_settings),
            "timezone": "" if viewer is None else viewer.timezone,
        }
    }


def _at_top_level(names: tuple[str, ...]) -> Section:
    """Some of the viewer's settings where they were before there was an object of them."""

    def section(scene: Scene) -> dict[str, Any]:
        own = user_settings(scene)["user_settings"]
        return {name: own[name] for name in names}

    return section


LEGACY: Final[Sections] = {
    ("update_display_settings",): _at_top_level(LEGACY_DISPLAY),
    ("update_global_notifications",): _at_top_level(LEGACY_NOTIFICATIONS),
}
"""Fetch types that the interface dropped (level 439), and zulip-terminal 0.7 cannot start without.
They are answered only where they are named."""


def defaults(scene: Scene) -> dict[str, Any]:
    """The settings that new accounts begin with."""
    return {"realm_user_settings_defaults": settings_object(scene.state.default_settings)}


def onboarding(scene: Scene) -> dict[str, Any]:
    """The hints for beginners that the viewer has not seen. There is no tour to watch."""
    left = [] if scene.viewer is None else steps.left(scene.state, scene.viewer.id)
    return {"onboarding_steps": onboarding_objects(left), "navigation_tour_video_url": None}


def alert_words(scene: Scene) -> dict[str, Any]:
    """The words of whose use the viewer wants to hear."""
    own = None if scene.viewer is None else scene.state.alert_words.get(scene.viewer.id)
    return {"alert_words": list(own.words) if own else []}


SECTIONS: Final[Sections] = {
    ("user_settings",): user_settings,
    ("realm_user_settings_defaults",): defaults,
    ("onboarding_steps",): onboarding,
    ("alert_words",): alert_words,
}
