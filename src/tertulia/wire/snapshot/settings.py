"""The viewer's own settings, and the organization's defaults of them."""

from typing import Any, Final

from tertulia.model.users import PersonalSettings
from tertulia.wire.objects.settings import settings_object
from tertulia.wire.snapshot.scene import Scene, Sections

_DEFAULTS: Final = PersonalSettings(user_id=0)


def user_settings(scene: Scene) -> dict[str, Any]:
    """The viewer's settings; a spectator has the defaults."""
    viewer = scene.viewer
    own = None if viewer is None else scene.state.settings.get(viewer.id)
    return {
        "user_settings": {
            **settings_object(own or _DEFAULTS),
            "timezone": "" if viewer is None else viewer.timezone,
        }
    }


def defaults(scene: Scene) -> dict[str, Any]:
    """The settings that new accounts begin with."""
    return {"realm_user_settings_defaults": settings_object(_DEFAULTS)}


def onboarding(scene: Scene) -> dict[str, Any]:
    """There are no hints for beginners, and no tour to watch."""
    return {"onboarding_steps": [], "navigation_tour_video_url": None}


SECTIONS: Final[Sections] = {
    ("user_settings",): user_settings,
    ("realm_user_settings_defaults",): defaults,
    ("onboarding_steps",): onboarding,
    ("alert_words",): lambda _: {"alert_words": []},
    ("navigation_views",): lambda _: {"navigation_views": []},
    ("device",): lambda _: {"devices": {}},
}
