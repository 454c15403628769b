"""Invitations and confirmations: folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()
FOLDS.puts(changes.InvitationsMade, "invitations", "invitations")


@FOLDS.of(changes.InvitationSentAgain)
def _(state: State, change: changes.InvitationSentAgain) -> None:
    invitation = state.invitations[change.invitation_id]
    state.invitations.put(revised(invitation, {"sent_at": (*invitation.sent_at, change.at)}))


@FOLDS.of(changes.InvitationsEnded)
def _(state: State, change: changes.InvitationsEnded) -> None:
    for invitation_id in change.invitation_ids:
        invitation = state.invitations[invitation_id]
        state.invitations.put(revised(invitation, {"status": change.status}))


@FOLDS.of(changes.InvitationsRedacted)
def _(state: State, change: changes.InvitationsRedacted) -> None:
    for invitation_id in change.invitation_ids:
        state.invitations.put(revised(state.invitations[invitation_id], {"address": ""}))


FOLDS.puts(changes.ConfirmationAsked, "confirmations", "confirmation")
FOLDS.removes(changes.ConfirmationsEnded, "confirmations", "confirmation_ids")
