"""Limits that the organization has for all, and that one of many may have otherwise."""

import re
from typing import Final

from tertulia.wire.http.parameters import SAFE_INTEGER, Reads

UNLIMITED: Final = -1
"""How `unlimited` is read; `realm_default` is None."""


def own_limit(unit: str) -> Reads:
    """Reads a positive number of `unit`, or `realm_default`, or `unlimited`."""

    def read(text: str) -> int | None:
        word = text.strip('"')
        if word == "realm_default":
            return None
        if word == "unlimited":
            return UNLIMITED
        if not re.fullmatch("-?[0-9]{1,20}", word):
            raise ValueError(f"it is neither a number of {unit} nor realm_default or unlimited")
        number = int(word)
        if not 0 < number < SAFE_INTEGER:
            raise ValueError(f"it must be a positive number of {unit}")
        return number

    return Reads(read, {"oneOf": [{"type": "integer"}, {"enum": ["realm_default", "unlimited"]}]})
