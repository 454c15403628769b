"""What uploaded files are called, and what kind they are."""

import mimetypes
import re
import unicodedata
from typing import Final

NAMELESS: Final = "uploaded-file"
MAX_NAME: Final = 200
"""Characters of a file's name; longer ones lose the part before their ending."""
UNKNOWN_TYPE: Final = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_guesses = mimetypes.MimeTypes()
for _ending, _type in {
    ".apng": "image/apng",
    ".avif": "image/avif",
    ".flac": "audio/flac",
    ".heic": "image/heic",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".weba": "audio/webm",
    ".webm": "video/webm",
    ".webp": "image/webp",
}.items():
    _guesses.add_type(_type, _ending)


def shown(name: str) -> str:
    """The file's name as its owner reads it: without the directories that it was in, and without
    characters that cannot be seen."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(c for c in last if unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Cn"})
    return _shortened(seen.strip()) or NAMELESS


def in_address(name: str) -> str:
    """The file's name as a part of its address: letters and digits of any script, `-`, `_`, `.`."""
    normal = unicodedata.normalize("NFKC", name)
    kept = re.sub(r"[^\w\s.-]", "", normal).strip()
    joined = _shortened(re.sub(r"[-\s]+", "-", kept))
    return NAMELESS if set(joined) <= {"."} else joined


def _shortened(name: str) -> str:
    """At most `MAX_NAME` characters, the ending among them."""
    if len(name) <= MAX_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 20:
        return name[:MAX_NAME]
    return stem[: MAX_NAME - len(ending) - 1] + dot + ending


def media_type(said: str, name: str) -> str:
    """The file's type: what the uploader said, or what its name tells where that says nothing."""
    plain = said.partition(";")[0].strip().lower()
    if _MEDIA_TYPE.fullmatch(plain) and plain != UNKNOWN_TYPE:
        return plain
    return _guesses.guess_type(name.rpartition("/")[2], strict=False)[0] or UNKNOWN_TYPE
