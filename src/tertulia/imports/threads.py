"""Threads of other chat servers become topics, named from their first messages."""

import re
from hashlib import blake2b
from typing import Final

import apsw

from tertulia.domain import names
from tertulia.imports.records import Key

MAX_READ: Final = 1000
"""The most characters of a message that its topic's name is taken from."""
_FENCE: Final = re.compile(r"^\s*(?:```|~~~).*$", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_LINE_MARK: Final = re.compile(r"^\s*(?:>\s?|#{1,6}\s|[*+-]\s|\d{1,9}[.)]\s)+")
_MARKS: Final = re.compile(r"\*{1,3}|~~|`+|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")


def topic_of(text: str, otherwise: str = "Thread") -> str:
    """Return the name of a topic that begins with this Markdown: its first line with words, as
    plain text and shortened to the length that topics can have."""
    for line in _FENCE.sub("", text[:MAX_READ]).splitlines():
        plain = _MARKS.sub("", _LINK.sub(r"\1", _LINE_MARK.sub("", line)))
        name = shortened(_visible(plain))
        if any(text.isalnum() for text in name):
            return name
    return shortened(_visible(otherwise))


def shortened(text: str, longest: int = names.MAX_TOPIC) -> str:
    """Return the text, cut at a word and with an ellipsis if it's longer."""
    if len(text) <= longest:
        return text
    kept = text[: longest - 1]
    start, space, _ = kept.rpartition(" ")
    if space and len(start) > longest // 2:
        kept = start
    return kept.rstrip(" \u200c\u200d,;:.-") + "…"


def _visible(text: str) -> str:
    """Return the text with single spaces, and without characters that aren't allowed in names."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = "".join(name if names.is_printable(name) else " " for name in text)
    if not names.is_visible(kept):
        kept = "".join(text for text in kept if names.is_visible(text))
    return " ".join(kept.split())


class ThreadTopics:
    """Assigns topics to threads. Two threads of a channel never share a topic. Topics are kept in a
    temporary database, because an export can have millions."""

    def __init__(self) -> None:
        self._database = apsw.Connection("")
        self._database.execute(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE threads (id BLOB PRIMARY KEY, topic TEXT) WITHOUT ROWID;"
            "CREATE TABLE taken (id BLOB PRIMARY KEY, last INTEGER) WITHOUT ROWID; BEGIN"
        ).fetchall()

    def topic(self, channel: Key, thread: Key, text: str) -> str:
        """Return a thread's topic. If it's new, `text` is the thread's first message."""
        digest = _digest(channel, thread)
        result = self._known(digest)
        if result is None:
            result = self._free(channel, topic_of(text))
            self._database.execute("INSERT INTO threads VALUES (?, ?)", (digest, result))
        return result

    def known(self, channel: Key, thread: Key) -> str | None:
        """Return a thread's topic, or None if it's new."""
        return self._known(_digest(channel, thread))

    def close(self) -> None:
        self._database.close()

    def _known(self, digest: bytes) -> str | None:
        row = self._database.execute("SELECT topic FROM threads WHERE id = ?", (digest,)).fetchone()
        return None if row is None else row[0]

    def _free(self, channel: Key, name: str) -> str:
        """Reserve the name, with the lowest free number if it's taken, and return it."""
        base = _digest(channel, name.casefold())
        number, free, name_taken = self._last(base), name, base
        while number and self._last(name_taken):
            number += 1
            end = f" ({number})"
            free = shortened(name, names.MAX_TOPIC - len(end)) + end
            name_taken = _digest(channel, free.casefold())
        for key, last in {name_taken: 1, base: number or 1}.items():
            self._database.execute("INSERT OR REPLACE INTO taken VALUES (?, ?)", (key, last))
        return free

    def _last(self, key: bytes) -> int:
        """Return the highest number added to a topic's name; 1 if no number was added, 0 if the
        name is free."""
        row = self._database.execute("SELECT last FROM taken WHERE id = ?", (key,)).fetchone()
        return 0 if row is None else row[0]


def _digest(channel: Key, name: Key) -> bytes:
    return blake2b(f"{channel!r}\0{name!r}".encode(), digest_size=16).digest()
