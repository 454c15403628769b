"""Events of invitations. They have no content: clients ask for the list again."""

from collections.abc import Collection, Hashable, Iterable
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import invitations as invitations
from tertulia.domain.accounts.invitations import (
    MAX_MINUTES,
    MAX_WELCOME_TEXT,
    InvitationDelivery,
    InvitationTerms,
)
from tertulia.model import changes
from tertulia.model.errors import InvitationFailed
from tertulia.model.invitations import Invitation
from tertulia.model.users import Role
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen
from tertulia.wire.http.parameters import Int, NoParams, Params, Path, Reads
from tertulia.wire.http.routing import ApiResponse, Call

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


RoleNumber = Literal[100, 200, 300, 400, 600]


def _welcome_text(text: str) -> str | None:
    if text == "null":
        return None
    if "\0" in text:
        raise ValueError("it contains a null byte")
    if len(text) > MAX_WELCOME_TEXT:
        raise ValueError(f"it is longer than {MAX_WELCOME_TEXT} characters")
    return text


class _Terms(Params, kw_only=True, frozen=True):
    """What people are invited to."""

    invite_expires_in_minutes: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MINUTES)] | UnsetType | None,
        Meta(description="null: never. By default what the server is set to: 14400."),
    ] = UNSET
    invite_as: Annotated[
        RoleNumber, Meta(description="The role: not one with more rights than the caller's.")
    ] = 400
    group_ids: Annotated[
        list[Int], Meta(description="Groups to which the caller may add members.")
    ] = []
    include_realm_default_subscriptions: Annotated[
        bool, Meta(description="Whether to subscribe to the default channels of then.")
    ] = False
    welcome_message_custom_text: Annotated[
        str | None,
        Reads(
            _welcome_text,
            {"type": "string", "maxLength": MAX_WELCOME_TEXT},
            text=True,
        ),
        Meta(
            description="Markdown in the Welcome Bot's message. null: the organization's; empty:"
            " none. From those who are no administrators, as null."
        ),
    ] = None


class SendInvites(_Terms, kw_only=True, frozen=True):
    """Whom to invite by mail, and to what."""

    invitee_emails: Annotated[
        str, Meta(description="Addresses, separated by commas or line breaks.")
    ]
    stream_ids: Annotated[
        list[Int],
        Meta(description="Default channels, and those to which the caller may subscribe others."),
    ]
    notify_referrer_on_join: Annotated[
        bool, Meta(description="Whether the caller gets a direct message when somebody joins.")
    ] = True


class CreateInviteLink(_Terms, kw_only=True, frozen=True):
    """To what whoever has the link is invited."""

    stream_ids: Annotated[
        list[Int],
        Meta(description="Default channels, and those to which the caller may subscribe others."),
    ] = []


def _terms(call: Call, params: SendInvites | CreateInviteLink) -> InvitationTerms:
    minutes = params.invite_expires_in_minutes
    return InvitationTerms(
        minutes=call.node.config.invitation_link_validity_minutes
        if isinstance(minutes, UnsetType)
        else minutes,
        role=Role(params.invite_as),
        channel_ids=tuple(params.stream_ids),
        group_ids=tuple(params.group_ids),
        default_channels=params.include_realm_default_subscriptions,
        tell_inviter=isinstance(params, SendInvites) and params.notify_referrer_on_join,
        welcome_text=params.welcome_message_custom_text,
    )


def _post(call: Call) -> InvitationDelivery:
    node = call.node
    return InvitationDelivery(
        site=node.config.mail_site,
        nonce=node.vault.nonce(),
        per_day=node.config.invitations_per_day,
    )


# Making


async def send_invites(call: Call, params: SendInvites) -> ApiResponse:
    """Invite people by mail. Those who have an account are left out, and named in an error
    although the others are invited."""
    outcome = await call.submit(
        invitations.invite, params.invitee_emails, _terms(call, params), _post(call)
    )
    if outcome.not_invited or outcome.daily_limit_reached:
        raise InvitationFailed(
            errors=[(one.address, one.reason, one.is_deactivated) for one in outcome.not_invited],
            sent=bool(outcome.invited),
            daily_limit_reached=outcome.daily_limit_reached,
        )
    return ApiResponse()


class InviteLink(ApiResponse, kw_only=True):
    """The link."""

    invite_link: str


async def create_invite_link(call: Call, params: CreateInviteLink) -> InviteLink:
    """Make a link with which anybody who has it can join, any number of times."""
    made: Invitation = await call.submit(
        invitations.create_link, _terms(call, params), call.node.vault.nonce()
    )
    return InviteLink(invite_link=call.node.links.invitation(call.url, made))


# Looking after them


class InviteObject(Struct, kw_only=True):
    """An invitation with which somebody can still join."""

    id: int
    invited_by_user_id: int
    invited: int
    expiry_date: int | None
    """null: never."""
    invited_as: int
    email: str | UnsetType = UNSET
    """Of invitations by mail."""
    link_url: str | UnsetType = UNSET
    """Of links; where the server sends no mail, of every invitation."""
    notify_referrer_on_join: bool
    is_multiuse: bool


class Invites(ApiResponse, kw_only=True):
    """Invitations in the order in which they were made."""

    invites: list[InviteObject]
    mail_is_sent: bool
    """Whether the server sends mails. Otherwise the inviters hand the links over themselves."""


async def get_invites(call: Call, params: NoParams) -> Invites:
    """The invitations that the caller can revoke: administrators those of everybody (but those to
    a role with more rights than theirs), others their own."""
    found = invitations.visible_to(call.state, call.user, call.now)
    return Invites(
        invites=[_shown(call, invitation) for invitation in found],
        mail_is_sent=bool(call.node.config.smtp_host),
    )


def _shown(call: Call, invitation: Invitation) -> InviteObject:
    reusable = invitation.is_reusable
    # Without mails an address is confirmed by nothing: whoever invites vouches for it.
    is_handed_over = reusable or not call.node.config.smtp_host
    return InviteObject(
        id=invitation.id,
        invited_by_user_id=invitation.inviter_id,
        invited=invitation.created_at,
        expiry_date=invitation.expires_at,
        invited_as=invitation.role.value,
        email=UNSET if invitation.address is None else invitation.address,
        link_url=call.node.links.invitation(call.url, invitation) if is_handed_over else UNSET,
        notify_referrer_on_join=invitation.tell_inviter,
        is_multiuse=reusable,
    )


class OneInvite(Params, kw_only=True, frozen=True):
    """An invitation."""

    invite_id: Annotated[Int, Path()]


async def revoke_email_invite(call: Call, params: OneInvite) -> ApiResponse:
    """Revoke an invitation by mail."""
    await call.submit(invitations.revoke, params.invite_id)
    return ApiResponse()


async def revoke_invite_link(call: Call, params: OneInvite) -> ApiResponse:
    """Revoke a link."""
    await call.submit(invitations.revoke_link, params.invite_id)
    return ApiResponse()


async def resend_email_invite(call: Call, params: OneInvite) -> ApiResponse:
    """Mail an invitation once more."""
    await call.submit(invitations.resend, params.invite_id, _post(call))
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    InvitationsChangedProjection(changes.InvitationsMade),
    InvitationsChangedProjection(changes.InvitationSentAgain),
    InvitationsChangedProjection(changes.InvitationsEnded),
    unseen(changes.InvitationsRedacted),
    unseen(changes.ConfirmationAsked),
    unseen(changes.ConfirmationsEnded),
)
