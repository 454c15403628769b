"""People make their own accounts: with an invitation, or by signing up."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts import account_emails, addresses, admission, users
from tertulia.domain.channels import subscription_changes
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import BotMessage, Render
from tertulia.domain.messages.sending import ToPeople
from tertulia.domain.organization.realms import WELCOME_BOT
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.invitations import Confirmation, Invitation, InvitationStatus
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Credential, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

SIGN_UPS: Final = "signups"
"""The topic where new accounts are announced."""
MAX_WAITING: Final = 1000
"""Addresses without an account that may wait for their confirmation at a time."""
PAUSE: Final = 60
"""Seconds between two mails to the same of them."""


class LinkExpired(Refused):
    """The link opens nothing any more; the sentence says why."""


class HasAccount(Refused):
    """There is an account with the address already."""


class NewMember(Struct, frozen=True, kw_only=True):
    """Somebody who joins. `credential` is for nobody yet (`user_id` 0)."""

    address: str
    full_name: str
    credential: Credential
    site: str
    """The server's address, for the mail that welcomes them."""


# Asking for an address to be confirmed


def sign_up(
    context: CommandContext, text: str, invitation_id: int | None, nonce: str, site: str
) -> Decision[None]:
    """Have a link mailed to the address with which its owner can join: by a reusable invitation,
    or without one where anybody may sign up. Whether it has an account is told to the address
    alone.

    Over where the invitation is, or one is needed; Refused for what is no address or not admitted,
    and where too many are waiting.
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
        return Decision(None)  # There is a mail under way already.
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
    """Over where nobody can join without an invitation."""
    if state.realm.invite_required:
        raise LinkExpired("You need an invitation to join this organization.")


def usable_invitation(state: State, invitation_id: int, now: float) -> Invitation:
    """The invitation, if somebody can join with it. Over with the reason otherwise."""
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
    """The confirmation, if somebody can join with it. Over with the reason otherwise."""
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
    """Join with an invitation. With one for an address, the account has that address, whatever
    was asked for.

    Over where nobody can join with it; HasAccount; Refused for an address or a name that cannot be
    one or is not admitted.
    """
    invitation = usable_invitation(context.state, invitation_id, context.now)
    address = invitation.address or joining.address
    return _join(context, invitation, address, joining, render)


def join_confirmed(
    context: CommandContext, confirmation_id: int, joining: NewMember, render: Render
) -> Decision[User]:
    """Join with an address that was confirmed. Raises as `join_invited`."""
    state = context.state
    confirmation = usable_confirmation(state, confirmation_id, context.now)
    invitation = (
        None
        if confirmation.invitation_id is None
        else state.invitations[confirmation.invitation_id]
    )
    return _join(context, invitation, confirmation.address, joining, render)


def check(state: State, address: str, full_name: str) -> None:
    """Refuse what joining would refuse now: before the password is hashed, which is expensive."""
    if state.user_with_address(address) is not None:
        raise HasAccount("An account with this email address already exists.")
    addresses.usable(state, address)
    users.free_name(state, full_name)


def _join(
    context: CommandContext,
    invitation: Invitation | None,
    address: str,
    joining: NewMember,
    render: Render,
) -> Decision[User]:
    state = context.state
    check(state, address, joining.full_name)
    user = users.new_account(
        context, address, joining.full_name, *([invitation.role] if invitation else [])
    )
    # An invitation gives what its inviter has to give now, whatever it was then.
    groups = (
        [group.id for group in admission.groups_of_invitation(state, invitation)]
        if invitation
        else []
    )
    changes: list[AnyChange] = [
        users.created(state, user, joining.credential, groups),
        *subscription_changes.initial(state, user, _channels(state, invitation)),
        *admission.invitations_accepted(state, user.address),
        *bot_messages.post(context, list(_notices(state, user, invitation)), render, users=[user]),
    ]
    mails = (
        account_emails.emails_to(MailKind.WELCOME, user, joining.site)
        if state.realm.send_welcome_emails
        else ()
    )
    return Decision(user, changes, mails)


def _channels(state: State, invitation: Invitation | None) -> list[Channel]:
    """Those that the invitation names, and the default ones where it says so."""
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


def _notices(state: State, user: User, invitation: Invitation | None) -> Iterable[BotMessage]:
    """The welcome; a word to the inviter; an announcement where the organization wants one."""
    yield BotMessage(ToPeople(frozenset({user.id})), _welcome_of(state, invitation), WELCOME_BOT)
    who = bot_messages.person(user)
    if invitation is not None and invitation.tell_inviter:
        inviter = state.users[invitation.inviter_id]
        if inviter.is_active:
            text = f"{who} has accepted your invitation and joined."
            yield BotMessage(ToPeople(frozenset({inviter.id})), text)
    board = state.channels.get(state.realm.signup_announcements_channel_id)
    if board is not None and not board.is_archived:
        yield bot_messages.in_channel(state, board, f"{who} has joined the organization.", SIGN_UPS)


def preview_welcome(context: CommandContext, render: Render, text: str) -> Decision[int]:
    """Send the actor, an administrator, what the Welcome Bot would say to newcomers with this text.
    Returns the message's ID. Refused for one that is too long, or says nothing."""
    state, actor = context.state, context.actor
    permissions.require_administrator(state, actor)
    if not text.strip():
        raise Refused("Enter a text to test.")
    if len(text) > names.MAX_WELCOME_TEXT:
        raise Refused(f"The text can have at most {names.MAX_WELCOME_TEXT} characters.")
    notice = BotMessage(ToPeople(frozenset({actor.id})), _welcome(state, text), WELCOME_BOT)
    (sent,) = bot_messages.post(context, [notice], render)
    return Decision(sent.message.id, (sent,))


