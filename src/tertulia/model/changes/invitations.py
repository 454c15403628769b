"""Invitations, and addresses that are to be confirmed."""

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
    """Whom these invitations, which are over, were for is not known any more."""

    invitation_ids: tuple[int, ...]


class ConfirmationAsked(Change, frozen=True, tag="confirmation_asked"):
    """An address is to be confirmed."""

    confirmation: Confirmation


class ConfirmationsEnded(Change, frozen=True, tag="confirmations_ended"):
    """These were used, replaced, or left until their time was over."""

    confirmation_ids: tuple[int, ...]
