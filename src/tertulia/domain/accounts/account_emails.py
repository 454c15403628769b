"""Emails to people about changes of their accounts, including those that others made."""

from typing import Final

from msgspec import Struct

from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision

_NO_MAIL: Final = (".invalid", ".example")
"""Domains that get no email: of the system's bots, and of the demo."""
JUST_JOINED: Final = 60
"""Seconds after joining in which people get no email about signing in."""


class SignInLocation(Struct, frozen=True, kw_only=True):
    """Where someone signed in to an account from for the first time."""

    site: str
    """The server's URL."""
    address: str
    """The client's IP address."""
    agent: str
    """The client's user agent."""


def emails_to(kind: MailKind, user: User, site: str, **facts: str) -> list[Mail]:
    """Return the email to the account's present address; none for bots and impossible addresses."""
    if user.is_bot or user.address.casefold().endswith(_NO_MAIL):
        return []
    return [Mail(kind=kind, to=user.address, site=site, about=user.id, facts=facts)]


def sign_in_emails(context: CommandContext, place: SignInLocation | None) -> list[Mail]:
    """Return the email about the actor's sign-in; none if the location is known (None), right after
    joining, and if their settings say so."""
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
    """Email the actor that a program signed in."""
    return Decision(None, (), sign_in_emails(context, place))
