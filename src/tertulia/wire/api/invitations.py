"""Invitations by email and invitation links."""

from collections.abc import Collection, Hashable
from typing import Annotated, Final, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import invitations as invitations
from tertulia.domain.accounts.access_keys import KeyCapability
from tertulia.domain.accounts.invitations import (
    MAX_MINUTES,
    MAX_WELCOME_TEXT,
    InvitationDelivery,
    InvitationTerms,
    InvitationUpdate,
)
from tertulia.model import changes
from tertulia.model.errors import InvitationFailed
from tertulia.model.invitations import Invitation
from tertulia.model.users import Role
from tertulia.service import qr_codes
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    projected,
    unseen,
)
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params, Reads
from tertulia.wire.http.routing import ApiResponse, Call

InvitationChange = (
    changes.InvitationsMade
    | changes.InvitationChanged
    | changes.InvitationSentAgain
    | changes.InvitationsEnded
)
C = TypeVar("C", bound=InvitationChange)


class InvitesChangedEvent(Event, kw_only=True, tag="invites_changed"):
    """The list of invitations changed. Fetch it again."""


def _inviters(change: InvitationChange) -> Collection[int]:
    match change:
        case changes.InvitationsMade(invitations=invitations):
            return {invitation.inviter_id for invitation in invitations}
        case changes.InvitationChanged(invitation=invitation):
            return (invitation.inviter_id,)
        case changes.InvitationSentAgain(inviter_id=inviter_id):
            return (inviter_id,)
        case changes.InvitationsEnded(inviter_ids=inviter_ids):
            return inviter_ids


def _audience(state: State, change: InvitationChange) -> Collection[int]:
    """Return the administrators and the people who created the invitations."""
    by_role = state.users.active_by_role
    administrators = by_role.keys(Role.OWNER) | by_role.keys(Role.ADMINISTRATOR)
    return administrators.union(_inviters(change))


def _view(context: ProjectionContext, change: InvitationChange, viewer: Viewer) -> Hashable | None:
    is_administrator = permissions.is_administrator(context.state, viewer.user)
    return () if is_administrator or viewer.user.id in _inviters(change) else None


def _invites_changed(of: type[C]) -> Projection[C]:
    return projected(of, _view, lambda *_: (InvitesChangedEvent(),), audience=_audience)


RoleNumber = Literal[100, 200, 300, 400, 600]


def _welcome_text(text: str) -> str | None:
    if text == "null":
        return None
    if "\0" in text:
        raise ValueError("it contains a null byte")
    if len(text) > MAX_WELCOME_TEXT:
        raise ValueError(f"it is longer than {MAX_WELCOME_TEXT} characters")
    return text


WELCOME_TEXT: Final = Reads(
    _welcome_text, {"type": "string", "maxLength": MAX_WELCOME_TEXT}, text=True
)


class _Terms(Params, kw_only=True, frozen=True):
    invite_expires_in_minutes: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MINUTES)] | UnsetType | None,
        Doc("Null for no expiration. By default, the server's setting (14400 unless changed)."),
    ] = UNSET
    invite_as: Annotated[
        RoleNumber, Doc("The role of the new users. It can't have more rights than yours.")
    ] = 400
    group_ids: Annotated[list[Int], Doc("Groups that you can add members to.")] = []
    include_realm_default_subscriptions: Annotated[
        bool,
        Doc(
            "Whether to subscribe new users to the channels that are default channels when they"
            " join."
        ),
    ] = False
    welcome_message_custom_text: Annotated[
        str | None,
        WELCOME_TEXT,
        Doc(
            "Markdown for the Welcome Bot's message. Null for the organization's text, empty for"
            " none. Ignored unless you are an administrator."
        ),
    ] = None


class SendInvites(_Terms, kw_only=True, frozen=True):
    invitee_emails: Annotated[str, Doc("Email addresses, separated by commas or line breaks.")]
    stream_ids: Annotated[
        list[Int], Doc("Default channels, and channels that you can subscribe others to.")
    ]
    notify_referrer_on_join: Annotated[
        bool, Doc("Whether you get a direct message when someone joins.")
    ] = True


class CreateInviteLink(_Terms, kw_only=True, frozen=True):
    stream_ids: Annotated[
        list[Int], Doc("Default channels, and channels that you can subscribe others to.")
    ] = []


class UpdateInviteLink(Params, kw_only=True, frozen=True):
    invite_id: IntPath
    invite_expires_in_minutes: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MINUTES)] | UnsetType | None,
        Doc("Minutes from now. Null for no expiration."),
    ] = UNSET
    invite_as: Annotated[
        RoleNumber | UnsetType,
        Doc("It can't have more rights than you, or than the person who created the link."),
    ] = UNSET
    stream_ids: Annotated[
        list[Int] | UnsetType,
        Doc("Default channels, and channels that you can subscribe others to."),
    ] = UNSET
    group_ids: Annotated[list[Int] | UnsetType, Doc("Groups that you can add members to.")] = UNSET
    include_realm_default_subscriptions: bool | UnsetType = UNSET
    welcome_message_custom_text: Annotated[
        str | UnsetType | None,
        WELCOME_TEXT,
        Doc("As when creating a link. Only administrators can change it."),
    ] = UNSET


def _role(call: Call, number: int) -> Role:
    role = Role(number)
    if role <= Role.ADMINISTRATOR:
        # The account could do things that the access key can't, and outlive the key.
        call.require_key(KeyCapability.ACCOUNT)
    return role


