"""Times in messages, which clients show in the reader's time zone."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from markdown_it.rules_inline import StateInline

from tertulia.markup.elements import element, escaped
from tertulia.markup.render_context import add_html

_TIME: Final = re.compile(r"<time:([^>\n]{1,100})>")
_UNIX: Final = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?")
_FORMS: Final = (
    "%b %d %Y, %I:%M %p",
    "%B %d %Y, %I:%M %p",
    "%b %d, %Y, %I:%M %p",
    "%B %d, %Y, %I:%M %p",
    "%b %d %Y %H:%M",
    "%B %d %Y %H:%M",
    "%b %d, %Y %H:%M",
    "%B %d, %Y %H:%M",
    "%d %b %Y %H:%M",
    "%d %B %Y %H:%M",
    "%Y/%m/%d %H:%M",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%Y/%m/%d",
)
"""Accepted formats beside ISO 8601 and that of mails."""


def time(state: StateInline, silent: bool) -> bool:
    """`<time:2024-03-07T15:00:00-08:00>`. Anything that is not a time is text."""
    if state.src[state.pos] != "<":
        return False
    match = _TIME.match(state.src, state.pos, state.posMax)
    at = None if match is None else read(match[1])
    if match is None or at is None:
        return False
    if not silent:
        stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
        add_html(state, element("time", {"datetime": stamp}, escaped(match[1])))
    state.pos = match.end()
    return True


def read(text: str) -> datetime | None:
    """The time that the text names, in UTC; None for anything else."""
    text = text.strip()
    try:
        if _UNIX.fullmatch(text):
            return datetime.fromtimestamp(float(text), UTC)
        found = _written(text)
        return None if found is None else _utc(found)
    except (ValueError, OverflowError, OSError):
        return None


def _utc(found: datetime) -> datetime:
    """The time in UTC, which is assumed where no zone is named."""
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _written(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in _FORMS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
