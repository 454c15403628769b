"""The Unicode emoji: what each is called.

An emoji's code is its code points in lower-case hexadecimal, at least four digits each, joined by
hyphens, without the variation selector FE0F. Skin tones have no codes of their own.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import emoji

_VARIATION = "\ufe0f"
_SKIN_TONES = frozenset(chr(code) for code in range(0x1F3FB, 0x1F400))
_NEITHER = re.compile(r"[^a-z0-9+_-]+")


@cache
def names_by_code() -> Mapping[str, tuple[str, ...]]:
    """The names of every emoji by its code: the usual one first. No two emoji share a name."""
    every = {
        code_of(text): list(_names(data))
        for text, data in emoji.EMOJI_DATA.items()
        if data["status"] == emoji.STATUS["fully_qualified"] and _SKIN_TONES.isdisjoint(text)
    }
    # An emoji's usual name is its own, even where it is another name of an earlier one.
    owner = {names[0]: code for code, names in reversed(every.items())}
    for code, names in every.items():
        for name in names:
            owner.setdefault(name, code)
    return {
        code: tuple(name for name in dict.fromkeys(names) if owner[name] == code)
        for code, names in every.items()
    }


@cache
def codes_by_name() -> Mapping[str, str]:
    """The code of every emoji by each of its names."""
    return {name: code for code, names in names_by_code().items() for name in names}


def code_of(text: str) -> str:
    """The code of an emoji."""
    return "-".join(f"{ord(character):04x}" for character in text if character != _VARIATION)


def text_of(code: str) -> str:
    """The emoji of a code, without variation selectors. ValueError where it is no code."""
    return "".join(chr(int(point, 16)) for point in code.split("-"))


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    """An emoji's names in the form that people type between colons."""
    for spelled in (data["en"], *data.get("alias", ())):
        plain = unicodedata.normalize("NFKD", spelled.strip(":")).encode("ascii", "ignore").decode()
        name = _NEITHER.sub("_", plain.lower().replace("#", "hash").replace("*", "asterisk"))
        name = re.sub(r"_{2,}", "_", name).strip("_")
        if name:
            yield name
