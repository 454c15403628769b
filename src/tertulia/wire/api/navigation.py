"""Navigation views on the wire."""

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import navigation
from tertulia.model import changes
from tertulia.model.navigation import NavigationView
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class NavigationViewObject(Struct, kw_only=True):
    """A view of the left sidebar. Built-in ones have no name."""

    fragment: str
    is_pinned: bool
    name: str | UnsetType = UNSET


def view_object(view: NavigationView) -> NavigationViewObject:
    """The view, for its owner."""
    return NavigationViewObject(
        fragment=view.fragment,
        is_pinned=view.is_pinned,
        name=UNSET if view.name is None else view.name,
    )


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


_PINNED = Meta(description="Shown in the sidebar, or else behind the menu of more views.")
_NAME = Meta(description="Of a view of one's own; a built-in view takes none.")


class GetNavigationViews(Params, kw_only=True, frozen=True):
    """No parameters."""


class NavigationViews(ApiResponse, kw_only=True):
    """The caller's views, the oldest first."""

    navigation_views: list[NavigationViewObject]


async def get_navigation_views(call: Call, params: GetNavigationViews) -> NavigationViews:
    """The caller's views, the oldest first."""
    own = call.state.navigation_views.of_user[call.user.id]
    return NavigationViews(navigation_views=[view_object(view) for view in own])


class AddNavigationView(Params, kw_only=True, frozen=True):
    """A view, or settings of a built-in one."""

    fragment: Annotated[str, Meta(description="Of the view's address, after the #.")]
    is_pinned: Annotated[bool, _PINNED]
    name: Annotated[str | None, _NAME] = None


async def add_navigation_view(call: Call, params: AddNavigationView) -> ApiResponse:
    """Add a view, or settings of a built-in one."""
    await call.submit(navigation.add, params.fragment, params.is_pinned, params.name)
    return ApiResponse()


class UpdateNavigationView(Params, kw_only=True, frozen=True):
    """What a view shall be; what is not sent stays."""

    fragment: Annotated[str, Path()]
    is_pinned: Annotated[bool | None, _PINNED] = None
    name: Annotated[str | None, _NAME] = None


async def update_navigation_view(call: Call, params: UpdateNavigationView) -> ApiResponse:
    """Give a view another place or name."""
    await call.submit(navigation.change, params.fragment, params.is_pinned, params.name)
    return ApiResponse()


class RemoveNavigationView(Params, kw_only=True, frozen=True):
    """A view to remove."""

    fragment: Annotated[str, Path()]


async def remove_navigation_view(call: Call, params: RemoveNavigationView) -> ApiResponse:
    """Remove a view, or settings of a built-in one."""
    await call.submit(navigation.remove, params.fragment)
    return ApiResponse()


SECTIONS: Final[Sections] = {
    ("navigation_views",): lambda context: {
        "navigation_views": [
            view_object(view) for view in context.state.navigation_views.of_user[context.viewer_id]
        ]
    }
}


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
