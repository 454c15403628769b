"""Views in the navigation sidebar, and onboarding hints."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.accounts import navigation
from tertulia.model import changes
from tertulia.model.personal import NavigationView
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc, TextPath
from tertulia.wire.http.routing import ApiResponse, Call


class NavigationViewObject(Struct, kw_only=True):
    """A view in the left sidebar. Built-in views have no name."""

    fragment: str
    is_pinned: bool
    name: str | UnsetType = UNSET


def view_object(view: NavigationView) -> NavigationViewObject:
    return NavigationViewObject(
        fragment=view.fragment,
        is_pinned=view.is_pinned,
        name=UNSET if view.name is None else view.name,
    )


class NavigationViewAddEvent(Event, kw_only=True, tag="navigation_view"):
    """You added a view, or settings of a built-in one."""

    op: str = "add"
    navigation_view: NavigationViewObject


class NavigationViewUpdate(Struct, kw_only=True):
    """The changed fields of a view."""

    name: str | UnsetType = UNSET
    is_pinned: bool | UnsetType = UNSET


class NavigationViewUpdateEvent(Event, kw_only=True, tag="navigation_view"):
    """You changed a view."""

    op: str = "update"
    fragment: str
    data: NavigationViewUpdate


class NavigationViewRemoveEvent(Event, kw_only=True, tag="navigation_view"):
    """You removed a view."""

    op: str = "remove"
    fragment: str


class OnboardingStepObject(Struct, kw_only=True):
    """An onboarding hint that the user hasn't seen yet."""

    type: str
    name: str


def onboarding_objects(names: list[str]) -> list[OnboardingStepObject]:
    return [OnboardingStepObject(type="one_time_notice", name=name) for name in names]


class OnboardingStepsEvent(Event, kw_only=True, tag="onboarding_steps"):
    """The user has seen a hint. Contains the remaining ones."""

    onboarding_steps: list[OnboardingStepObject]


_PINNED = Doc("Whether to show the view in the sidebar instead of its menu.")
_NAME = Doc("For custom views only.")


class NavigationViewsResponse(ApiResponse, kw_only=True):
    """Your views, oldest first."""

    navigation_views: list[NavigationViewObject]


async def get_navigation_views(call: Call) -> NavigationViewsResponse:
    """Get your navigation views."""
    views = call.state.navigation_views.of_user[call.user.id]
    return NavigationViewsResponse(navigation_views=[view_object(view) for view in views])


async def add_navigation_view(
    call: Call,
    fragment: Annotated[str, Doc("The part of the view's URL after the #.")],
    is_pinned: Annotated[bool, _PINNED],
    name: Annotated[str | None, _NAME] = None,
) -> None:
    """Add a custom view, or settings of a built-in one."""
    await call.submit(navigation.add, fragment, is_pinned, name)


async def update_navigation_view(
    call: Call,
    fragment: TextPath,
    is_pinned: Annotated[bool | None, _PINNED] = None,
    name: Annotated[str | None, _NAME] = None,
) -> None:
    """Rename, pin, or unpin a view."""
    await call.submit(navigation.change, fragment, is_pinned, name)


async def remove_navigation_view(call: Call, fragment: TextPath) -> None:
    """Remove a custom view, or the settings of a built-in one."""
    await call.submit(navigation.remove, fragment)


def onboarding_section(context: SectionContext) -> dict[str, Any]:
    """The onboarding steps that the viewer hasn't seen. There's no video tour."""
    viewer = context.viewer
    left = [] if viewer is None else navigation.onboarding_steps_left(context.state, viewer.id)
    return {"onboarding_steps": onboarding_objects(left), "navigation_tour_video_url": None}


SECTIONS: Final[Sections] = {
    ("onboarding_steps",): onboarding_section,
    ("navigation_views",): lambda context: {
        "navigation_views": [
            view_object(view) for view in context.state.navigation_views.of_user[context.viewer_id]
        ]
    },
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
            data=NavigationViewUpdate(
                name=UNSET if change.name is None else change.name,
                is_pinned=UNSET if change.is_pinned is None else change.is_pinned,
            ),
        ),
    ),
    to_owner(
        changes.NavigationViewRemoved,
        lambda _, change: NavigationViewRemoveEvent(fragment=change.fragment),
    ),
    to_owner(
        changes.OnboardingStepTaken,
        lambda context, change: OnboardingStepsEvent(
            onboarding_steps=onboarding_objects(
                navigation.onboarding_steps_left(context.state, change.user_id)
            )
        ),
    ),
)
