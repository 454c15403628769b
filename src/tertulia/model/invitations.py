"""Invitations, and confirmations of email addresses."""

from enum import Enum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds
from tertulia.model.users import Role


class InvitationStatus(Enum):
    """The status of an invitation. Expiry isn't a status: see `expires_at`."""

    OPEN = "open"
    USED = "used"
    REVOKED = "revoked"


class Invitation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An invitation for one address, or a reusable link that anyone can use."""

    id: int
    inviter_id: int
    address: str | None = None
    """None for a reusable link."""
    created_at: UnixSeconds
    expires_at: int | None = None
    """UNIX seconds; None for never."""
    role: Role = Role.MEMBER
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    default_channels: bool = False
    """Whether the new account is subscribed to the default channels."""
    tell_inviter: bool = False
    welcome_text: str | None = None
    """The text added to the welcome message. None uses the organization's text; an empty string
    adds nothing."""
    nonce: str
    """A random number that the link is derived from."""
    sent_at: tuple[int, ...] = ()
    """The times when it was emailed, in UNIX seconds."""
    status: InvitationStatus = InvitationStatus.OPEN

    @property
    def is_reusable(self) -> bool:
        return self.address is None

    def is_open(self, now: float) -> bool:
        """Whether it can be used."""
        in_time = self.expires_at is None or now < self.expires_at
        return self.status is InvitationStatus.OPEN and in_time


class Confirmation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A confirmation of an email address. It becomes the address of the account `user_id` or,
    without one, of a new account, which joins through the reusable link `invitation_id` or, if
    anyone can, by signing up."""

    id: int
    address: str
    user_id: int | None = None
    invitation_id: int | None = None
    expires_at: UnixSeconds
    nonce: str
    """A random number that the link is derived from."""


class InvitationsMade(Change, frozen=True, tag="invitations_made"):
    invitations: tuple[Invitation, ...]


class InvitationChanged(Change, frozen=True, tag="invitation_changed"):
    """A reusable link has new terms."""

    invitation: Invitation


class InvitationSentAgain(Change, frozen=True, tag="invitation_sent_again"):
    """An invitation was emailed again. `at` is in UNIX seconds."""

    invitation_id: int
    inviter_id: int
    at: int


class InvitationsEnded(Change, frozen=True, tag="invitations_ended"):
    """Invitations ended. `inviter_ids` are their inviters."""

    invitation_ids: tuple[int, ...]
    inviter_ids: tuple[int, ...]
    status: InvitationStatus


class InvitationsRedacted(Change, frozen=True, tag="invitations_redacted"):
    """The addresses of ended invitations were erased."""

    invitation_ids: tuple[int, ...]


class ConfirmationAsked(Change, frozen=True, tag="confirmation_asked"):
    confirmation: Confirmation


class ConfirmationsEnded(Change, frozen=True, tag="confirmations_ended"):
    """Confirmations were used, replaced, or expired."""

    confirmation_ids: tuple[int, ...]
