"""Looking up passwords in a list of breached ones: Have I Been Pwned's list ordered by hash. It has
a line for each password, with its SHA-1 in hexadecimal and, after a colon, the number of times it
was seen. It's searched on disk, because it's larger than memory."""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

_ENTRY: Final = re.compile(rb"[0-9A-Fa-f]{40}:[0-9]+")
_LINE: Final = 100
"""More bytes than a line can have."""


def is_breached(path: Path, password: str) -> bool:
    """Whether the list contains the password. Raise OSError if it can't be read."""
    sought = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
    with path.open("rb") as file:
        # The line is after `first`, or begins there, and begins before `end`.
        first, end = 0, file.seek(0, os.SEEK_END)
        while first < end:
            middle = (first + end) // 2
            start, line = _line_from(file.fileno(), middle)
            result = line[:40].upper()
            if result == sought:
                return True
            if not line or result > sought:
                end = middle
            else:
                first = start + len(line)
    return False


def trouble(path: Path) -> str | None:
    """Return why the list can't be used, or None if its first and last lines are valid."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            first = _line_from(file.fileno(), 0)[1]
            tail = os.pread(file.fileno(), 2 * _LINE, max(0, end - 2 * _LINE)).split()
    except OSError as error:
        return f"{path} can't be read: {error.strerror}"
    last = tail[-1] if tail else b""
    if not (_ENTRY.fullmatch(first.strip()) and _ENTRY.fullmatch(last)):
        return f"{path} isn't a list of SHA-1 hashes, each with a colon and a count"
    if first[:40].upper() > last[:40].upper():
        return f"{path} isn't ordered by hash"
    return None


def _line_from(descriptor: int, at: int) -> tuple[int, bytes]:
    """Return the first line that begins at the position or later, and where it begins."""
    before = max(0, at - 1)
    content = os.pread(descriptor, 2 * _LINE, before)
    begins = 0 if at == 0 else content.find(b"\n") + 1
    if at and not begins:
        return at, b""
    line = content[begins:]
    return before + begins, line[: line.find(b"\n") + 1 or len(line)]