def _welcome_of(state: State, invitation: Invitation | None) -> str:
    own = None if invitation is None else invitation.welcome_text
    return _welcome(state, state.realm.welcome_message_custom_text if own is None else own)


def _welcome(state: State, more: str) -> str:
    text = (
        f"Welcome to **{state.realm.name}**! Messages are in channels, and each channel has topics:"
        " one for each conversation. Write to anybody directly as well, as I do to you."
    )
    return f"{text}\n\n{more}" if more.strip() else text


MAX_LENGTH: Final = 100
_JUDGED: Final = 24
"""Characters that are judged: it takes long for long texts that are made for it, and what is good
is so by then."""


class PasswordRules(Struct, frozen=True, kw_only=True):
    """What an installation asks of new passwords. Those that people have go on."""

    min_length: int
    min_guesses: int
    """Guesses that somebody would need who knows how people make up passwords; 0 for any."""

    def require(self, text: str, own: Iterable[str] = ()) -> str:
        """The password as it is. Refused for one that is too short, too long, or guessed too
        easily. `own` is what others know of its person: address, name, organization. None of these
        is a password, whatever the installation asks for.

        It computes for a quarter of a second at most, and so does not belong on the event loop.
        """
        if not self.min_length <= len(text) <= MAX_LENGTH:
            raise Refused(f"Passwords must have {self.min_length} to {MAX_LENGTH} characters.")
        own = tuple(own)
        if not _cores(text).isdisjoint(core for one in own for core in _own_cores(one)):
            raise Refused(
                "This password is too easy to guess because it's your email address, your"
                " name, or the organization's name. Use a few words that have nothing to do"
                " with these."
            )
        if self.min_guesses and _guesses(text, own) < self.min_guesses:
            raise Refused(
                "This password is too easy to guess. Use a few words that don't belong together."
            )
        return text


def _own_cores(own: str) -> set[str]:
    """Those of a name, or of an address and of what is before its @."""
    return _cores(own) | _cores(own.partition("@")[0])


def _cores(text: str) -> set[str]:
    """The text's letters and digits, whatever their case and width, and the same without digits at
    its ends."""
    plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
    return {plain, plain.strip("0123456789")} - {""}


def _guesses(text: str, own: Iterable[str]) -> int:
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]  # Its lists take a moment.

    # Full-width letters are typed as others are guessed.
    forms = {text[:_JUDGED], unicodedata.normalize("NFKC", text[:_JUDGED])[:_JUDGED]}
    known = sorted(_known(own))
    return min(int(zxcvbn(form, user_inputs=known)["guesses"]) for form in forms)


def _known(own: Iterable[str]) -> set[str]:
    """The texts and the words in them."""
    words: set[str] = set()
    for text in own:
        plain = text.casefold()[:200]
        for mark in "@.-_+":
            plain = plain.replace(mark, " ")
        words |= {*text[:200].split("@"), text[:200], plain.replace(" ", ""), *plain.split()}
    return {word for word in words if len(word) > 2}
