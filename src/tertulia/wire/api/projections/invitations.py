"""Events of invitations. They have no content: clients ask for the list again."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, TypeVar

from tertulia.domain import permissions
from tertulia.model import changes
from tertulia.model.users import Role
from tertulia.state.organization import State
from tertulia.wire.api.events import Event, Projection, ProjectionContext, Unseen, Viewer

C = TypeVar("C", changes.InvitationsMade, changes.InvitationSentAgain, changes.InvitationsEnded)


class InvitesChangedEvent(Event, kw_only=True, tag="invites_changed"):
    """The list of invitations is another one now."""


class _Changed(Projection[C]):
    """To administrators, and to those who made the invitations."""

    def audience(self, state: State, change: C) -> Collection[int]:
        administrators = state.active_by_role[Role.OWNER] | state.active_by_role[Role.ADMINISTRATOR]
        return administrators.union(_inviters(change))

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        concerned = permissions.is_administrator(
            context.state, viewer.user
        ) or viewer.user.id in _inviters(change)
        return () if concerned else None

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        yield InvitesChangedEvent()


def _inviters(
    change: changes.InvitationsMade | changes.InvitationSentAgain | changes.InvitationsEnded,
) -> Collection[int]:
    match change:
        case changes.InvitationsMade(invitations=invitations):
            return {invitation.inviter_id for invitation in invitations}
        case changes.InvitationSentAgain(inviter_id=inviter_id):
            return (inviter_id,)
        case changes.InvitationsEnded(inviter_ids=inviter_ids):
            return inviter_ids


class InvitationsMadeProjection(_Changed[changes.InvitationsMade]):
    """New invitations."""

    of = changes.InvitationsMade


class InvitationSentAgainProjection(_Changed[changes.InvitationSentAgain]):
    """An invitation was mailed once more."""

    of = changes.InvitationSentAgain


class InvitationsEndedProjection(_Changed[changes.InvitationsEnded]):
    """Invitations were used or revoked."""

    of = changes.InvitationsEnded


class InvitationsRedactedProjection(Unseen):
    """Nobody sees invitations that are over."""

    of = changes.InvitationsRedacted


class ConfirmationAskedProjection(Unseen):
    """Nobody hears of it but whoever has the address."""

    of = changes.ConfirmationAsked


class ConfirmationsEndedProjection(Unseen):
    """Nobody heard of it."""

    of = changes.ConfirmationsEnded
