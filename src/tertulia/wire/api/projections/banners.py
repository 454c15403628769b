"""Events of banners."""

from typing import Any, Final

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.banners import banner_objects
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.api.projections.organization import RealmUpdateEvent


def _banners(context: ProjectionContext, change: Any) -> Event:
    """All of them, as they are now."""
    return RealmUpdateEvent(property="banners", value=banner_objects(context.state))


def _knows_them(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    """The reference's clients know no such property, and some take what they do not know for a
    mistake."""
    return viewer.registration.capabilities.server_extensions


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.BannerPosted, _banners, only_if=_knows_them),
    to_everybody(changes.BannersEnded, _banners, only_if=_knows_them),
)
