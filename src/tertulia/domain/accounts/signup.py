"""Joining with an invitation or by signing up, and password rules."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts import addresses, admission, users
from tertulia.domain.channels import subscription_changes
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import BotMessage, Render
from tertulia.domain.messages.sending import ToPeople
from tertulia.domain.organization.lifecycle import WELCOME_BOT
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.invitations import Confirmation, Invitation, InvitationStatus
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Credential, Role, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

SIGN_UPS: Final = "signups"
"""The topic in which new members are announced."""
MAX_WAITING: Final = 1000
"""The most addresses without an account that can wait for confirmation."""
PAUSE: Final = 60
"""The minimum time between two emails to the same address, in seconds."""


class LinkExpired(Refused):
    """The link no longer works. The message says why."""


class HasAccount(Refused):
    """The address already has an account."""


class NewMember(Struct, frozen=True, kw_only=True):
    """A person who joins. `credential.user_id` is still 0."""

    address: str
    full_name: str
    credential: Credential
    site: str
    """The server's URL, for the welcome email."""
    role: Role | None = None
    """The role from an identity provider; None for the invitation's role, or a member's."""
    group_ids: tuple[int, ...] = ()
    """Groups from an identity provider, in addition to the invitation's groups."""


# Confirming an address


def sign_up(
    context: CommandContext, text: str, invitation_id: int | None, nonce: str, site: str
) -> Decision[None]:
    """Email the address a link for joining, with a reusable invitation or, if anyone can sign up,
    without one. Only the recipient learns whether the address has an account.

    Raise LinkExpired if the invitation has expired, or one is required; Refused for invalid or
    disallowed addresses, and if too many are waiting.
    """
    state = context.state
    if invitation_id is None:
        require_open(state)
    else:
        usable_invitation(state, invitation_id, context.now)
    address = names.address(text)
    admission.require_allowed_email(state, address)
    if state.user_with_address(address) is not None:
        return Decision(None, mails=[Mail(kind=MailKind.HAS_ACCOUNT, to=address, site=site)])
    waiting = [c for c in state.confirmations if c.user_id is None and c.expires_at > context.now]
    if len(waiting) >= MAX_WAITING:
        raise Refused("Too many people are signing up right now. Try again tomorrow.")
    same = [c for c in waiting if c.address.casefold() == address.casefold()]
    if any(c.expires_at - addresses.CONFIRMATION_SECONDS > context.now - PAUSE for c in same):
        return Decision(None)  # An email was just sent.
    confirmation = Confirmation(
        id=state.confirmations.next_id(),
        address=address,
        invitation_id=invitation_id,
        expires_at=int(context.now) + addresses.CONFIRMATION_SECONDS,
        nonce=nonce,
    )
    mail = Mail(kind=MailKind.CONFIRM_SIGN_UP, to=address, site=site, about=confirmation.id)
    return Decision(
        None, addresses.confirmation_changes(context, confirmation, [c.id for c in same]), [mail]
    )


def require_open(state: State) -> None:
    """Raise LinkExpired if joining requires an invitation."""
    if state.realm.invite_required:
        raise LinkExpired("You need an invitation to join this organization.")


def usable_invitation(state: State, invitation_id: int, now: float) -> Invitation:
    """Return the invitation. Raise LinkExpired, with the reason, if nobody can join with it."""
    invitation = state.invitations.get(invitation_id)
    if invitation is None:
        raise LinkExpired("This invitation doesn't exist.")
    match invitation.status:
        case InvitationStatus.USED:
            raise LinkExpired("This invitation has already been used.")
        case InvitationStatus.REVOKED:
            raise LinkExpired("This invitation has been revoked.")
    if not invitation.is_open(now):
        raise LinkExpired("This invitation has expired. Ask for a new one.")
    if not admission.is_usable(state, invitation, now):
        raise LinkExpired("This invitation has been revoked.")
    return invitation


