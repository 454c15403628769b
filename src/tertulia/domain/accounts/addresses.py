"""Changing an account's email address, which is confirmed through a link sent to the new
address."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import admission, users
from tertulia.model.changes import AnyChange, ConfirmationAsked, ConfirmationsEnded
from tertulia.model.errors import Refused
from tertulia.model.invitations import Confirmation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
CONFIRMATION_SECONDS: Final = DAY
"""How long a confirmation link works."""
CONFIRMATIONS_PER_ACCOUNT: Final = 5
"""The number of address changes that an account can request within `CONFIRMATION_SECONDS`."""


def allowed_address(state: State, text: str) -> str:
    """Return the normalized address. Raise Refused if another account has it, or the organization
    doesn't allow it."""
    address = users.free_address(state, text)
    admission.require_allowed_email(state, address)
    return address


def expired_confirmations(state: State, now: float) -> tuple[int, ...]:
    """Return the IDs of expired confirmations."""
    return tuple(sorted(c.id for c in state.confirmations if c.expires_at <= now))


def confirmation_changes(
    context: CommandContext, confirmation: Confirmation, ended: Iterable[int] = ()
) -> list[AnyChange]:
    """Return the changes that add a confirmation, and remove expired ones and those in `ended`."""
    over = sorted({*ended, *expired_confirmations(context.state, context.now)})
    cleared = [ConfirmationsEnded(confirmation_ids=tuple(over))] if over else []
    return [*cleared, ConfirmationAsked(confirmation=confirmation)]


class NewAddress(Struct, frozen=True, kw_only=True):
    """A requested address. The link in the email is derived from `nonce` and leads to `site`."""

    text: str
    nonce: str
    site: str


def ask_change(context: CommandContext, new: NewAddress) -> Decision[None]:
    """Request a new address for the actor's account, and email a confirmation link to it.

    Raise Refused for bots, if the organization doesn't let people change their address
    (administrators always can), for invalid, taken, or disallowed addresses, and for too many
    requests.
    """
    state, actor, text = context.state, context.actor, new.text
    if actor.is_bot:
        raise Refused("You can't change a bot's email address this way.")
    if text.strip() == actor.address:
        return Decision(None)
    _require_changeable(state, actor)
    if text.strip().casefold() == actor.address.casefold():
        return Decision(None, users.account_changes(context, actor, {"address": text.strip()}))
    address = allowed_address(state, text)
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
    """Change an account's address to the confirmed one, and email the old address about it. Return
    the account as it was before.

    Raise Refused if the confirmation has expired, the account is deactivated or can no longer be
    changed, or the address is taken.
    """
    state = context.state
    confirmation = state.confirmations.get(confirmation_id)
    user = None if confirmation is None else state.users.get(confirmation.user_id)
    if confirmation is None or user is None or confirmation.expires_at <= context.now:
        raise Refused("This link is no longer valid.")
    if not user.is_active:
        raise Refused("This account is deactivated.")
    _require_changeable(state, user)
    address = allowed_address(state, confirmation.address)
    others = (c for c in state.confirmations if c.address.casefold() != address.casefold())
    mine = tuple(sorted(c.id for c in others if c.user_id == user.id))
    changes: list[AnyChange] = [
        *([ConfirmationsEnded(confirmation_ids=mine)] if mine else []),
        *admission.invitation_acceptance_changes(state, address),
        *users.account_changes(context, user, {"address": address}),
    ]
    mails = users.emails_to(MailKind.ADDRESS_CHANGED, user, site, address=address)
    return Decision(user, changes, mails)
