"""The Unicode emoji: what each is called.

An emoji's code is its code points in lower-case hexadecimal, at least four digits each, joined by
hyphens, without the variation selector FE0F. Skin tones have no codes of their own.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

_FURTHER: Mapping[str, tuple[str, ...]] = {"1f642": ("slight_smile",)}
"""Names that neither the clients nor the tables of Unicode's emoji have."""
_FORMER: Mapping[str, tuple[str, ...]] = {
    "1f3cf": ("cricket", "cricket_bat"),
    "1f4c3": ("receipt",),
    "1f52c": ("scientist",),
    "1f617": ("kiss",),
}
"""Names by which older clients know them, and which are others' by now."""
VARIATION = "\ufe0f"
_SKIN_TONES = frozenset(chr(code) for code in range(0x1F3FB, 0x1F400))
_NEITHER = re.compile(r"[^a-z0-9+_-]+")


@cache
def names_by_code() -> Mapping[str, tuple[str, ...]]:
    """The names of every emoji by its code: the canonical one first, then those that clients know,
    then further ones. No two emoji share a name."""
    known = _known_to_clients()
    every = {code: [*known.get(code, ()), *names] for code, names in _all_names().items()}
    # A name that clients know is theirs. Of the others an emoji's usual name is its own, even
    # where it is another name of an earlier one.
    owner = {names[0]: code for code, names in reversed(every.items())}
    owner |= {name: code for code, names in known.items() for name in names}
    for code, names in every.items():
        for name in names:
            owner.setdefault(name, code)
        if code not in map(owner.get, names):  # All its names are those of others.
            names.append(f"{names[0]}_{code}")
            owner[names[-1]] = code
    return {
        code: tuple(name for name in dict.fromkeys(names) if owner[name] == code)
        for code, names in every.items()
    }


@cache
def codes_by_name() -> Mapping[str, str]:
    """The code of every emoji by each of its names."""
    return {name: code for code, names in names_by_code().items() for name in names}


def has_name(code: str, name: str) -> bool:
    """Whether the emoji of that code is called so, by a name that another one may have by itself:
    what was named before is so still, beside its code."""
    before = (*_all_names().get(code, ()), *_FORMER.get(code, ()))
    return codes_by_name().get(name) == code or name in before


def client_name(code: str, name: str) -> str:
    """That name, if clients know the emoji by it; its canonical one if they do not."""
    return name if name in _known_to_clients().get(code, ()) else names_by_code()[code][0]


def code_of(text: str) -> str:
    """The code of an emoji."""
    return "-".join(f"{ord(character):04x}" for character in text if character != VARIATION)


def text_of(code: str) -> str:
    """The emoji of a code, without variation selectors. ValueError where it is no code."""
    return "".join(chr(int(point, 16)) for point in code.split("-"))


@cache
def _known_to_clients() -> Mapping[str, Sequence[str]]:
    """The names that Zulip's clients have lists of, by code: the canonical one first."""
    lines = resources.files("tertulia.model").joinpath("emoji_names.txt").read_text("utf-8")
    return {code: names for code, *names in map(str.split, lines.splitlines())}


@cache
def _all_names() -> Mapping[str, Sequence[str]]:
    """What every emoji is called elsewhere, also where another one has the name by itself."""
    import emoji  # Reading its tables takes a moment.

    every = {
        code_of(text): list(_names(data))
        for text, data in emoji.EMOJI_DATA.items()
        if data["status"] == emoji.STATUS["fully_qualified"] and _SKIN_TONES.isdisjoint(text)
    }
    for code, further in _FURTHER.items():
        every[code].extend(further)
    return every


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    """An emoji's names in the form that people type between colons."""
    for spelled in (data["en"], *data.get("alias", ())):
        plain = unicodedata.normalize("NFKD", spelled.strip(":")).encode("ascii", "ignore").decode()
        name = _NEITHER.sub("_", plain.lower().replace("#", "hash").replace("*", "asterisk"))
        name = re.sub(r"_{2,}", "_", name).strip("_")
        if name:
            yield name
