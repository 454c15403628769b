"""The Unicode emoji: what each is called.

An emoji's code is its code points in lower-case hexadecimal, at least four digits each, joined by
hyphens, without the variation selector FE0F. Skin tones have no codes of their own.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

_CUSTOMARY: Mapping[str, tuple[str, ...]] = {
    "1f44d": ("+1", "thumbs_up", "like"),
    "1f44e": ("-1", "thumbs_down"),
    "2764": ("heart", "love"),
    "1f389": ("tada", "party_popper"),
    "1f642": ("smile", "slight_smile"),
    "1f419": ("octopus",),
    "1f6e0": ("working_on_it", "hammer_and_wrench", "tools"),
    "1f603": ("smiley",),
    "1f600": ("grinning",),
    "1f604": ("big_smile",),
    "1f606": ("laughing", "lol"),
    "1f602": ("joy",),
    "1f643": ("upside_down",),
    "1f644": ("rolling_eyes",),
    "1f609": ("wink",),
    "1f60d": ("heart_eyes",),
    "1f60e": ("sunglasses",),
    "1f60a": ("blush",),
    "1f622": ("cry",),
    "1f62d": ("sob",),
    "1f914": ("thinking",),
    "1f937": ("shrug",),
    "1f926": ("facepalm",),
    "1f44b": ("wave",),
    "1f44f": ("clap", "applause"),
    "1f64f": ("pray",),
    "1f4aa": ("muscle",),
    "1f440": ("eyes", "looking"),
    "1f680": ("rocket",),
    "1f525": ("fire",),
    "1f4af": ("100",),
    "2705": ("check", "check_mark_button", "white_check_mark"),
    "2714": ("check_mark",),
    "2753": ("question",),
    "26a1": ("zap",),
    "2615": ("coffee",),
    "1f44c": ("ok",),
    "1f4c5": ("calendar",),
    "1f68c": ("bus",),
    "1f912": ("sick",),
    "1f334": ("palm_tree",),
    "1f3e0": ("house",),
    "1f3e2": ("office",),
    "1f4dd": ("memo",),
}
"""What people and programs have come to call some emoji: these names come first, whoever else
would have them."""
_VARIATION = "\ufe0f"
_SKIN_TONES = frozenset(chr(code) for code in range(0x1F3FB, 0x1F400))
_NEITHER = re.compile(r"[^a-z0-9+_-]+")


@cache
def names_by_code() -> Mapping[str, tuple[str, ...]]:
    """The names of every emoji by its code: the usual one first. No two emoji share a name."""
    import emoji  # Reading its tables takes a moment.

    every = {
        code_of(text): list(_names(data))
        for text, data in emoji.EMOJI_DATA.items()
        if data["status"] == emoji.STATUS["fully_qualified"] and _SKIN_TONES.isdisjoint(text)
    }
    for code, customary in _CUSTOMARY.items():
        every[code] = [*customary, *every[code]]
    # An emoji's usual name is its own, even where it is another name of an earlier one; and what
    # is customary is so in any case.
    owner = {names[0]: code for code, names in reversed(every.items())}
    owner |= {name: code for code, names in _CUSTOMARY.items() for name in names}
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
