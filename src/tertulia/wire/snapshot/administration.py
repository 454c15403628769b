"""What administrators set up for everybody, and services that the organization may be joined to."""

from typing import Any, Final

from tertulia.wire.objects.administration import (
    domain_objects,
    linkifier_objects,
    playground_objects,
)
from tertulia.wire.objects.profiles import FIELD_TYPES, profile_fields
from tertulia.wire.objects.reactions import custom_emoji
from tertulia.wire.snapshot.scene import Scene, Sections


def fields(scene: Scene) -> dict[str, Any]:
    """The fields that profiles have beside the name, and the types that such a field can have.
    Spectators see no profiles."""
    shown = [] if scene.viewer is None else profile_fields(scene.state)
    return {"custom_profile_fields": shown, "custom_profile_field_types": FIELD_TYPES}


def calls(scene: Scene) -> dict[str, Any]:
    """With which services the viewer has connected for video calls: there are none that need it."""
    return {"has_zoom_token": False, "has_webex_token": False}


def linkifiers(scene: Scene) -> dict[str, Any]:
    """What makes links, for clients that know its templates."""
    known = scene.registration.capabilities.linkifier_url_template
    return {"realm_linkifiers": linkifier_objects(scene.state) if known else []}


SECTIONS: Final[Sections] = {
    ("custom_profile_fields",): fields,
    ("realm_domains",): lambda scene: {"realm_domains": domain_objects(scene.state)},
    ("realm_emoji",): lambda scene: {"realm_emoji": custom_emoji(scene.state)},
    ("realm_linkifiers",): linkifiers,
    ("realm_filters",): lambda _: {"realm_filters": []},
    ("realm_playgrounds",): lambda scene: {"realm_playgrounds": playground_objects(scene.state)},
    ("realm_embedded_bots",): lambda _: {"realm_embedded_bots": []},
    ("realm_incoming_webhook_bots",): lambda _: {"realm_incoming_webhook_bots": []},
    ("realm_billing",): lambda _: {"realm_billing": {"has_pending_sponsorship_request": False}},
    ("stop_words",): lambda _: {"stop_words": []},
    ("video_calls",): calls,
    # Searching for animated pictures needs a key of one of these services; we have none.
    ("giphy",): lambda _: {"giphy_api_key": ""},
    ("tenor",): lambda _: {"tenor_api_key": ""},
    ("klipy",): lambda _: {"klipy_api_key": ""},
}
