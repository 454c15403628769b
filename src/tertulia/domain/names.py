"""Rules for names and texts: allowed characters, lengths, and names that look alike. Functions that
are named after a field, such as `channel_name`, return the normalized text, and raise Refused if
it's invalid."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from msgspec import Struct

from tertulia.model.errors import Refused

_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and accents that are invisible."""
_SIGNS: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Formatting characters (category Cf) that are visible."""
_IGNORED: Final = re.compile(f"[{''.join(sorted(_INVISIBLE))}\ufe00-\ufe0f]")
_NON_JOINER: Final = "\u200c"
_JOINER: Final = "\u200d"
_FLAG: Final = "\U0001f3f4"
_FLAG_END: Final = "\U000e007f"
_VIRAMA: Final = 9


class Keys(Struct, frozen=True, gc=False):
    plain: str
    skeletons: tuple[str, str]
    """The skeletons of the name as written, and of its lowercase form."""

    def resembles(self, other: "Keys") -> bool:
        """Whether the names share a skeleton, even if both are ASCII. Stricter than
        `look_alike`."""
        shown, folded = other.skeletons
        return self.skeletons[0] == shown or self.skeletons[1] == folded


def look_alike(text: str, other: str) -> bool:
    return next(alike_among(text, (other,)), None) is not None


def alike_among(name: str, others: Iterable[str]) -> Iterator[str]:
    """Yield the names among `others` that look like the name."""
    is_ascii, keys = name.isascii(), lookalike_keys(name)
    for other in others:
        if is_ascii and other.isascii():
            if _in_ascii(other) == keys.plain:
                yield other
        elif keys.resembles(lookalike_keys(other)):
            yield other


def without_lookalikes(name: str) -> str:
    """Return the name with case, width, and spaces normalized, so that names that look alike are
    equal."""
    return lookalike_keys(name).plain


def _in_ascii(name: str) -> str:
    return " ".join(name.lower().split())


@lru_cache(maxsize=16384)
def lookalike_keys(name: str) -> Keys:
    if name.isascii():
        shown, folded = " ".join(name.split()), _in_ascii(name)
        return Keys(folded, (shown.translate(_ASCII).lower(), folded.translate(_ASCII)))
    seen = name
    if not name.isprintable() or _IGNORED.search(name):
        seen = "".join(text for text in name if not _is_ignored(text))
    shown = " ".join(unicodedata.normalize("NFKC", seen).split())
    folded = unicodedata.normalize("NFKC", shown.casefold())
    return Keys(folded, (_skeleton(shown), _skeleton(folded)))


_ASCII: Final = str.maketrans({"1": "l", "I": "l", "|": "l", "0": "o", "O": "o", "m": "rn"})
"""ASCII characters whose skeleton is another ASCII text."""


def _skeleton(text: str) -> str:
    mapped = unicodedata.normalize("NFD", text).translate(_prototypes()).translate(_ASCII)
    return unicodedata.normalize("NFD", mapped).casefold()


@cache
def _prototypes() -> Mapping[int, str]:
    """Map each character that has look-alikes to the one that represents them. Loaded for the first
    name that isn't ASCII."""
    file = resources.files("confusable_homoglyphs").joinpath("confusables.json")
    similar: dict[str, list[dict[str, str]]] = json.loads(file.read_text("utf-8"))
    prototypes: dict[int, str] = {}
    for first in similar:
        if len(first) == 1 and ord(first) in prototypes:
            continue
        family, pending = {first}, [first]
        while pending:
            others = {fields["c"] for fields in similar.get(pending.pop(), ())} - family
            family |= others
            pending.extend(others)
        # An ASCII character represents its family if there is one, the shortest first.
        prototype = min(family, key=lambda text: (not text.isascii(), len(text), text))
        prototypes.update(
            (ord(text), prototype) for text in family if len(text) == 1 and not text.isascii()
        )
    return prototypes


