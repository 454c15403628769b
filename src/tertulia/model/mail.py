"""Emails to send."""

from enum import Enum
from typing import Final

from msgspec import Struct


class MailKind(Enum):
    """The kinds of emails, which determine their texts."""

    INVITATION = "invitation"
    """`about` is the invitation's ID."""
    CONFIRM_SIGN_UP = "confirm_sign_up"
    """`about` is the confirmation's ID."""
    HAS_ACCOUNT = "has_account"
    """Someone tried to sign up with an address that has an account."""
    ACCOUNT_FOUND = "account_found"
    """Someone asked for the organization of this account. `about` is the account's ID."""
    CONFIRM_ADDRESS = "confirm_address"
    """`about` is the confirmation's ID."""
    ADDRESS_CHANGED = "address_changed"
    """To the old address. `about` is the account's ID."""
    FORGOTTEN = "forgotten"
    """To reset a password. `about` is the account's ID; the facts have the link's expiry and
    identify the password."""
    SIGN_IN_LINK = "sign_in_link"
    """To sign in. As `FORGOTTEN`; the facts also have the page to continue to."""
    ACCOUNT_IMPORTED = "account_imported"
    """To set the first password of an imported account. As `FORGOTTEN`."""
    CREDENTIAL_CHANGED = "credential_changed"
    """A password was reset. `about` is the account's ID."""
    NEW_SIGN_IN = "new_sign_in"
    """Someone signed in from a new location. `about` is the account's ID; the facts have the time,
    program, and IP address."""
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 (a kind of mail)
    """`about` is the account's ID."""
    KEY_CHANGED = "key_changed"
    """`about` is the account's ID."""
    DEACTIVATED = "deactivated"
    """`about` is the account's ID; the facts have the administrators' `comment`, which may be
    empty."""
    MISSED_MESSAGES = "missed_messages"
    """Unread messages of one conversation. `about` is the account's ID; the facts name the
    messages."""
    DIGEST = "digest"
    """The week's messages. `about` is the account's ID; the facts have the start of the period."""
    WELCOME = "welcome"
    """`about` is the account's ID."""
    AGENT_KEY_MADE = "agent_key_made"
    """`about` is the account's ID; the facts have the agent's name."""
    SECOND_FACTOR_ADDED = "second_factor_added"
    """`about` is the account's ID."""
    SECOND_FACTOR_REMOVED = "second_factor_removed"
    """`about` is the account's ID."""
    RECOVERY_CODES_REPLACED = "recovery_codes_replaced"
    """`about` is the account's ID."""
    RECOVERY_CODE_USED = "recovery_code_used"
    """`about` is the account's ID; the facts have the number of remaining codes."""
    CODES_GUESSED = "codes_guessed"
    """Someone who knows the password tried wrong codes. `about` is the account's ID."""


OF_ACCOUNTS: Final = frozenset(
    {
        MailKind.ADDRESS_CHANGED,
        MailKind.FORGOTTEN,
        MailKind.SIGN_IN_LINK,
        MailKind.ACCOUNT_IMPORTED,
        MailKind.CREDENTIAL_CHANGED,
        MailKind.NEW_SIGN_IN,
        MailKind.PASSWORD_CHANGED,
        MailKind.KEY_CHANGED,
        MailKind.DEACTIVATED,
        MailKind.MISSED_MESSAGES,
        MailKind.DIGEST,
        MailKind.WELCOME,
        MailKind.AGENT_KEY_MADE,
        MailKind.SECOND_FACTOR_ADDED,
        MailKind.SECOND_FACTOR_REMOVED,
        MailKind.RECOVERY_CODES_REPLACED,
        MailKind.RECOVERY_CODE_USED,
        MailKind.CODES_GUESSED,
    }
)
"""Kinds about an account. They may be sent to its previous address."""


class Unsubscribing(Enum):
    """Emails that people can unsubscribe from by a link."""

    MISSED = "missed"
    """Emails about missed messages."""
    DIGEST = "digest"
    SIGN_IN = "login"
    """Emails about new sign-ins."""


class Mail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An email to render and send. It refers to its subject matter; the text and its links are made
    when it's sent. It isn't sent if the matter has ended by then."""

    kind: MailKind
    to: str
    """The email address."""
    site: str
    """The server's URL for links: `https://chat.example.com`."""
    about: int | None = None
    facts: dict[str, str] = {}
    """Data that can't be looked up when the email is sent."""
