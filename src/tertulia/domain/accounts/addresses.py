"""Addresses: which the organization admits, and how an account gets another one."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import account_emails, admission, users
from tertulia.model.changes import AnyChange, ConfirmationAsked, ConfirmationsEnded
from tertulia.model.errors import Refused
from tertulia.model.invitations import Confirmation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
CONFIRMATION_SECONDS: Final = DAY
"""How long the link of a confirmation opens something."""
CONFIRMATIONS_PER_ACCOUNT: Final = 5
"""Changes of address that one account may ask for in that time."""


def usable(state: State, text: str) -> str:
    """The address in its final form. Refused when an account has it, or none may have it here."""
    address = users.free_address(state, text)
    admission.require_allowed_email(state, address)
    return address


def expired(state: State, now: float) -> tuple[int, ...]:
    """The confirmations whose time is over."""
    return tuple(sorted(c.id for c in state.confirmations if c.expires_at <= now))


def confirmation_changes(
    context: CommandContext, confirmation: Confirmation, ended: Iterable[int] = ()
) -> list[AnyChange]:
    """The changes that begin a confirmation, and end these (`ended`) and expired ones."""
    over = sorted({*ended, *expired(context.state, context.now)})
    cleared = [ConfirmationsEnded(confirmation_ids=tuple(over))] if over else []
    return [*cleared, ConfirmationAsked(confirmation=confirmation)]


class NewAddress(Struct, frozen=True, kw_only=True):
    """An address that somebody wants to have. The link that is mailed there is made with the nonce
    and leads to the site."""

    text: str
    nonce: str
    site: str


def ask_change(context: CommandContext, new: NewAddress) -> Decision[None]:
    """Ask for another address for the actor's own account. It is changed when the link is used
    that is mailed to the new address. Nothing happens where the account has it.

    Refused for bots, where the organization does not let people change their address (its
    administrators may), for addresses that cannot be one, are in use or not admitted, and when it
    was asked for too often.
    """
    state, actor, text = context.state, context.actor, new.text
    if actor.is_bot:
        raise Refused("You can't change a bot's email address this way.")
    if text.strip() == actor.address:
        return Decision(None)
    _require_changeable(state, actor)
    if text.strip().casefold() == actor.address.casefold():
        return Decision(None, users.changed(context, actor, {"address": text.strip()}))
    address = usable(state, text)
    mine = [c for c in state.confirmations if c.user_id == actor.id and c.expires_at > context.now]
    if len(mine) >= CONFIRMATIONS_PER_ACCOUNT:
        raise Refused("You've requested too many address changes today. Try again tomorrow.")
    confirmation = Confirmation(
        id=state.confirmations.next_id(),
        address=address,
        user_id=actor.id,
        expires_at=int(context.now) + CONFIRMATION_SECONDS,
        nonce=new.nonce,
    )
    mail = Mail(kind=MailKind.CONFIRM_ADDRESS, to=address, site=new.site, about=confirmation.id)
    return Decision(None, confirmation_changes(context, confirmation), [mail])


def _require_changeable(state: State, user: User) -> None:
    if state.realm.email_changes_disabled and not permissions.is_administrator(state, user):
        raise Refused("This organization doesn't allow people to change their email address.")


def confirm_change(context: CommandContext, confirmation_id: int, site: str) -> Decision[User]:
    """Give the account the address that its confirmation was for, as the one who has the link
    that was mailed there. Returns the account as it was; a mail goes to its old address.

    Refused where the confirmation is over, the account is deactivated or may not be changed any
    more, or the address has been taken since.
    """
    state = context.state
    confirmation = state.confirmations.get(confirmation_id)
    user = None if confirmation is None else state.users.get(confirmation.user_id)
    if confirmation is None or user is None or confirmation.expires_at <= context.now:
        raise Refused("This link is no longer valid.")
    if not user.is_active:
        raise Refused("This account is deactivated.")
    _require_changeable(state, user)
    address = usable(state, confirmation.address)
    others = (c for c in state.confirmations if c.address.casefold() != address.casefold())
    mine = tuple(sorted(c.id for c in others if c.user_id == user.id))
    changes: list[AnyChange] = [
        *([ConfirmationsEnded(confirmation_ids=mine)] if mine else []),
        *admission.invitations_accepted(state, address),
        *users.changed(context, user, {"address": address}),
    ]
    mails = account_emails.emails_to(MailKind.ADDRESS_CHANGED, user, site, address=address)
    return Decision(user, changes, mails)