def _is_ignored(character: str) -> bool:
    if _IGNORED.match(character):
        return True
    return unicodedata.category(character) == "Cf" and character not in _SIGNS


def is_visible(text: str) -> bool:
    """Whether the text has no invisible characters, and none that change its direction.

    Allowed are a joiner or non-joiner after a virama, as in Indic scripts; a non-joiner between
    letters of Arabic and similar scripts (like RFC 5892's ContextJ, but by the letters' direction);
    a joiner between the parts of an emoji; and the tags of flags.
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
    """Whether the script needs the joiner or non-joiner at that index."""
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
    """Whether the character is a letter of Arabic, Syriac, or another script whose letters join."""
    return character != "" and unicodedata.bidirectional(character) == "AL"


MAX_MESSAGE = 10_000
MAX_TOPIC = 60
MAX_CHANNEL_NAME = 60
MAX_CHANNEL_DESCRIPTION = 1024
MAX_FULL_NAME = 100
MIN_FULL_NAME = 2
MAX_REALM_NAME = 40
MAX_REALM_DESCRIPTION = 1000
EMPTY_TOPIC_NAME = "general chat"
MAX_FOLDER_NAME = 100
MAX_FOLDER_DESCRIPTION = 1024
MAX_REMINDER_NOTE = 1000
MAX_GROUP_NAME = 100
MAX_GROUP_DESCRIPTION = 1024
MAX_SNIPPET_TITLE = 60
MAX_VIEW_NAME = 100
MAX_VIEW_FRAGMENT = 1000
MAX_CODE_LANGUAGE = 40
MAX_WELCOME_TEXT = 8000

_NO_NAME = re.compile(r'[*`\\>"@]')
_RESERVED_FOR_GROUPS = ("@", "role:", "user:", "stream:", "channel:")
_NAME_AND_ID = re.compile(r"\|\d+$")
_CODE_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+\-./#]*")
_LEXER = re.compile(r"[a-zA-Z0-9 '()_+#,./-]+")
_ADDRESS = re.compile(r"[^@\s\0<>()\[\],;:\"\\]+@[^@\s\0<>()\[\],;:\"\\]+")


def is_printable(text: str) -> bool:
    """Whether the text has no control, surrogate, private, or unassigned characters."""
    # `isprintable` also rejects format characters and all spaces but one.
    return text.isprintable() or not any(
        unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn"} for character in text
    )


def is_plain(text: str) -> bool:
    """Whether the name is printable and visible, and contains no characters that change its
    direction."""
    return is_printable(text) and is_visible(text)


def full_name(text: str) -> str:
    name = text.strip()
    if not MIN_FULL_NAME <= len(name) <= MAX_FULL_NAME:
        raise Refused(f"Names must have {MIN_FULL_NAME} to {MAX_FULL_NAME} characters.")
    if _NO_NAME.search(name) or _NAME_AND_ID.search(name) or not is_plain(name):
        raise Refused(
            "Names can't contain *, `, \\, >, \", @, or invisible characters, or end with | and"
            " a number."
        )
    return name


def require_unlike(name: str, reserved: Iterable[str]) -> None:
    """Raise Refused for a name that could be read as a reserved one."""
    for text in reserved:
        if lookalike_keys(text).resembles(lookalike_keys(name)):
            raise Refused(f"The name '{text}' is reserved.")


def address(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > 254 or not _ADDRESS.fullmatch(stripped) or not is_printable(stripped):
        raise Refused(f"'{stripped[:100]}' isn't a valid email address.")
    return stripped


def channel_name(text: str) -> str:
    return _name(text, "Channel", MAX_CHANNEL_NAME)


def channel_description(text: str) -> str:
    return description(text.replace("\n", " "), MAX_CHANNEL_DESCRIPTION)


def description(text: str, limit: int) -> str:
    """Return a description of at most `limit` characters."""
    result = text.strip()
    if len(result) > limit:
        raise Refused(f"Descriptions can have at most {limit} characters.")
    if "\0" in result:
        raise Refused("Descriptions can't contain null bytes.")
    return result


def folder_name(text: str) -> str:
    return _name(text, "Channel folder", MAX_FOLDER_NAME)


def folder_description(text: str) -> str:
    return description(text, MAX_FOLDER_DESCRIPTION)


def _name(text: str, kind: str, limit: int) -> str:
    name = text.strip()
    if not name:
        raise Refused(f"{kind} names can't be empty.")
    if len(name) > limit:
        raise Refused(f"{kind} names can have at most {limit} characters.")
    if not is_plain(name):
        raise Refused(f"{kind} names can't contain invisible characters.")
    return name


def realm_name(text: str) -> str:
    name = text.strip()
    if not 0 < len(name) <= MAX_REALM_NAME:
        raise Refused(f"An organization's name must have 1 to {MAX_REALM_NAME} characters.")
    if not is_plain(name):
        raise Refused("An organization's name can't contain invisible characters.")
    return name


def realm_description(text: str) -> str:
    return description(text, MAX_REALM_DESCRIPTION)


def code_language(text: str) -> str:
    """Return a programming language's name in the form that Pygments' aliases have."""
    name = text.strip()
    if len(name) > MAX_CODE_LANGUAGE or not _CODE_LANGUAGE.fullmatch(name):
        raise Refused("This isn't a valid name of a programming language.")
    return name


def lexer_name(text: str) -> str:
    """Return the name of a lexer in Pygments' list, such as `Common Lisp`."""
    name = text.strip()
    if len(name) > MAX_CODE_LANGUAGE or not _LEXER.fullmatch(name):
        raise Refused("This isn't a valid name of a programming language.")
    return name


