"""Limits that the organization has for all, and that one of many may have otherwise."""

import re
from typing import Final, Literal

from tertulia.wire.http.parameters import SAFE_INTEGER, Reads

AS_ALL: Final = "realm_default"
"""The word for what all have."""
UNLIMITED: Final = "unlimited"
OwnLimit = int | Literal["realm_default", "unlimited"]


def own_limit(unit: str, unlimited: int, most: int = SAFE_INTEGER - 1) -> Reads:
    """Reads a positive number of `unit`; `realm_default` as None, and `unlimited` as that number,
    which stands for it in the domain. More than `most` the domain refuses."""

    def read(text: str) -> int | None:
        word = text.strip('"')
        if word == AS_ALL:
            return None
        if word == UNLIMITED:
            return unlimited
        if not re.fullmatch("-?[0-9]{1,20}", word):
            raise ValueError(f"it must be a number of {unit}, realm_default, or unlimited")
        number = int(word)
        if not 0 < number < SAFE_INTEGER:
            raise ValueError(f"it must be a number of {unit} from 1 to {most}")
        return number

    number = {"type": "integer", "minimum": 1, "maximum": most}
    return Reads(read, {"oneOf": [number, {"enum": [AS_ALL, UNLIMITED]}]})


def own_limit_shown(limit: int | None, unlimited: int) -> OwnLimit:
    """A limit as it is sent, and typed: the other way round."""
    if limit is None:
        return "realm_default"
    return "unlimited" if limit == unlimited else limit
