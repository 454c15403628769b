"""Banners."""

from tertulia.model.banners import Banner
from tertulia.model.changes.base import Change


class BannerPosted(Change, frozen=True, tag="banner_posted"):
    """Everybody is told something."""

    banner: Banner


class BannersEnded(Change, frozen=True, tag="banners_ended"):
    """These are shown no more: their time is over, or somebody has taken them down."""

    banner_ids: tuple[int, ...]
