"""Folds of banners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.BannerPosted)
def _(state: State, change: changes.BannerPosted) -> None:
    state.banners.put(change.banner)


@FOLDS.of(changes.BannersEnded)
def _(state: State, change: changes.BannersEnded) -> None:
    for banner_id in change.banner_ids:
        state.banners.remove(banner_id)
