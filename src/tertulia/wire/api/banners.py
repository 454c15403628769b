"""Banners: announcements that every client shows until they end or are dismissed."""

from typing import Annotated, Any, Final

from msgspec import Struct, convert

from tertulia.domain.organization import banners
from tertulia.model import changes
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.organization.events import RealmUpdateEvent
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class BannerObject(Struct, kw_only=True):
    """An announcement that clients show until it ends or is dismissed."""

    id: int
    content: Annotated[str, Doc("Plain text.")]
    posted_by: Annotated[int, Doc("A user ID.")]
    posted_at: Annotated[int, Doc("UNIX seconds.")]
    ends_at: Annotated[int, Doc("UNIX seconds.")]


def banner_objects(state: State) -> list[BannerObject]:
    """All banners, oldest first."""
    banners = sorted(state.banners, key=lambda banner: banner.id)
    return convert(banners, list[BannerObject], from_attributes=True)


def _event(context: ProjectionContext, change: Any) -> Event:
    return RealmUpdateEvent(property="banners", value=banner_objects(context.state))


def _supports_banners(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    # Some Zulip clients treat an unknown property as an error.
    return viewer.registration.capabilities.server_extensions


WEEK: Final = 7 * 86400


class BannersResponse(ApiResponse, kw_only=True):
    """The banners, oldest first."""

    banners: list[BannerObject]


async def get_banners(call: Call) -> BannersResponse:
    """Get the banners.

    Clients with the capability `server_extensions` also get them when they register
    (`realm_banners`), and from `realm` events with `op` `update` and the property `banners`, which
    contain all of them. This endpoint is a Tertulia extension.
    """
    return BannersResponse(banners=banner_objects(call.state))


class PostedBannerResponse(ApiResponse, kw_only=True):
    """The new banner's ID."""

    banner_id: int


async def post_banner(
    call: Caller,
    content: Annotated[str, Doc("Plain text of at most 500 characters.")],
    seconds: Annotated[
        Int, Doc("How long to show the banner: a week by default, a year at most.")
    ] = WEEK,
    announce: Annotated[
        bool,
        Doc(
            "Whether the notification bot also posts the text in the channel"
            " zulip_update_announcements_stream_id, for clients without banners."
        ),
    ] = True,
) -> PostedBannerResponse:
    """Show an announcement, such as planned maintenance, to everyone. Requires an administrator.

    At most five banners are shown at a time. Each client shows a banner until it ends or is
    dismissed there.
    """
    posted = await call.submit(banners.post, content, seconds, announce, call.render)
    return PostedBannerResponse(banner_id=posted.id)


async def end_banner(call: Caller, banner_id: IntPath) -> None:
    """Remove a banner. Requires an administrator."""
    await call.submit(banners.end, banner_id)


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.BannerPosted, _event, only_if=_supports_banners),
    to_everybody(changes.BannersEnded, _event, only_if=_supports_banners),
)
