"""Emoji by their names on other chat servers."""

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from tertulia.imports.records import Key, SourceReaction
from tertulia.model.emoji import client_name, codes_by_name, names_by_code
from tertulia.model.reactions import Emoji, EmojiKind

SLACK_SKIN_TONE: Final = re.compile(r"::skin-tone-[2-6]")
_TONE: Final = re.compile(
    r"(?:_(?:light|medium_light|medium|medium_dark|dark)_skin_tone|_tone[1-5]"
    r"|:{0,2}_?skin[-_]tone[-_][2-6])$"
)
_FLAG: Final = re.compile(r"flag[-_]([a-z])([a-z])")
_FIRST_LETTER: Final = 0x1F1E6
"""The first of the characters that spell country flags."""
_PERSON: Final = re.compile(r"(man|woman|male|female)[-_](.+)")
_SEXES: Final = {"man": "2642", "male": "2642", "woman": "2640", "female": "2640"}
_NAMED: Final = re.compile(r":([a-zA-Z0-9_+-]{1,64}):")


@lru_cache(maxsize=10_000)
def slack_emoji(name: str) -> Emoji | None:
    """Return the Unicode emoji that Slack calls by that name, without skin tones."""
    plain = name.partition("::")[0]
    code = _code(plain)
    return None if code is None else _emoji(code, client_name(code, plain))


@lru_cache(maxsize=10_000)
def emoji_named(name: str) -> Emoji | None:
    """Return the Unicode emoji that Mattermost or Rocket.Chat calls by that name, without skin
    tones. Most of their names are Slack's, some with underscores."""
    plain = _TONE.sub("", name.lower())
    code = _like(plain)
    if code is None and (person := _PERSON.fullmatch(plain)):
        code = f"{_like(person[2])}-200d-{_SEXES[person[1]]}"
    if code is None or code not in names_by_code():
        return None
    return _emoji(code, client_name(code, plain))


def reaction_named(user: Key, name: str) -> SourceReaction:
    """Return a reaction with the emoji that Mattermost or Rocket.Chat calls by that name."""
    known = emoji_named(name)
    if known is None:
        return SourceReaction(user, EmojiKind.CUSTOM, f":{name}:", name)
    return SourceReaction(user, known.kind, known.code, known.name)


def with_own_names(text: str, custom: Collection[str]) -> str:
    """Return the text with `:name:` changed to the emoji's name here. `custom` are the names of
    custom emoji, which stay."""
    if ":" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        emoji = None if name in custom else emoji_named(name)
        return match[0] if emoji is None or emoji.name == name else f":{emoji.name}:"

    return _NAMED.sub(replace, text)


def _like(name: str) -> str | None:
    return _code(name) or _code(name.replace("-", "_"))


def _code(name: str) -> str | None:
    code = _differing().get(name) or codes_by_name().get(name)
    if code is None and (flag := _FLAG.fullmatch(name)):
        code = "-".join(f"{_FIRST_LETTER + ord(letter) - ord('a'):x}" for letter in flag.groups())
    return code if code in names_by_code() else None


def _emoji(code: str, name: str) -> Emoji:
    return Emoji(kind=EmojiKind.UNICODE, code=code, name=name)


@cache
def _differing() -> Mapping[str, str]:
    """Return the emoji codes of Slack's names that are unknown here or name another emoji here."""
    lines = resources.files(__package__).joinpath("emoji_names.txt").read_text("ascii")
    return dict(line.split() for line in lines.splitlines())
