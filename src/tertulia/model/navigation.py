"""Views in the left sidebar."""

from msgspec import Struct

from tertulia.model.change import Change


class NavigationView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A view that its owner added, or their settings of a built-in one."""

    id: int
    user_id: int
    fragment: str
    """The fragment of its URL, which identifies it to its owner."""
    is_pinned: bool
    """Whether it's always shown, rather than in a menu."""
    name: str | None = None
    """None for built-in views."""


class NavigationViewAdded(Change, frozen=True, tag="navigation_view_added"):
    user_id: int
    view: NavigationView


class NavigationViewChanged(Change, frozen=True, tag="navigation_view_changed"):
    """A view was renamed, pinned, or unpinned; None fields didn't change."""

    user_id: int
    view_id: int
    fragment: str
    is_pinned: bool | None = None
    name: str | None = None


class NavigationViewRemoved(Change, frozen=True, tag="navigation_view_removed"):
    user_id: int
    view_id: int
    fragment: str
