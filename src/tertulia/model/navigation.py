"""Views of the left sidebar, as one account has them."""

from msgspec import Struct

from tertulia.model.change import Change


class NavigationView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A view that its owner made, or the owner's settings of a built-in one."""

    id: int
    user_id: int
    fragment: str
    """Of the view's address: what identifies it to its owner."""
    is_pinned: bool
    """Whether it is shown, and not behind a menu."""
    name: str | None = None
    """None for built-in views."""


class NavigationViewAdded(Change, frozen=True, tag="navigation_view_added"):
    """A user added a view, or settings of a built-in one."""

    user_id: int
    view: NavigationView


class NavigationViewChanged(Change, frozen=True, tag="navigation_view_changed"):
    """A view was renamed, pinned or unpinned; fields that are None did not change."""

    user_id: int
    view_id: int
    fragment: str
    is_pinned: bool | None = None
    name: str | None = None


class NavigationViewRemoved(Change, frozen=True, tag="navigation_view_removed"):
    """A view was removed."""

    user_id: int
    view_id: int
    fragment: str
