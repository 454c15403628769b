"""Slack's names of emoji."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from tertulia.model.emoji import client_name, codes_by_name, names_by_code
from tertulia.model.reactions import Emoji, EmojiKind

SKIN_TONE: Final = re.compile(r"::skin-tone-[2-6]")
_FLAG: Final = re.compile(r"flag-([a-z]{2})")
_FIRST_LETTER: Final = 0x1F1E6
"""Of the characters that flags are spelled with."""


def standard(name: str) -> Emoji | None:
    """Return the Unicode emoji of that name, without skin tones, or None."""
    name = name.partition("::")[0]
    code = _differing().get(name) or codes_by_name().get(name)
    if code is None and (flag := _FLAG.fullmatch(name)):
        code = "-".join(f"{_FIRST_LETTER + ord(letter) - ord('a'):04x}" for letter in flag[1])
        code = code if code in names_by_code() else None
    if code is None:
        return None
    return Emoji(kind=EmojiKind.UNICODE, code=code, name=client_name(code, name))


@cache
def _differing() -> Mapping[str, str]:
    """Return the codes of emoji whose names mean others here, or nothing."""
    lines = resources.files(__package__).joinpath("emoji_names.txt").read_text("ascii")
    return dict(line.split() for line in lines.splitlines())
