"""Folds of the left sidebar's views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.NavigationViewAdded)
def _(state: State, change: changes.NavigationViewAdded) -> None:
    state.navigation_views.put(change.view)


@FOLDS.of(changes.NavigationViewChanged)
def _(state: State, change: changes.NavigationViewChanged) -> None:
    news = {"is_pinned": change.is_pinned, "name": change.name}
    values = {field: value for field, value in news.items() if value is not None}
    state.navigation_views.put(revised(state.navigation_views[change.view_id], values))


@FOLDS.of(changes.NavigationViewRemoved)
def _(state: State, change: changes.NavigationViewRemoved) -> None:
    state.navigation_views.remove(change.view_id)
