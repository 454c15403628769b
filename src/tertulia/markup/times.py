"""Times in messages, which clients show in the reader's time zone."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo

from markdown_it.rules_inline import StateInline

from tertulia.markup.context import add_html
from tertulia.markup.elements import element, escaped

_TIME: Final = re.compile(r"<time:([^>\n]{1,100})>")
_UNIX: Final = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?")
_DAYS: Final = ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d", "%Y-%m-%d")
_HOURS: Final = ("", " %I:%M %p", " %I %p", " %H:%M", " %H:%M:%S", " %I:%M:%S %p")
_FORMS: Final = tuple(day + hour for day, hour in product(_DAYS, _HOURS))
"""Accepted formats without commas, in addition to ISO 8601 and the format of emails."""
_ORDINAL: Final = re.compile(r"\b([0-9]{1,2})(?:st|nd|rd|th)\b(?: of\b)?", re.IGNORECASE)
_NOISE: Final = re.compile(
    r",|\bat\b|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b", re.IGNORECASE
)
_HALF: Final = re.compile(r"(?<=[0-9])\s*([ap])\.?m\b\.?", re.IGNORECASE)
_ZONE: Final = re.compile(
    r"(?P<rest>.*[0-9apm])\s+(?P<zone>[A-Za-z][A-Za-z_]*(?:/[A-Za-z_+-]+[0-9]*)*)", re.IGNORECASE
)
_ABBREVIATED: Final[Mapping[str, float]] = {
    "utc": 0,
    "gmt": 0,
    "z": 0,
    "wet": 0,
    "west": 1,
    "bst": 1,
    "cet": 1,
    "cest": 2,
    "eet": 2,
    "eest": 3,
    "msk": 3,
    "ist": 5.5,
    "hkt": 8,
    "sgt": 8,
    "jst": 9,
    "kst": 9,
    "aest": 10,
    "aedt": 11,
    "acst": 9.5,
    "acdt": 10.5,
    "awst": 8,
    "nzst": 12,
    "nzdt": 13,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "akst": -9,
    "akdt": -8,
    "hst": -10,
    "ast": -4,
    "adt": -3,
    "nst": -3.5,
    "ndt": -2.5,
    "brt": -3,
    "art": -3,
    "sast": 2,
}
"""Time zone abbreviations, in hours ahead of UTC."""


def time(state: StateInline, silent: bool) -> bool:
    """Parse `<time:2024-03-07T15:00:00-08:00>`. An invalid time stays as text."""
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
    """Parse a time. Return it in UTC, or None."""
    text = text.strip()
    try:
        if _UNIX.fullmatch(text):
            return datetime.fromtimestamp(float(text), UTC)
        result = _written(text)
        if result is None and (zoned := _ZONE.fullmatch(text)) is not None:
            zone, result = _zone(zoned["zone"]), _written(zoned["rest"])
            if zone is None or result is None or result.tzinfo is not None:
                return None
            result = result.replace(tzinfo=zone)
        return _utc(_of_mail(text) if result is None else result)
    except (ValueError, OverflowError, OSError):
        return None


def _utc(value: datetime) -> datetime:
    """Convert to UTC. Times without a time zone are in UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _zone(name: str) -> tzinfo | None:
    hours = _ABBREVIATED.get(name.lower())
    if hours is not None:
        return timezone(timedelta(hours=hours))
    if "/" not in name:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # Unknown, an invalid name, or a directory of zones.
        return None


def _written(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    plain = _HALF.sub(r" \1m", _NOISE.sub(" ", _ORDINAL.sub(r"\1", text)))
    plain = " ".join(plain.split())
    for form in _FORMS:
        try:
            return datetime.strptime(plain, form)
        except ValueError:
            continue
    return None


def _of_mail(text: str) -> datetime:
    """Parse an email's time format. Raises ValueError."""
    try:
        return parsedate_to_datetime(text)
    except (TypeError, IndexError):
        raise ValueError("this is no time") from None
