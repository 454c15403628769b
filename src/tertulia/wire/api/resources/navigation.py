"""Views of the left sidebar."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.accounts import navigation
from tertulia.wire.api.objects.navigation import NavigationViewObject, view_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params, Path
from tertulia.wire.http.routing import Answer

_PINNED = Meta(description="Shown in the sidebar, or else behind the menu of more views.")
_NAME = Meta(description="Of a view of one's own; a built-in view takes none.")


class GetNavigationViews(Params, kw_only=True, frozen=True):
    """No parameters."""


class NavigationViews(Answer, kw_only=True):
    """The caller's views, the oldest first."""

    navigation_views: list[NavigationViewObject]


async def get_navigation_views(call: Call, params: GetNavigationViews) -> NavigationViews:
    """The caller's views, the oldest first."""
    own = call.state.views_of_user[call.user.id]
    return NavigationViews(navigation_views=[view_object(view) for view in own])


class AddNavigationView(Params, kw_only=True, frozen=True):
    """A view, or settings of a built-in one."""

    fragment: Annotated[str, Meta(description="Of the view's address, after the #.")]
    is_pinned: Annotated[bool, _PINNED]
    name: Annotated[str | None, _NAME] = None


async def add_navigation_view(call: Call, params: AddNavigationView) -> Answer:
    """Add a view, or settings of a built-in one."""
    await call.submit(navigation.add, params.fragment, params.is_pinned, params.name)
    return Answer()


class UpdateNavigationView(Params, kw_only=True, frozen=True):
    """What a view shall be; what is not sent stays."""

    fragment: Annotated[str, Path()]
    is_pinned: Annotated[bool | None, _PINNED] = None
    name: Annotated[str | None, _NAME] = None


async def update_navigation_view(call: Call, params: UpdateNavigationView) -> Answer:
    """Give a view another place or name."""
    await call.submit(navigation.change, params.fragment, params.is_pinned, params.name)
    return Answer()


class RemoveNavigationView(Params, kw_only=True, frozen=True):
    """A view to remove."""

    fragment: Annotated[str, Path()]


async def remove_navigation_view(call: Call, params: RemoveNavigationView) -> Answer:
    """Remove a view, or settings of a built-in one."""
    await call.submit(navigation.remove, params.fragment)
    return Answer()
