"""What a language has to say."""

from collections.abc import Mapping

from msgspec import Struct


class Letter(Struct, frozen=True):
    """A mail about an account. What stands in braces is put in when it is written: the
    `organization`, its `site`, the account's `name`, and what the mail is about."""

    subject: str
    said: str
    ending: str
    button: str = ""


class Said(Struct, frozen=True, kw_only=True):
    """Everything in one language: the same names, other texts (a test compares them)."""

    hello: str
    hello_there: str
    """To somebody whose name is not known."""
    or_open: str
    """Before the address to which a letter's button leads."""
    months: tuple[str, ...]
    day: str
    """A moment in UTC, of its `year`, `month` (a name), `day` and `time`."""
    letters: Mapping[str, Letter]
    conversations: Mapping[str, str]
    """Mails that show messages, and digests."""
    pushes: Mapping[str, str]
    pages: Mapping[str, str]
    """What is seen without the web client: signing in, joining, errors."""
    refusals: Mapping[str, str]
    """What those pages often refuse, by the English sentence."""
