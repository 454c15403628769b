"""Emails to imported people, with links to set their first password."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tertulia.domain import permissions
from tertulia.domain.accounts.invitations import sent_today
from tertulia.log.log import Log
from tertulia.model.changes import InvitationSentAgain
from tertulia.model.errors import Refused
from tertulia.model.imports import PLACEHOLDER_HOST
from tertulia.model.invitations import Invitation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Credential, User
from tertulia.service.links import Links
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store import installation
from tertulia.store.notes import FactSet
from tertulia.store.store import READ_SECONDS

VALID_SECONDS: Final = 14 * 86400
"""How long the links are valid. Then people use `Forgot password?`."""
BATCH_SIZE: Final = 500
REMINDED_SECONDS: Final = 86400
"""Minimum time between two emails to the same person."""
FACT: Final = "import_invited"
"""The key of the fact with the last emails: when they were queued (UNIX seconds), and the highest
ID of an account that got one. IDs ascend, so accounts with higher ones come from a later import."""
_Mark = Callable[[Credential], str]


async def invite(log: Log, site: str, per_day: int, actor_id: int | None = None) -> int:
    """Email everyone who was imported and hasn't signed in yet, at most once in 24 hours, and
    everyone whose imported invitation wasn't emailed, within the limit for all invitations
    (`per_day`). Return the number of emails. `site` is the server's URL, and `actor_id` the owner,
    or None for the server's operator.

    Raise Refused if people can't sign in with passwords, or if all of them got an email in the last
    24 hours, and NotPermitted for anyone except owners.
    """
    stored = await log.store.read_log(lambda c: installation.value(c, FACT), READ_SECONDS)
    at, highest = msgspec.json.decode(stored or "[0, 0]", type=tuple[int, int])
    now = int(log.clock())
    emailed = highest if now - at < REMINDED_SECONDS else 0
    waiting = [user.id for user in people_to_invite(log.state)]
    people = [user_id for user_id in waiting if user_id > emailed]
    for first in range(0, len(people), BATCH_SIZE):
        some = people[first : first + BATCH_SIZE]
        # The rest of an interrupted round keeps its time.
        fact = (at if emailed else now, max(emailed, some[-1]))
        note = FactSet(FACT, msgspec.json.encode(fact).decode())
        await log.submit(actor_id, _mailed, (some, site, Links.password_mark), notes=[note])
    sent = 0
    invitations = [invitation.id for invitation in _unsent(log.state, log.clock())]
    for first in range(0, len(invitations), BATCH_SIZE):
        some = invitations[first : first + BATCH_SIZE]
        sent += await log.submit(actor_id, _sent, (some, site, per_day))
    if waiting and not people and not sent:
        raise Refused(
            "Everyone who was imported got an email in the last 24 hours. Send a reminder tomorrow."
        )
    return len(people) + sent


def people_to_invite(state: State) -> list[User]:
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
        invitation
        for invitation in state.invitations
        if not invitation.sent_at and invitation.address and invitation.is_open(now)
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
            " sign in with its other sign-in methods."
        )
    still = {user.id for user in people_to_invite(state)}
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


def _sent(context: CommandContext, given: tuple[Sequence[int], str, int]) -> Decision[int]:
    _check(context)
    invitation_ids, site, per_day = given
    left = max(0, per_day - sent_today(context.state, context.now))
    open_ = {invitation.id: invitation for invitation in _unsent(context.state, context.now)}
    chosen = [open_[invitation_id] for invitation_id in invitation_ids if invitation_id in open_][
        :left
    ]
    now = int(context.now)
    return Decision(
        len(chosen),
        [
            InvitationSentAgain(
                invitation_id=invitation.id, inviter_id=invitation.inviter_id, at=now
            )
            for invitation in chosen
        ],
        [
            Mail(
                kind=MailKind.INVITATION,
                to=invitation.address or "",
                site=site,
                about=invitation.id,
            )
            for invitation in chosen
        ],
    )
