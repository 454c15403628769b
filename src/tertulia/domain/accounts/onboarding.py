"""Hints for beginners, each of which a user sees once."""

from typing import Final

from tertulia.model.changes import OnboardingStepTaken
from tertulia.model.errors import Refused
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

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
    # Of this server alone: its web client asks once whether Enter is to send.
    "enter_sends",
)
"""The hints that clients know, by the names that they have there."""


def left(state: State, user_id: int) -> list[str]:
    """The hints that the user has not seen."""
    seen = {step.name for step in state.onboarding_steps.of_user[user_id]}
    return [name for name in STEPS if name not in seen]


def take(moment: Moment, name: str) -> Decision[None]:
    """The actor has seen the hint. Refused where there is none of that name."""
    if name not in STEPS:
        raise Refused("This onboarding step doesn't exist.")
    user_id = moment.actor.id
    if name not in left(moment.state, user_id):
        return Decision(None)
    return Decision(None, (OnboardingStepTaken(user_id=user_id, name=name),))
