"""Names that look alike, though their characters differ.

Two names are alike if they differ only in case, width, spaces and invisible characters. If one of
them is not plain ASCII, they are also alike if they have the same skeleton (Unicode's UTS 39), in
which a Cyrillic A is an A. Two ASCII names are not compared by skeleton: `Phase I` and `Phase 1`
are different names.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from msgspec import Struct

_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and accents of Unicode that are invisible."""
_SIGNS: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Formatting characters of Unicode (Cf) that are visible."""
_IGNORED: Final = re.compile(f"[{''.join(sorted(_INVISIBLE))}\ufe00-\ufe0f]")
_NON_JOINER: Final = "\u200c"
_JOINER: Final = "\u200d"
_FLAG: Final = "\U0001f3f4"
_FLAG_END: Final = "\U000e007f"
_VIRAMA: Final = 9


class Keys(Struct, frozen=True, gc=False):
    """The keys by which names are compared."""

    plain: str
    skeletons: tuple[str, str]
    """Skeletons of the name as it is written, and of its lower case."""

    def resembles(self, other: "Keys") -> bool:
        """Whether a skeleton is the same, even if both names are ASCII: stricter than `alike`."""
        shown, folded = other.skeletons
        return self.skeletons[0] == shown or self.skeletons[1] == folded


def alike(one: str, other: str) -> bool:
    """Whether the names look alike."""
    return next(alike_among(one, (other,)), None) is not None


def alike_among(name: str, others: Iterable[str]) -> Iterator[str]:
    """Those of the others that look like the name."""
    is_ascii, own = name.isascii(), keys(name)
    for other in others:
        if is_ascii and other.isascii():
            if _in_ascii(other) == own.plain:
                yield other
        elif own.resembles(keys(other)):
            yield other


def plain(name: str) -> str:
    """The name with case, width and spaces normalized."""
    return keys(name).plain


def _in_ascii(name: str) -> str:
    return " ".join(name.lower().split())


@lru_cache(maxsize=16384)
def keys(name: str) -> Keys:
    """The keys by which the name is compared."""
    if name.isascii():
        shown, folded = " ".join(name.split()), _in_ascii(name)
        return Keys(folded, (shown.translate(_ASCII).lower(), folded.translate(_ASCII)))
    seen = name
    if not name.isprintable() or _IGNORED.search(name):
        seen = "".join(one for one in name if not _is_ignored(one))
    shown = " ".join(unicodedata.normalize("NFKC", seen).split())
    folded = unicodedata.normalize("NFKC", shown.casefold())
    return Keys(folded, (_skeleton(shown), _skeleton(folded)))


_ASCII: Final = str.maketrans({"1": "l", "I": "l", "|": "l", "0": "o", "O": "o", "m": "rn"})
"""ASCII characters whose skeleton is another character."""


def _skeleton(text: str) -> str:
    mapped = unicodedata.normalize("NFD", text).translate(_prototypes()).translate(_ASCII)
    return unicodedata.normalize("NFD", mapped).casefold()


@cache
def _prototypes() -> Mapping[int, str]:
    """The character that stands for each one that has look-alikes, as `str.translate` takes them.
    Loaded with the first name that is not ASCII."""
    place = resources.files("confusable_homoglyphs").joinpath("confusables.json")
    similar: dict[str, list[dict[str, str]]] = json.loads(place.read_text("utf-8"))
    found: dict[int, str] = {}
    for first in similar:
        if len(first) == 1 and ord(first) in found:
            continue
        family, pending = {first}, [first]
        while pending:
            others = {one["c"] for one in similar.get(pending.pop(), ())} - family
            family |= others
            pending.extend(others)
        # An ASCII character stands for the family if there is one, the shortest first.
        prototype = min(family, key=lambda one: (not one.isascii(), len(one), one))
        found.update((ord(one), prototype) for one in family if len(one) == 1 and not one.isascii())
    return found


def _is_ignored(character: str) -> bool:
    if _IGNORED.match(character):
        return True
    return unicodedata.category(character) == "Cf" and character not in _SIGNS


def is_visible(text: str) -> bool:
    """Whether the text has no invisible characters, and none that change its direction.

    Allowed are: a joiner or non-joiner after a virama, as in Indic scripts; a non-joiner between
    letters of Arabic and similar scripts (as RFC 5892's ContextJ, but by the direction of the
    letters); a joiner between the parts of an emoji; and the tags of flags.
    """
    if text.isascii():
        return True
    in_flag = False
    for index, character in enumerate(text):
        if in_flag and "\U000e0020" <= character <= _FLAG_END:
            in_flag = character != _FLAG_END
            continue
        if in_flag and text[index - 1] != _FLAG:
            return False
        in_flag = character == _FLAG
        if character in _INVISIBLE or unicodedata.category(character) in {"Zl", "Zp"}:
            return False
        if unicodedata.category(character) != "Cf" or character in _SIGNS:
            continue
        if character not in {_JOINER, _NON_JOINER} or not _may_join(text, index):
            return False
    return not in_flag or text[-1] == _FLAG


def _may_join(text: str, index: int) -> bool:
    """Whether the joiner or non-joiner at that index is one that the script needs."""
    before, after = text[:index], text[index + 1 :]
    if before and unicodedata.combining(before[-1]) == _VIRAMA:
        return True
    if text[index] == _JOINER:
        left = before.rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
        return _is_symbol(left[-1:]) and _is_symbol(after[:1])
    left = before
    while left and unicodedata.bidirectional(left[-1]) == "NSM":
        left = left[:-1]
    return _is_cursive(left[-1:]) and _is_cursive(after[:1])


def _is_symbol(character: str) -> bool:
    return character != "" and unicodedata.category(character) in {"So", "Sm"}


def _is_cursive(character: str) -> bool:
    """Whether it is a letter of Arabic, Syriac or another script whose letters join."""
    return character != "" and unicodedata.bidirectional(character) == "AL"
