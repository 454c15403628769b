"""Limits that the organization has for all, and that one of many may have otherwise."""

import re

from tertulia.wire.http.parameters import SAFE_INTEGER, Reads


def own_limit(unit: str, unlimited: int) -> Reads:
    """Reads a positive number of `unit`; `realm_default` as None, and `unlimited` as that number,
    which stands for it in the domain."""

    def read(text: str) -> int | None:
        word = text.strip('"')
        if word == "realm_default":
            return None
        if word == "unlimited":
            return unlimited
        if not re.fullmatch("-?[0-9]{1,20}", word):
            raise ValueError(f"it is neither a number of {unit} nor realm_default or unlimited")
        number = int(word)
        if not 0 < number < SAFE_INTEGER:
            raise ValueError(f"it must be a positive number of {unit}")
        return number

    return Reads(read, {"oneOf": [{"type": "integer"}, {"enum": ["realm_default", "unlimited"]}]})
