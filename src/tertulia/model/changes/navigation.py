"""Views of the left sidebar."""

from tertulia.model.changes.base import Change
from tertulia.model.navigation import NavigationView


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
