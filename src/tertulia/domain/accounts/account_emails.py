"""Mails to people about changes of their accounts, which somebody else may have made."""

from typing import Final

from msgspec import Struct

from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision

_NO_MAIL: Final = (".invalid", ".example")
"""Domains that nobody has: of the system's bots, and of demonstrations."""
JUST_JOINED: Final = 60
"""Seconds after joining in which nobody gets a mail about signing in."""


class SignInLocation(Struct, frozen=True, kw_only=True):
    """Where somebody signs in to an account that was never signed in to from there before."""

    site: str
    """The server's address."""
    address: str
    """That of their computer."""
    agent: str
    """The browser or program as it calls itself."""


def emails_to(kind: MailKind, user: User, site: str, **facts: str) -> list[Mail]:
    """The mail to the account's present address; none to bots and to impossible addresses."""
    if user.is_bot or user.address.casefold().endswith(_NO_MAIL):
        return []
    return [Mail(kind=kind, to=user.address, site=site, about=user.id, facts=facts)]


def sign_in_emails(context: CommandContext, place: SignInLocation | None) -> list[Mail]:
    """The mail about the actor's signing in; none where the place is known (None), right after
    joining, and where the person's settings say so."""
    user, now = context.actor, context.now
    if place is None or user.awaits_arrival or now - user.joined_at < JUST_JOINED:
        return []
    if not context.state.settings[user.id].enable_login_emails:
        return []
    agent = "".join(filter(str.isprintable, place.agent))[:100]
    return emails_to(
        MailKind.NEW_SIGN_IN, user, place.site, at=str(int(now)), address=place.address, agent=agent
    )


def email_new_sign_in(context: CommandContext, place: SignInLocation) -> Decision[None]:
    """Send the actor a mail that a program signed in."""
    return Decision(None, (), sign_in_emails(context, place))