def usable_confirmation(state: State, confirmation_id: int, now: float) -> Confirmation:
    """Return the confirmation. Raise LinkExpired, with the reason, if nobody can join with it."""
    confirmation = state.confirmations.get(confirmation_id)
    if confirmation is None or confirmation.user_id is not None:
        raise LinkExpired("This link has already been used, or a newer one was sent to you.")
    if confirmation.expires_at <= now:
        raise LinkExpired("This link has expired.")
    if confirmation.invitation_id is None:
        require_open(state)
    else:
        usable_invitation(state, confirmation.invitation_id, now)
    return confirmation


# Joining


def join_invited(
    context: CommandContext, invitation_id: int, joining: NewMember, render: Render
) -> Decision[User]:
    """Join with an invitation. An invitation for an address gives the account that address. Raise
    LinkExpired; HasAccount; Refused for invalid or disallowed addresses and names."""
    invitation = usable_invitation(context.state, invitation_id, context.now)
    address = invitation.address or joining.address
    return join(context, invitation, address, joining, render)


def join_confirmed(
    context: CommandContext, confirmation_id: int, joining: NewMember, render: Render
) -> Decision[User]:
    """Join with a confirmed address. Raise as `join_invited`."""
    state = context.state
    confirmation = usable_confirmation(state, confirmation_id, context.now)
    invitation = (
        None
        if confirmation.invitation_id is None
        else state.invitations[confirmation.invitation_id]
    )
    return join(context, invitation, confirmation.address, joining, render)


def check(state: State, address: str, full_name: str) -> None:
    """Raise the errors of joining, without hashing the password, which is expensive."""
    if state.user_with_address(address) is not None:
        raise HasAccount("An account with this email address already exists.")
    addresses.allowed_address(state, address)
    users.free_name(state, full_name)


def join(
    context: CommandContext,
    invitation: Invitation | None,
    address: str,
    joining: NewMember,
    render: Render,
) -> Decision[User]:
    """Create the account of a person whose address is confirmed, with what the invitation grants.
    The caller has checked that the person can join. Raise as `check`."""
    state = context.state
    check(state, address, joining.full_name)
    role = joining.role or (invitation.role if invitation else Role.MEMBER)
    user = users.new_account(context, address, joining.full_name, role)
    if invitation is not None:
        # An invitation grants only what its inviter can grant now.
        invited = admission.groups_of_invitation(state, invitation)
        user = msgspec.structs.replace(
            user,
            invited_role=invitation.role,
            invited_group_ids=tuple(sorted(group.id for group in invited)),
        )
    groups = sorted({*user.invited_group_ids, *joining.group_ids})
    channels = _channels(state, invitation)
    changes: list[AnyChange] = [
        users.creation_change(state, user, joining.credential, groups),
        *subscription_changes.initial_subscription_changes(state, user, channels),
        *admission.invitation_acceptance_changes(state, user.address),
        *bot_messages.posting_changes(
            context,
            list(_bot_messages(state, user, invitation)),
            render,
            users=[user],
            joined=channels,
        ),
    ]
    mails = (
        users.emails_to(MailKind.WELCOME, user, joining.site)
        if state.realm.send_welcome_emails
        else ()
    )
    return Decision(user, changes, mails)


def _channels(state: State, invitation: Invitation | None) -> list[Channel]:
    """Return the invitation's channels, and the default ones if it includes them."""
    named = (
        set()
        if invitation is None
        else {channel.id for channel in admission.channels_of_invitation(state, invitation)}
    )
    with_defaults = invitation is None or invitation.default_channels
    return [
        channel
        for channel in state.channels
        if not channel.is_archived
        and (channel.id in named or (with_defaults and channel.is_default))
    ]


def _bot_messages(state: State, user: User, invitation: Invitation | None) -> Iterable[BotMessage]:
    """Yield the welcome message, one to the inviter, and an announcement, as configured."""
    yield _welcome(state, user, _welcome_text(state, invitation))
    words, who = bot_messages.texts_for(state), bot_messages.silent_mention(user)
    if invitation is not None and invitation.tell_inviter:
        inviter = state.users[invitation.inviter_id]
        if inviter.is_active:
            text = bot_messages.texts_for(state, inviter.id)("invitation_accepted", person=who)
            yield bot_messages.to_user(inviter.id, text)
    board = state.channels.get(state.realm.signup_announcements_channel_id)
    if board is not None and not board.is_archived:
        text = words("joined", person=who)
        yield bot_messages.channel_message(state, board, text, SIGN_UPS, about_id=user.id)


