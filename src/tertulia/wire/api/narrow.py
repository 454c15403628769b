"""Reading narrows from requests."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import BadNarrow

ALIASES: Final[Mapping[str, str]] = {
    "stream": "channel",
    "streams": "channels",
    "subject": "topic",
    "from": "sender",
    "pm-with": "dm",
    "pm_with": "dm",
    "group-pm-with": "group-dm-with",
    "group_pm_with": "group-dm-with",
}
"""Older names of operators."""

_IS_ALIASES: Final[Mapping[str, str]] = {"private": "dm"}

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "items": {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "operator": {"type": "string"},
                    "operand": {},
                    "negated": {"type": "boolean", "default": False},
                },
                "required": ["operator", "operand"],
            },
            {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        ]
    },
}


class _Term(msgspec.Struct):
    operator: str
    operand: str | int | list[Any]
    negated: bool = False


_MAX_TERMS = 100
_MAX_CHARACTERS = 64 * 1024  # The longest possible query.


def read(text: str) -> tuple[NarrowTerm, ...]:
    """Return the terms of a narrow. Raises ValueError for invalid JSON, BadNarrow for an invalid
    narrow."""
    if len(text) > _MAX_CHARACTERS:
        raise BadNarrow(f"more than {_MAX_CHARACTERS} characters")
    try:
        terms = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError("it is not valid JSON") from None
    if not isinstance(terms, list):
        raise BadNarrow("a narrow must be a list of terms")
    if len(terms) > _MAX_TERMS:
        raise BadNarrow(f"more than {_MAX_TERMS} terms")
    return tuple(_term(term) for term in terms)


def _term(term: Any) -> NarrowTerm:
    if isinstance(term, list):
        if len(term) != 2 or not all(isinstance(part, str) for part in term):
            raise BadNarrow("a term given as a list must consist of an operator and an operand")
        term = {"operator": term[0], "operand": term[1]}
    try:
        read_term = msgspec.convert(term, _Term)
    except msgspec.ValidationError as error:
        raise BadNarrow(str(error)) from None
    operand = read_term.operand
    if isinstance(operand, list) and not (
        all(isinstance(value, int) for value in operand)
        or all(isinstance(value, str) for value in operand)
    ):
        raise BadNarrow("a list of operands must contain either only IDs or only email addresses")
    if "\0" in str(operand) or isinstance(operand, bool):
        raise BadNarrow("an operand must be a string, a number, or a list of them")
    if isinstance(operand, int) and abs(operand) > 2**53:
        raise BadNarrow("an operand is out of range")
    operator = ALIASES.get(read_term.operator, read_term.operator)
    if operator == "is" and isinstance(operand, str):
        operand = _IS_ALIASES.get(operand, operand)
    return NarrowTerm(operator, operand, read_term.negated)