def _terms(call: Call, params: SendInvites | CreateInviteLink) -> InvitationTerms:
    role = _role(call, params.invite_as)
    minutes = params.invite_expires_in_minutes
    return InvitationTerms(
        minutes=call.node.config.invitation_link_validity_minutes
        if isinstance(minutes, UnsetType)
        else minutes,
        role=role,
        channel_ids=tuple(params.stream_ids),
        group_ids=tuple(params.group_ids),
        default_channels=params.include_realm_default_subscriptions,
        tell_inviter=isinstance(params, SendInvites) and params.notify_referrer_on_join,
        welcome_text=params.welcome_message_custom_text,
    )


def _delivery(call: Call) -> InvitationDelivery:
    node = call.node
    return InvitationDelivery(
        site=node.config.mail_site,
        nonce=node.vault.nonce(),
        per_day=node.config.invitations_per_day,
    )


async def send_invites(call: Call, params: SendInvites) -> None:
    """Invite people by email.

    Addresses that already have an account are skipped and listed in an error, even though the
    others are invited.
    """
    outcome = await call.submit(
        invitations.invite, params.invitee_emails, _terms(call, params), _delivery(call)
    )
    if outcome.not_invited or outcome.daily_limit_reached:
        raise InvitationFailed(
            errors=[
                (not_invited.address, not_invited.reason, not_invited.is_deactivated)
                for not_invited in outcome.not_invited
            ],
            sent=bool(outcome.invited),
            daily_limit_reached=outcome.daily_limit_reached,
        )


class InviteLinkResponse(ApiResponse, kw_only=True):
    """Create an invitation link. Anyone who has it can use it to join, any number of times."""

    invite_link: str
    qr_code: Annotated[str, Doc("The link's QR code, as a `data:` URL of an SVG image.")]


async def create_invite_link(call: Call, params: CreateInviteLink) -> InviteLinkResponse:
    """Create an invitation link that anyone who has it can join with, any number of times."""
    invitation: Invitation = await call.submit(
        invitations.create_link, _terms(call, params), call.node.vault.nonce()
    )
    link = call.node.links.invitation(call.url, invitation)
    return InviteLinkResponse(invite_link=link, qr_code=qr_codes.data_url(link))


class InviteObject(Struct, kw_only=True):
    """An invitation that can still be used."""

    id: int
    invited_by_user_id: int
    invited: int
    expiry_date: int | None
    """Null if the invitation doesn't expire."""
    invited_as: int
    email: str | UnsetType = UNSET
    """Only for invitations by email."""
    link_url: str | UnsetType = UNSET
    """Only for links or, if the server doesn't send email, for all invitations."""
    notify_referrer_on_join: bool
    is_multiuse: bool


class InvitesResponse(ApiResponse, kw_only=True):
    """The invitations, oldest first."""

    invites: list[InviteObject]
    mail_is_sent: bool
    """Whether the server sends email. If not, inviters pass on the links themselves."""


async def get_invites(call: Call) -> InvitesResponse:
    """Get the invitations that you can revoke.

    Administrators get everyone's, except those for a role with more rights than theirs.
    """
    visible = invitations.visible_to(call.state, call.user, call.now)
    return InvitesResponse(
        invites=[_object(call, invitation) for invitation in visible],
        mail_is_sent=bool(call.node.config.smtp_host),
    )


def _object(call: Call, invitation: Invitation) -> InviteObject:
    reusable = invitation.is_reusable
    # Without email, no address is confirmed, so the inviter vouches for it.
    shows_link = reusable or not call.node.config.smtp_host
    return InviteObject(
        id=invitation.id,
        invited_by_user_id=invitation.inviter_id,
        invited=invitation.created_at,
        expiry_date=invitation.expires_at,
        invited_as=invitation.role.value,
        email=UNSET if invitation.address is None else invitation.address,
        link_url=call.node.links.invitation(call.url, invitation) if shows_link else UNSET,
        notify_referrer_on_join=invitation.tell_inviter,
        is_multiuse=reusable,
    )


async def update_invite_link(call: Call, params: UpdateInviteLink) -> None:
    """Change the terms of an invitation link, for people who haven't used it yet. The link stays
    the same. This endpoint is a Tertulia extension."""
    role, channels, groups = params.invite_as, params.stream_ids, params.group_ids
    new = InvitationUpdate(
        minutes=params.invite_expires_in_minutes,
        role=role if isinstance(role, UnsetType) else _role(call, role),
        channel_ids=channels if isinstance(channels, UnsetType) else tuple(channels),
        group_ids=groups if isinstance(groups, UnsetType) else tuple(groups),
        default_channels=params.include_realm_default_subscriptions,
        welcome_text=params.welcome_message_custom_text,
    )
    await call.submit(invitations.change_link, params.invite_id, new)


async def revoke_email_invite(call: Call, invite_id: IntPath) -> None:
    """Revoke an invitation by email."""
    await call.submit(invitations.revoke, invite_id)


async def revoke_invite_link(call: Call, invite_id: IntPath) -> None:
    """Revoke an invitation link."""
    await call.submit(invitations.revoke_link, invite_id)


async def resend_email_invite(call: Call, invite_id: IntPath) -> None:
    """Send an invitation email again."""
    await call.submit(invitations.resend, invite_id, _delivery(call))


PROJECTIONS: Final[Projections] = (
    _invites_changed(changes.InvitationsMade),
    _invites_changed(changes.InvitationChanged),
    _invites_changed(changes.InvitationSentAgain),
    _invites_changed(changes.InvitationsEnded),
    unseen(changes.InvitationsRedacted),
    unseen(changes.ConfirmationAsked),
    unseen(changes.ConfirmationsEnded),
)
