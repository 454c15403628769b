"""The emoji as clients fetch them: one file that changes only with the server's release."""

import hashlib
from functools import cache
from typing import Final

import msgspec

from tertulia.model.emoji import names_by_code

EMOJI_PATH: Final = "/static/emoji.json"


@cache
def emoji_data() -> bytes:
    """The names of every Unicode emoji by its code, as JSON."""
    return msgspec.json.encode({"code_to_names": names_by_code()})


@cache
def emoji_url() -> str:
    """Where the file is, below the organization's address. Another content is elsewhere."""
    return f"{EMOJI_PATH}?version={hashlib.sha256(emoji_data()).hexdigest()[:16]}"
