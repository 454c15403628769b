"""Events of invitations. They have no content: clients ask for the list again."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, TypeVar

from tertulia.domain import permissions
from tertulia.model import changes
from tertulia.model.users import Role
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen

InvitationChange = changes.InvitationsMade | changes.InvitationSentAgain | changes.InvitationsEnded
C = TypeVar("C", changes.InvitationsMade, changes.InvitationSentAgain, changes.InvitationsEnded)


class InvitesChangedEvent(Event, kw_only=True, tag="invites_changed"):
    """The list of invitations is another one now."""


class InvitationsChangedProjection(Projection[C]):
    """To administrators, and to those who made the invitations."""

    def __init__(self, of: type[C]) -> None:
        self.of = of

    def audience(self, state: State, change: C) -> Collection[int]:
        by_role = state.users.active_by_role
        administrators = by_role.keys(Role.OWNER) | by_role.keys(Role.ADMINISTRATOR)
        return administrators.union(_inviters(change))

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        concerned = permissions.is_administrator(
            context.state, viewer.user
        ) or viewer.user.id in _inviters(change)
        return () if concerned else None

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        yield InvitesChangedEvent()


def _inviters(change: InvitationChange) -> Collection[int]:
    match change:
        case changes.InvitationsMade(invitations=invitations):
            return {invitation.inviter_id for invitation in invitations}
        case changes.InvitationSentAgain(inviter_id=inviter_id):
            return (inviter_id,)
        case changes.InvitationsEnded(inviter_ids=inviter_ids):
            return inviter_ids


PROJECTIONS: Final[Projections] = (
    InvitationsChangedProjection(changes.InvitationsMade),
    InvitationsChangedProjection(changes.InvitationSentAgain),
    InvitationsChangedProjection(changes.InvitationsEnded),
    unseen(changes.InvitationsRedacted),  # Invitations that are over are listed nowhere.
    # A confirmation concerns whoever has its address, and no account yet.
    unseen(changes.ConfirmationAsked),
    unseen(changes.ConfirmationsEnded),
)
