"""What administrators set up for everybody, and services that the organization may be joined to."""

from functools import partial
from typing import Any, Final

from tertulia.embedded.catalog import offered
from tertulia.service import video_calls
from tertulia.service.video_calls import GifService
from tertulia.wire.api.administration import domain_objects, linkifier_objects, playground_objects
from tertulia.wire.api.banners import banner_objects
from tertulia.wire.api.emoji import custom_emoji
from tertulia.wire.api.organization.objects import realm_extensions
from tertulia.wire.api.profiles import FIELD_TYPES, profile_field_objects
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.api.webhooks import integration_objects


def fields(context: SnapshotContext) -> dict[str, Any]:
    """The fields that profiles have beside the name, and the types that such a field can have.
    Spectators see no profiles."""
    shown = [] if context.viewer is None else profile_field_objects(context.state)
    return {"custom_profile_fields": shown, "custom_profile_field_types": FIELD_TYPES}


def calls(context: SnapshotContext) -> dict[str, Any]:
    """With which services the viewer has connected for video calls: there are none that need it."""
    return {"has_zoom_token": False, "has_webex_token": False}


def linkifiers(context: SnapshotContext) -> dict[str, Any]:
    """What makes links, for clients that know its templates."""
    known = context.registration.capabilities.linkifier_url_template
    return {"realm_linkifiers": linkifier_objects(context.state) if known else []}


def extensions(context: SnapshotContext) -> dict[str, Any]:
    """What only this server has, for clients that know of it."""
    if not context.registration.capabilities.server_extensions or context.viewer is None:
        return {}
    return {"realm_banners": banner_objects(context.state), **realm_extensions(context.state.realm)}


def _gif_key(service: GifService, context: SnapshotContext) -> dict[str, Any]:
    """The key for looking for animated pictures, unless the organization wants none. Spectators
    write nothing."""
    wanted = context.viewer is not None and context.state.realm.gif_rating_policy
    return {f"{service.name}_api_key": service.key(context.node.config) if wanted else ""}


def embedded_bots(context: SnapshotContext) -> dict[str, Any]:
    """The bots that the server can run, with what each is told to work."""
    found = offered(context.node.config.embedded_bots).values()
    return {"realm_embedded_bots": [{"name": one.name, "config": one.settings} for one in found]}


SECTIONS: Final[Sections] = {
    ("custom_profile_fields",): fields,
    ("realm_domains",): lambda context: {"realm_domains": domain_objects(context.state)},
    ("realm_emoji",): lambda context: {"realm_emoji": custom_emoji(context.state)},
    ("realm_linkifiers",): linkifiers,
    ("realm_filters",): lambda _: {"realm_filters": []},
    ("realm_playgrounds",): lambda context: {
        "realm_playgrounds": playground_objects(context.state)
    },
    ("realm_embedded_bots",): embedded_bots,
    ("realm_incoming_webhook_bots",): lambda _: {
        "realm_incoming_webhook_bots": integration_objects()
    },
    ("server_extensions",): extensions,
    ("realm_billing",): lambda _: {"realm_billing": {"has_pending_sponsorship_request": False}},
    ("stop_words",): lambda _: {"stop_words": []},
    ("video_calls",): calls,
    **{(service.name,): partial(_gif_key, service) for service in video_calls.SERVICES},
    # Tenor answers nobody any more.
    ("tenor",): lambda _: {"tenor_api_key": ""},
}