def group_name(text: str) -> str:
    name = _name(text, "Group", MAX_GROUP_NAME)
    for prefix in _RESERVED_FOR_GROUPS:
        if without_lookalikes(name).startswith(prefix):
            raise Refused(f"Group names can't begin with '{prefix}'.")
    return name


def group_description(text: str) -> str:
    return description(text, MAX_GROUP_DESCRIPTION)


def topic_name(text: str) -> str:
    """Return a topic's normalized name: empty for the general chat, and cut if it's too long."""
    name = text.strip()
    if not is_printable(name):
        raise Refused("Topic names can't contain invisible characters.")
    if name in {"(no topic)", EMPTY_TOPIC_NAME}:
        return ""
    if len(name) <= MAX_TOPIC:
        return name
    # A joiner needs the character after it.
    return name[: MAX_TOPIC - 3].rstrip("\u200c\u200d") + "..."


def check_new_topic(name: str) -> None:
    """Raise Refused for a new topic with invisible characters. Existing topics still work."""
    if not is_plain(name):
        raise Refused("Topic names can't contain invisible characters.")


def message_content(text: str) -> str:
    """Return a message's normalized content, cut if it's too long."""
    if "\0" in text:
        raise Refused("Messages can't contain null bytes.")
    content = text.lstrip("\n").rstrip()
    if not content.strip():
        raise Refused("Messages can't be empty.")
    if len(content) > MAX_MESSAGE:
        end = "\n[message truncated]"
        content = content[: MAX_MESSAGE - len(end)] + end
    return content


def snippet_title(text: str) -> str:
    return _short(text, "A snippet's title", MAX_SNIPPET_TITLE)


def snippet_content(text: str) -> str:
    return _short(text, "A snippet", MAX_MESSAGE)


def view_fragment(text: str) -> str:
    return _short(text, "A view's address", MAX_VIEW_FRAGMENT)


def view_name(text: str) -> str:
    return _short(text, "A view's name", MAX_VIEW_NAME)


def _short(text: str, what: str, longest: int) -> str:
    stripped = text.strip()
    if not stripped:
        raise Refused(f"{what} can't be empty.")
    if len(stripped) > longest:
        raise Refused(f"{what} can have at most {longest} characters.")
    return stripped
