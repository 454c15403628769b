"""Banners on the wire."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tertulia.domain.organization import banners
from tertulia.model import changes
from tertulia.model.banners import Banner
from tertulia.service.caller import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.organization.events import RealmUpdateEvent
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class BannerObject(Struct, kw_only=True):
    """What everybody is told, until its end or until they have put it away."""

    id: int
    content: Annotated[str, Meta(description="Plain text.")]
    posted_by: Annotated[int, Meta(description="An account.")]
    posted_at: Annotated[int, Meta(description="UNIX seconds.")]
    ends_at: Annotated[int, Meta(description="UNIX seconds.")]


def banner_object(banner: Banner) -> BannerObject:
    """The banner."""
    return BannerObject(
        id=banner.id,
        content=banner.content,
        posted_by=banner.posted_by,
        posted_at=banner.posted_at,
        ends_at=banner.ends_at,
    )


def banner_objects(state: State) -> list[BannerObject]:
    """All of them, the oldest first."""
    return [banner_object(one) for one in sorted(state.banners, key=lambda one: one.id)]


def _banners(context: ProjectionContext, change: Any) -> Event:
    """All of them, as they are now."""
    return RealmUpdateEvent(property="banners", value=banner_objects(context.state))


def _knows_them(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    """The reference's clients know no such property, and some take what they do not know for a
    mistake."""
    return viewer.registration.capabilities.server_extensions


WEEK: Final = 7 * 86400


class Banners(ApiResponse, kw_only=True):
    """The oldest first."""

    banners: list[BannerObject]


async def get_banners(call: Call, params: NoParams) -> Banners:
    """What everybody is told. Not of the reference's interface: this server's. Clients that have
    the capability `server_extensions` are told when they register (`realm_banners`), and by events
    (`realm`, `update`, with the property `banners`: all of them)."""
    return Banners(banners=banner_objects(call.state))


class PostBanner(Params, kw_only=True, frozen=True):
    """What everybody is to be told."""

    content: Annotated[str, Meta(description="Plain text, 500 characters at most.")]
    seconds: Annotated[
        Int, Meta(description="For how long, a year at most. By default a week.")
    ] = WEEK
    announce: Annotated[
        bool,
        Meta(
            description="Whether the notification bot says it too in the channel"
            " zulip_update_announcements_stream_id, if there is one: not every client has banners."
        ),
    ] = True


class PostedBanner(ApiResponse, kw_only=True):
    """Its ID."""

    banner_id: int


async def post_banner(call: Caller, params: PostBanner) -> PostedBanner:
    """Tell everybody something for a time (planned maintenance, say), for administrators; five
    things at once at most. Each client shows it until its end, or until it is put away there."""
    posted = await call.submit(
        banners.post, params.content, params.seconds, params.announce, call.render
    )
    return PostedBanner(banner_id=posted.id)


class OneBanner(Params, kw_only=True, frozen=True):
    """A banner."""

    banner_id: Annotated[Int, Path()]


async def end_banner(call: Caller, params: OneBanner) -> ApiResponse:
    """Tell it nobody any more, for administrators."""
    await call.submit(banners.end, params.banner_id)
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.BannerPosted, _banners, only_if=_knows_them),
    to_everybody(changes.BannersEnded, _banners, only_if=_knows_them),
)
