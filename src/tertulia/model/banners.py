"""Banners: what owners and administrators tell everybody, above all that is on the screen."""

from msgspec import Struct

from tertulia.model.change import Change


class Banner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that everybody is told until its end, or until they have put it away."""

    id: int
    content: str
    """Plain text of one line or several."""
    posted_by: int
    posted_at: int
    """UNIX seconds."""
    ends_at: int
    """UNIX seconds."""


class BannerPosted(Change, frozen=True, tag="banner_posted"):
    """Everybody is told something."""

    banner: Banner


class BannersEnded(Change, frozen=True, tag="banners_ended"):
    """These are shown no more: their time is over, or somebody has taken them down."""

    banner_ids: tuple[int, ...]
