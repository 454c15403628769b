"""Custom views in the left sidebar, and onboarding steps."""

from typing import Final

from tertulia.domain import names
from tertulia.model.changes import (
    NavigationViewAdded,
    NavigationViewChanged,
    NavigationViewRemoved,
    OnboardingStepTaken,
)
from tertulia.model.errors import NoSuchView, Refused
from tertulia.model.personal import NavigationView
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

BUILT_IN: Final = frozenset(
    {
        "inbox",
        "recent",
        "feed",
        "drafts",
        "scheduled",
        "reminders",
        "narrow/has/reaction/sender/me",
        "narrow/is/mentioned",
        "narrow/is/starred",
    }
)
"""Views that everyone has, with fixed names."""
MAX_VIEWS = 1000
"""Per account."""


def add(
    context: CommandContext, fragment: str, is_pinned: bool, name: str | None
) -> Decision[None]:
    """Add a view, or settings for a built-in view.

    Raise Refused for a taken fragment or name, a name for a built-in view, a missing name for other
    views, and for empty or long texts.
    """
    state, actor = context.state, context.actor
    address = names.view_fragment(fragment)
    called = _name(context, address, name)
    if address not in BUILT_IN and called is None:
        raise Refused("Enter a name for this view.")
    if _find(context, address) is not None:
        raise Refused("You already have a view with this address.")
    if state.navigation_views.of_user.count(actor.id) >= MAX_VIEWS:
        raise Refused(f"You can have at most {MAX_VIEWS} views.")
    view = NavigationView(
        id=state.navigation_views.next_id(),
        user_id=actor.id,
        fragment=address,
        is_pinned=is_pinned,
        name=called,
    )
    return Decision(None, (NavigationViewAdded(user_id=actor.id, view=view),))


def change(
    context: CommandContext, fragment: str, is_pinned: bool | None, name: str | None
) -> Decision[None]:
    """Pin, unpin, or rename a view; None keeps the current value. Raise NoSuchView, or Refused as
    `add`."""
    if name is not None:
        _check_nameable(fragment.strip())
    view = _own(context, fragment)
    called = _name(context, view.fragment, name)
    changed = NavigationViewChanged(
        user_id=context.actor.id,
        view_id=view.id,
        fragment=view.fragment,
        is_pinned=None if is_pinned == view.is_pinned else is_pinned,
        name=None if called == view.name else called,
    )
    if changed.is_pinned is None and changed.name is None:
        return Decision(None)
    return Decision(None, (changed,))


def remove(context: CommandContext, fragment: str) -> Decision[None]:
    """Remove a view, or the settings of a built-in view. Raise NoSuchView."""
    view = _own(context, fragment)
    removed = NavigationViewRemoved(
        user_id=context.actor.id, view_id=view.id, fragment=view.fragment
    )
    return Decision(None, (removed,))


def _find(context: CommandContext, fragment: str) -> NavigationView | None:
    views = context.state.navigation_views.of_user[context.actor.id]
    return next((view for view in views if view.fragment == fragment), None)


def _own(context: CommandContext, fragment: str) -> NavigationView:
    view = _find(context, fragment.strip())
    if view is None:
        raise NoSuchView(fragment)
    return view


def _name(context: CommandContext, fragment: str, name: str | None) -> str | None:
    """Return the normalized name. Raise Refused if the view can't have it."""
    if name is None:
        return None
    _check_nameable(fragment)
    called = names.view_name(name)
    others = context.state.navigation_views.of_user[context.actor.id]
    if any(view.name == called and view.fragment != fragment for view in others):
        raise Refused("You already have a view with this name.")
    return called


def _check_nameable(fragment: str) -> None:
    if fragment in BUILT_IN:
        raise Refused("You can't rename a built-in view.")


STEPS: Final = (
    "visibility_policy_banner",
    "intro_inbox_view_modal",
    "intro_recent_view_modal",
    "first_stream_created_banner",
    "jump_to_conversation_banner",
    "non_interleaved_view_messages_fading",
    "interleaved_view_messages_fading",
    "intro_resolve_topic",
    "intro_go_to_conversation_tooltip",
    # An extension: the web client asks once whether Enter sends messages.
    "enter_sends",
)
"""Onboarding steps by the names that clients use."""


def onboarding_steps_left(state: State, user_id: int) -> list[str]:
    """Return the steps that the user hasn't seen."""
    seen = {step.name for step in state.onboarding_steps.of_user[user_id]}
    return [name for name in STEPS if name not in seen]


def complete_onboarding_step(context: CommandContext, name: str) -> Decision[None]:
    """Mark the step as seen. Raise Refused if it doesn't exist."""
    if name not in STEPS:
        raise Refused("This onboarding step doesn't exist.")
    user_id = context.actor.id
    if name not in onboarding_steps_left(context.state, user_id):
        return Decision(None)
    return Decision(None, (OnboardingStepTaken(user_id=user_id, name=name),))
