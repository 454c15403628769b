"""Navigation views on the wire."""

from msgspec import UNSET, Struct, UnsetType

from tertulia.model.navigation import NavigationView


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
