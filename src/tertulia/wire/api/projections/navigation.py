"""Events of navigation views, for their owner."""

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.navigation import NavigationViewObject, view_object
from tertulia.wire.api.projection import Projections, to_owner


class NavigationViewAddEvent(Event, kw_only=True, tag="navigation_view"):
    """There is a view, or there are settings of a built-in one."""

    op: str = "add"
    navigation_view: NavigationViewObject


class NavigationViewNews(Struct, kw_only=True):
    """What is new about a view."""

    name: str | UnsetType = UNSET
    is_pinned: bool | UnsetType = UNSET


class NavigationViewUpdateEvent(Event, kw_only=True, tag="navigation_view"):
    """Something is new about a view."""

    op: str = "update"
    fragment: str
    data: NavigationViewNews


class NavigationViewRemoveEvent(Event, kw_only=True, tag="navigation_view"):
    """A view is gone."""

    op: str = "remove"
    fragment: str


PROJECTIONS: Final[Projections] = (
    to_owner(
        changes.NavigationViewAdded,
        lambda _, change: NavigationViewAddEvent(navigation_view=view_object(change.view)),
    ),
    to_owner(
        changes.NavigationViewChanged,
        lambda _, change: NavigationViewUpdateEvent(
            fragment=change.fragment,
            data=NavigationViewNews(
                name=UNSET if change.name is None else change.name,
                is_pinned=UNSET if change.is_pinned is None else change.is_pinned,
            ),
        ),
    ),
    to_owner(
        changes.NavigationViewRemoved,
        lambda _, change: NavigationViewRemoveEvent(fragment=change.fragment),
    ),
)
