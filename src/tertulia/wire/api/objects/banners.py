"""Banners on the wire."""

from typing import Annotated

from msgspec import Meta, Struct

from tertulia.model.banners import Banner
from tertulia.state.organization import State


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
