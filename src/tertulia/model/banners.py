"""Banners: administrators' announcements at the top of the screen."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Banner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A banner, shown to everyone until it ends or they close it."""

    id: int
    content: str
    """Plain text of one or more lines."""
    posted_by: int
    posted_at: UnixSeconds
    ends_at: UnixSeconds


class BannerPosted(Change, frozen=True, tag="banner_posted"):
    banner: Banner


class BannersEnded(Change, frozen=True, tag="banners_ended"):
    """Banners ended or were removed."""

    banner_ids: tuple[int, ...]