def preview_welcome(context: CommandContext, render: Render, text: str) -> Decision[int]:
    """Send the actor, who must be an administrator, the welcome message with this text. Return the
    message's ID. Raise Refused for an empty or long text."""
    state, actor = context.state, context.actor
    permissions.require_administrator(state, actor)
    if not text.strip():
        raise Refused("Enter a text to test.")
    if len(text) > names.MAX_WELCOME_TEXT:
        raise Refused(f"The text can have at most {names.MAX_WELCOME_TEXT} characters.")
    (sent,) = bot_messages.posting_changes(context, [_welcome(state, actor, text)], render)
    return Decision(sent.message.id, (sent,))


def _welcome_text(state: State, invitation: Invitation | None) -> str:
    welcome = None if invitation is None else invitation.welcome_text
    return state.realm.welcome_message_custom_text if welcome is None else welcome


def _welcome(state: State, user: User, more: str) -> BotMessage:
    words = bot_messages.texts_for(state, user.id)
    text = words("welcome_message", organization=state.realm.name)
    content = f"{text}\n\n{more}" if more.strip() else text
    return BotMessage(ToPeople(frozenset({user.id})), content, WELCOME_BOT)


MAX_LENGTH: Final = 100
_JUDGED: Final = 24
"""The number of characters that are rated. Rating long texts takes long, and this many characters
are enough to be secure."""


class PasswordRules(Struct, frozen=True, kw_only=True):
    """The server's rules for new passwords. Existing passwords stay valid."""

    min_length: int
    min_guesses: int
    """The minimum number of guesses needed by an attacker who knows common patterns; 0 turns the
    rule off."""
    is_breached: Callable[[str], bool] = lambda text: False
    """Returns whether a password is in a list of breached passwords."""

    def require(self, text: str, personal: Iterable[str] = ()) -> str:
        """Return the password. Raise Refused if it's too short, too long, or too easy to guess.

        `personal` is what others know about the person: address, name, organization. A password
        made of one of these is never allowed. Takes up to 250 ms, so don't call it on the event
        loop.
        """
        if not self.min_length <= len(text) <= MAX_LENGTH:
            raise Refused(f"Passwords must have {self.min_length} to {MAX_LENGTH} characters.")
        personal = tuple(personal)
        if not _cores(text).isdisjoint(core for text in personal for core in _own_cores(text)):
            raise Refused(
                "This password is too easy to guess because it's your email address, your"
                " name, or the organization's name. Use a few words that have nothing to do"
                " with these."
            )
        if self.min_guesses and _guesses(text, personal) < self.min_guesses:
            raise Refused(
                "This password is too easy to guess. Use a few words that don't belong together."
            )
        if self.is_breached(text):
            raise Refused(
                "This password is in lists of stolen passwords, so attackers try it. Use another"
                " one here, and wherever else you use it."
            )
        return text


def _own_cores(word: str) -> set[str]:
    """Return the cores of a name, or of an email address and its local part."""
    return _cores(word) | _cores(word.partition("@")[0])


def _cores(text: str) -> set[str]:
    """Return the text's letters and digits, ignoring case and width, with and without leading and
    trailing digits."""
    plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
    return {plain, plain.strip("0123456789")} - {""}


def _guesses(text: str, personal: Iterable[str]) -> int:
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]  # Slow to import.

    # Full-width letters are as easy to guess as others.
    forms = {text[:_JUDGED], unicodedata.normalize("NFKC", text[:_JUDGED])[:_JUDGED]}
    known = sorted(_known(personal))
    return min(int(zxcvbn(form, user_inputs=known)["guesses"]) for form in forms)


def _known(personal: Iterable[str]) -> set[str]:
    """Return the texts and each of their words."""
    words: set[str] = set()
    for text in personal:
        plain = text.casefold()[:200]
        for mark in "@.-_+":
            plain = plain.replace(mark, " ")
        words |= {*text[:200].split("@"), text[:200], plain.replace(" ", ""), *plain.split()}
    return {word for word in words if len(word) > 2}
