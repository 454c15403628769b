"""Banners: what everybody is told for a time."""

from typing import Annotated, Final

from msgspec import Meta

from tertulia.domain.organization import banners
from tertulia.service.caller import Caller
from tertulia.wire.api.objects.banners import BannerObject, banner_objects
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

WEEK: Final = 7 * 86400


class Banners(Answer, kw_only=True):
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


class PostedBanner(Answer, kw_only=True):
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


async def end_banner(call: Caller, params: OneBanner) -> Answer:
    """Tell it nobody any more, for administrators."""
    await call.submit(banners.end, params.banner_id)
    return Answer()
