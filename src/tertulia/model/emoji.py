"""Names of Unicode emoji.

An emoji's code is its code points in lowercase hexadecimal, with at least four digits each, joined
by hyphens, without the variation selector FE0F. Skin tones don't have their own codes.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

_FURTHER: Mapping[str, tuple[str, ...]] = {"1f642": ("slight_smile",)}
"""Names that neither clients nor Unicode's tables have."""
_FORMER: Mapping[str, tuple[str, ...]] = {
    "1f3cf": ("cricket", "cricket_bat"),
    "1f4c3": ("receipt",),
    "1f52c": ("scientist",),
    "1f617": ("kiss",),
}
"""Names that older clients use, but that belong to other emoji now."""
VARIATION = "\ufe0f"
_SKIN_TONES = frozenset(chr(code) for code in range(0x1F3FB, 0x1F400))
_NEITHER = re.compile(r"[^a-z0-9+_-]+")


@cache
def names_by_code() -> Mapping[str, tuple[str, ...]]:
    """Return each emoji's names by its code: the canonical one, then those that clients know, then
    others. No two emoji share a name."""
    known = _known_to_clients()
    every = {code: [*known.get(code, ()), *names] for code, names in _all_names().items()}
    # Names that clients know come first. Otherwise an emoji owns its usual name, even if it's also
    # an alias of an earlier one.
    owner = {names[0]: code for code, names in reversed(every.items())}
    owner |= {name: code for code, names in known.items() for name in names}
    for code, names in every.items():
        for name in names:
            owner.setdefault(name, code)
        if code not in map(owner.get, names):  # Other emoji own all its names.
            names.append(f"{names[0]}_{code}")
            owner[names[-1]] = code
    return {
        code: tuple(name for name in dict.fromkeys(names) if owner[name] == code)
        for code, names in every.items()
    }


@cache
def codes_by_name() -> Mapping[str, str]:
    """Return each emoji's code by each of its names."""
    return {name: code for code, names in names_by_code().items() for name in names}


def has_name(code: str, name: str) -> bool:
    """Whether the emoji has or had that name, even if another one owns it now: existing reactions
    keep their names."""
    before = (*_all_names().get(code, ()), *_FORMER.get(code, ()))
    return codes_by_name().get(name) == code or name in before


def client_name(code: str, name: str) -> str:
    """Return the name if clients know it for this emoji, or else its canonical one."""
    return name if name in _known_to_clients().get(code, ()) else names_by_code()[code][0]


def code_of(text: str) -> str:
    return "-".join(f"{ord(character):04x}" for character in text if character != VARIATION)


def text_of(code: str) -> str:
    """Return the emoji of a code, without variation selectors. Raise ValueError for an invalid
    code."""
    return "".join(chr(int(point, 16)) for point in code.split("-"))


@cache
def _known_to_clients() -> Mapping[str, Sequence[str]]:
    """Return the names in Zulip clients' lists, by code: the canonical one first."""
    lines = resources.files("tertulia.model").joinpath("emoji_names.txt").read_text("utf-8")
    return {code: names for code, *names in map(str.split, lines.splitlines())}


@cache
def _all_names() -> Mapping[str, Sequence[str]]:
    """Return all names of each emoji in the `emoji` package, including names that other emoji
    own."""
    import emoji  # Slow to import.

    every = {
        code_of(text): list(_names(data))
        for text, data in emoji.EMOJI_DATA.items()
        if data["status"] == emoji.STATUS["fully_qualified"] and _SKIN_TONES.isdisjoint(text)
    }
    for code, further in _FURTHER.items():
        every[code].extend(further)
    return every


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield an emoji's names as people type them between colons."""
    for spelled in (data["en"], *data.get("alias", ())):
        plain = unicodedata.normalize("NFKD", spelled.strip(":")).encode("ascii", "ignore").decode()
        name = _NEITHER.sub("_", plain.lower().replace("#", "hash").replace("*", "asterisk"))
        name = re.sub(r"_{2,}", "_", name).strip("_")
        if name:
            yield name
