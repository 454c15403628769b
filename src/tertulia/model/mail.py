"""Mails that are to be sent."""

from enum import Enum
from typing import Final

from msgspec import Struct


class MailKind(Enum):
    """What a mail is for: it decides the words."""

    INVITATION = "invitation"
    """`about` is the invitation's ID."""
    CONFIRM_SIGN_UP = "confirm_sign_up"
    """`about` is the confirmation's ID."""
    HAS_ACCOUNT = "has_account"
    """Somebody wanted to sign up with an address that has an account."""
    CONFIRM_ADDRESS = "confirm_address"
    """`about` is the confirmation's ID."""
    ADDRESS_CHANGED = "address_changed"
    """To the address that was: `about` is the account's ID."""
    FORGOTTEN = "forgotten"
    """Somebody has forgotten a password. `about` is the account's ID; the facts say until when the
    link lasts, and which password it was."""
    CREDENTIAL_CHANGED = "credential_changed"
    """There is another password in place of a forgotten one. `about` is the account's ID."""
    NEW_SIGN_IN = "new_sign_in"
    """Somebody signed in from where nobody did before. `about` is the account's ID; the facts say
    when, with what program, and from which computer."""
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 (a kind of mail)
    """Somebody who knew the password has another one now. `about` is the account's ID."""
    KEY_CHANGED = "key_changed"
    """There is another API key. `about` is the account's ID."""
    DEACTIVATED = "deactivated"
    """The account was deactivated. `about` is its ID; the facts have the administrators' `comment`,
    which may be empty."""
    MISSED_MESSAGES = "missed_messages"
    """Messages of one conversation that concern somebody who has not read them. `about` is the
    account's ID; the facts say which they are."""
    DIGEST = "digest"
    """What somebody has missed in a week. `about` is the account's ID; the facts say since when."""
    WELCOME = "welcome"
    """To somebody who has just joined. `about` is the account's ID."""
    AGENT_KEY_MADE = "agent_key_made"
    """There is a key with which an agent acts for the account, whose ID `about` is. The facts say
    what the agent is called."""


OF_ACCOUNTS: Final = frozenset(
    {
        MailKind.ADDRESS_CHANGED,
        MailKind.FORGOTTEN,
        MailKind.CREDENTIAL_CHANGED,
        MailKind.NEW_SIGN_IN,
        MailKind.PASSWORD_CHANGED,
        MailKind.KEY_CHANGED,
        MailKind.DEACTIVATED,
        MailKind.MISSED_MESSAGES,
        MailKind.DIGEST,
        MailKind.WELCOME,
        MailKind.AGENT_KEY_MADE,
    }
)
"""Those that are about an account. They may be to an address that it had before."""


class Unsubscribing(Enum):
    """Mails that people can turn off by a link in them."""

    MISSED = "missed"
    """About messages that they have missed."""
    DIGEST = "digest"
    SIGN_IN = "login"
    """About new sign-ins."""


class Mail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A mail to be written and sent.

    It says what it is about and not what it says: the words, and any link that opens something, are
    made when it is sent. A mail about something that is over by then is not sent at all.
    """

    kind: MailKind
    to: str
    """The address."""
    site: str
    """The server's address, for links: `https://chat.example.com`."""
    about: int | None = None
    facts: dict[str, str] = {}
    """What cannot be looked up any more when it is sent."""
