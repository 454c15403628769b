"""Events of navigation views, for their owner."""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tertulia.model import changes
from tertulia.wire.api.events import Event, ForOwner, ProjectionContext
from tertulia.wire.api.objects.navigation import NavigationViewObject, view_object


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


class NavigationViewAddedProjection(ForOwner[changes.NavigationViewAdded]):
    """A new view."""

    of = changes.NavigationViewAdded

    def events(
        self, context: ProjectionContext, change: changes.NavigationViewAdded, view: Any
    ) -> Iterable[Event]:
        yield NavigationViewAddEvent(navigation_view=view_object(change.view))


class NavigationViewChangedProjection(ForOwner[changes.NavigationViewChanged]):
    """What is new about a view."""

    of = changes.NavigationViewChanged

    def events(
        self, context: ProjectionContext, change: changes.NavigationViewChanged, view: Any
    ) -> Iterable[Event]:
        news = NavigationViewNews(
            name=UNSET if change.name is None else change.name,
            is_pinned=UNSET if change.is_pinned is None else change.is_pinned,
        )
        yield NavigationViewUpdateEvent(fragment=change.fragment, data=news)


class NavigationViewRemovedProjection(ForOwner[changes.NavigationViewRemoved]):
    """A view that is gone."""

    of = changes.NavigationViewRemoved

    def events(
        self, context: ProjectionContext, change: changes.NavigationViewRemoved, view: Any
    ) -> Iterable[Event]:
        yield NavigationViewRemoveEvent(fragment=change.fragment)
