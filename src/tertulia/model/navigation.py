"""Views of the left sidebar, as one account has them."""

from msgspec import Struct


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
