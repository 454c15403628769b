"""Emails to imported people, with links to set their first password."""

from collections.abc import Callable, Sequence
from typing import Final

from tertulia.domain import permissions
from tertulia.imports.accounts import PLACEHOLDER_HOST
from tertulia.log.log import Log
from tertulia.model.changes import InvitationSentAgain
from tertulia.model.errors import Refused
from tertulia.model.invitations import Invitation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Credential, User
from tertulia.service.links import Links
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

VALID_SECONDS: Final = 14 * 86400
"""How long the links are valid. Then people use `Forgot password?`."""
AT_ONCE: Final = 500
_Mark = Callable[[Credential], str]


async def invite(log: Log, site: str, actor_id: int | None = None) -> int:
    """Email everyone who was imported and hasn't signed in yet, and everyone whose imported
    invitation wasn't emailed. Return their number. `site` is the server's URL, and `actor_id` the
    owner, or None for the server's operator.

    Raise Refused if people can't sign in with passwords, and NotPermitted for others than owners.
    """
    people = [user.id for user in awaited(log.state)]
    for first in range(0, len(people), AT_ONCE):
        await log.submit(
            actor_id, _mailed, (people[first : first + AT_ONCE], site, Links.password_mark)
        )
    invitations = [one.id for one in _unsent(log.state, log.clock())]
    for first in range(0, len(invitations), AT_ONCE):
        await log.submit(actor_id, _sent, (invitations[first : first + AT_ONCE], site))
    return len(people) + len(invitations)


def awaited(state: State) -> list[User]:
    """Return the imported people who haven't signed in yet and can get emails."""
    return [
        user
        for user in state.users
        if user.joined_elsewhere
        and user.awaits_arrival
        and user.is_active
        and not user.is_bot
        and not user.is_placeholder
        and not user.address.endswith(f"@{PLACEHOLDER_HOST}")
    ]


def _unsent(state: State, now: float) -> list[Invitation]:
    return [
        one for one in state.invitations if not one.sent_at and one.address and one.is_open(now)
    ]


def _check(context: CommandContext) -> None:
    if context.actor_id is not None:
        permissions.require_owner(context.state, context.actor)


def _mailed(context: CommandContext, given: tuple[Sequence[int], str, _Mark]) -> Decision[None]:
    _check(context)
    user_ids, site, mark = given
    state = context.state
    if not state.realm.password_sign_in:
        raise Refused(
            "People can't sign in with passwords in this organization, so nobody was invited. They"
            " sign in as the organization's settings say."
        )
    still = {user.id for user in awaited(state)}
    mails = [
        Mail(
            kind=MailKind.ACCOUNT_IMPORTED,
            to=state.users[user_id].address,
            site=site,
            about=user_id,
            facts={
                "expires_at": str(int(context.now) + VALID_SECONDS),
                "mark": mark(state.credentials[user_id]),
            },
        )
        for user_id in user_ids
        if user_id in still
    ]
    return Decision(None, (), mails)


def _sent(context: CommandContext, given: tuple[Sequence[int], str]) -> Decision[None]:
    _check(context)
    invitation_ids, site = given
    open_ = {one.id: one for one in _unsent(context.state, context.now)}
    chosen = [open_[one] for one in invitation_ids if one in open_]
    now = int(context.now)
    return Decision(
        None,
        [
            InvitationSentAgain(invitation_id=one.id, inviter_id=one.inviter_id, at=now)
            for one in chosen
        ],
        [
            Mail(kind=MailKind.INVITATION, to=one.address or "", site=site, about=one.id)
            for one in chosen
        ],
    )
