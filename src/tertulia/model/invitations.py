"""How people come to an organization: invitations, and addresses that are to be confirmed."""

from enum import Enum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.users import Role


class InvitationStatus(Enum):
    """The status of an invitation. Expiry is not stored as one: see `expires_at`."""

    OPEN = "open"
    USED = "used"
    REVOKED = "revoked"


class Invitation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An invitation of one address; without an address, a link that anybody may use who has it."""

    id: int
    inviter_id: int
    address: str | None = None
    """None for a link that can be used again and again."""
    created_at: int
    """UNIX seconds."""
    expires_at: int | None = None
    """UNIX seconds; None is never."""
    role: Role = Role.MEMBER
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    default_channels: bool = False
    """Whether the new account is subscribed to the default channels of the moment when it joins."""
    tell_inviter: bool = False
    welcome_text: str | None = None
    """None is the organization's; empty is none."""
    nonce: str
    """Random: a part of what the link is made of."""
    sent_at: tuple[int, ...] = ()
    """When mails with it were requested, in UNIX seconds."""
    status: InvitationStatus = InvitationStatus.OPEN

    @property
    def is_reusable(self) -> bool:
        return self.address is None

    def is_open(self, now: float) -> bool:
        """Whether somebody can join with it."""
        in_time = self.expires_at is None or now < self.expires_at
        return self.status is InvitationStatus.OPEN and in_time


class Confirmation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An address that somebody says is theirs, until the link that was mailed to it is used.

    With `user_id` it is to be that account's new address. Without, an account is to be made for it:
    by the reusable link `invitation_id`, or where anybody may sign up.
    """

    id: int
    address: str
    user_id: int | None = None
    invitation_id: int | None = None
    expires_at: int
    """UNIX seconds."""
    nonce: str
    """Random: a part of what the link is made of."""


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
