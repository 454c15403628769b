"""Emoji by the names that other chat servers have for them."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from tertulia.imports.slack.emoji import standard
from tertulia.model.emoji import client_name, codes_by_name, names_by_code

_TONE: Final = re.compile(
    r"(?:_(?:light|medium_light|medium|medium_dark|dark)_skin_tone|_tone[1-5]"
    r"|:{0,2}_?skin[-_]tone[-_][2-6])$"
)
_FLAG: Final = re.compile(r"flag_([a-z]{2})")
_PERSON: Final = re.compile(r"(man|woman|male|female)[-_](.+)")
_SEXES: Final = {"man": "2642", "male": "2642", "woman": "2640", "female": "2640"}
_OTHER_NAMES: Final = {
    "face_with_3_hearts": "1f970",
    "male_mage": "1f9d9-200d-2642",
    "money_mouth": "1f911",
    "simple_smile": "1f642",
    "smiling_face_with_3_hearts": "1f970",
    "spock-hand": "1f596",
    "the_horns": "1f918",
}
_NAMED: Final = re.compile(r":([a-zA-Z0-9_+-]{1,64}):")


@lru_cache(maxsize=10_000)
def emoji_named(name: str) -> tuple[str, str] | None:
    """Return the code of the Unicode emoji that other servers call by that name, and its name here.
    Skin tones are left out. Their names are Slack's, or like them."""
    plain = _FLAG.sub(r"flag-\1", _TONE.sub("", name.lower()))
    found = standard(plain) or standard(plain.replace("-", "_"))
    if found is not None:
        return found.code, found.name
    code = _OTHER_NAMES.get(plain)
    if code is None and (person := _PERSON.fullmatch(plain)):
        whole = codes_by_name().get(person[2].replace("-", "_"))
        code = f"{whole}-200d-{_SEXES[person[1]]}"
    if code is None or code not in names_by_code():
        return None
    return code, client_name(code, plain)


def with_own_names(text: str, custom: Collection[str]) -> str:
    """Return a text where `:name:` has the name that the emoji has here. `custom` are the names of
    custom emoji."""
    if ":" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        found = None if name in custom else emoji_named(name)
        return match[0] if found is None or found[1] == name else f":{found[1]}:"

    return _NAMED.sub(replace, text)
