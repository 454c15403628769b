"""Invitations, and confirmations of addresses."""

from tertulia.model.changes.base import Change
from tertulia.model.invitations import Confirmation, Invitation, InvitationStatus


class InvitationsMade(Change, frozen=True, tag="invitations_made"):
    """One account made invitations."""

    invitations: tuple[Invitation, ...]


class InvitationSentAgain(Change, frozen=True, tag="invitation_sent_again"):
    """The mail with an invitation is sent once more. `at` is in UNIX seconds."""

    invitation_id: int
    inviter_id: int
    at: int


class InvitationsEnded(Change, frozen=True, tag="invitations_ended"):
    """Nobody can join with these invitations any more. `inviter_ids` are those who made them."""

    invitation_ids: tuple[int, ...]
    inviter_ids: tuple[int, ...]
    status: InvitationStatus


class InvitationsRedacted(Change, frozen=True, tag="invitations_redacted"):
    """The addresses of these invitations, which have ended, were erased."""

    invitation_ids: tuple[int, ...]


class ConfirmationAsked(Change, frozen=True, tag="confirmation_asked"):
    """The confirmation of an address was requested."""

    confirmation: Confirmation


class ConfirmationsEnded(Change, frozen=True, tag="confirmations_ended"):
    """Confirmations were used, replaced, or expired."""

    confirmation_ids: tuple[int, ...]
