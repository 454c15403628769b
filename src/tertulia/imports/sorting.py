"""Sorting an export's messages by time, in bounded memory, before any is imported.

Some exports aren't in chronological order, or have replies before earlier messages. A source reads
such an export once, and converts its messages; they are sorted into a file next to the extracted
export. The import reads that file, and an interrupted import continues at an offset.
"""

import bisect
import heapq
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.imports.archive import LEAST_FREE
from tertulia.imports.records import Key, SourceMessage
from tertulia.imports.references import MESSAGE_MARK, with_message_keys
from tertulia.imports.report import ImportReport
from tertulia.imports.source import BATCH, BATCH_BYTES, MessageBatch, SourceError
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody
from tertulia.imports.threads import MAX_READ, ThreadTopics

RUN_BYTES: Final = 24 * 1024 * 1024
"""Bytes of messages that are sorted in memory together."""
MAX_RUNS: Final = 200
"""Files that are merged together. By default, macOS lets a process open 256."""
MAX_LINKED: Final = 200_000
"""The most messages that others can link."""
LATEST: Final = 2**43
"""Upper bound of times, in milliseconds since 1970."""
_HEADER: Final = struct.Struct("<qqI")
_LENGTH: Final = struct.Struct("<I")
_MESSAGE_MARK: Final = MESSAGE_MARK.encode()
_decode_message: Final = msgspec.msgpack.Decoder(SourceMessage).decode
_Entry = tuple[int, int, bytes]
"""Milliseconds since 1970, the position in the export, and an encoded `_Waiting`."""


class Findings(Struct, kw_only=True):
    """The results of reading an export for the first time."""

    messages: int = 0
    report: ImportReport = msgspec.field(default_factory=ImportReport)
    strangers: dict[str, str] = {}
    """Names by key of people who wrote messages but aren't in the export."""
    began: dict[str, int] = {}
    """When each channel's first message was sent, in UNIX seconds."""
    newest: int = 0
    """When the newest message was sent, in UNIX seconds."""
    name: str = ""
    """The organization's."""
    origin: str = ""
    """The other server's version, if the export says so."""


class _Waiting(Struct, array_like=True):
    """A message that waits for its key and its topic."""

    channel: Key | None
    thread: str
    """Empty if the message keeps its topic."""
    id: str
    text: str
    """Markdown that the topic's name is taken from."""
    message: msgspec.Raw
    """The encoded `SourceMessage`. Most messages aren't decoded before they're imported."""


class _Placed(Struct, array_like=True):
    """A sorted message, in the file that the import reads."""

    key: int
    topic: str | None
    """None if the message keeps its topic."""
    message: msgspec.Raw


class MessageSorter:
    """Collects messages in any order, and writes them to a file in chronological order."""

    def __init__(
        self,
        target: Path,
        findings: Findings,
        linked: Set[str] = frozenset(),
        tell: TellStage = tell_nobody,
    ) -> None:
        """`linked` are the IDs of messages that others link. They must be complete when `finish` is
        called."""
        self._target = target
        self._findings = findings
        self._linked = linked
        self._tell = tell
        self._some: list[_Entry] = []
        self._bytes = self._number = self._files = 0
        self._runs: list[Path] = []
        self._encoder = msgspec.msgpack.Encoder()

    def add(
        self, at: int, message: SourceMessage, *, thread: str = "", id_: str = "", text: str = ""
    ) -> None:
        """Add a message that was sent at `at`, in milliseconds since 1970. With `thread`, it goes
        into the thread's topic, which is named after the `text` of the oldest message."""
        if message.channel is not None:
            channel, seconds = str(message.channel), at // 1000
            began = self._findings.began
            began[channel] = min(began.get(channel, seconds), seconds)
        self._findings.newest = max(self._findings.newest, at // 1000)
        encoded = msgspec.Raw(self._encoder.encode(message))
        if message.channel is None or not thread:
            thread = text = ""
        record = self._encoder.encode(
            _Waiting(message.channel, thread, id_, text[:MAX_READ], encoded)
        )
        self._some.append((at, self._number, record))
        self._number += 1
        self._bytes += len(record) + 150
        if self._bytes > RUN_BYTES:
            self._write_run()

    def finish(self) -> None:
        """Write the file, and count the messages."""
        self._write_run()
        part = self._target.with_suffix(".part")
        topics = ThreadTopics()
        keys: dict[str, int] = {}
        decoder = msgspec.msgpack.Decoder(_Waiting)
        counter = StageCounter(self._tell, "sorting", self._number)
        try:
            with part.open("wb") as file, ExitStack() as stack:
                for _, _, record in heapq.merge(*(_read_run(run, stack) for run in self._runs)):
                    self._findings.messages += 1
                    counter.add(1)
                    encoded = self._placed(decoder.decode(record), topics, keys)
                    file.write(_LENGTH.pack(len(encoded)))
                    file.write(encoded)
            part.rename(self._target)
        finally:
            topics.close()
            self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        for run in self._runs:
            run.unlink(missing_ok=True)
        self._runs.clear()

    def _placed(self, waiting: _Waiting, topics: ThreadTopics, keys: dict[str, int]) -> bytes:
        """Return the message with its key and its topic, encoded."""
        key = self._findings.messages
        topic = None
        if waiting.thread and waiting.channel is not None:
            topic = topics.topic(waiting.channel, waiting.thread, waiting.text)
        is_linked = waiting.id in self._linked and len(keys) < MAX_LINKED
        if is_linked:
            keys[waiting.id] = key
        encoded = waiting.message
        if is_linked or _MESSAGE_MARK in bytes(encoded):
            message = _decode_message(encoded)
            content = with_message_keys(message.content, keys)
            message = replace(message, is_linked=is_linked, content=content)
            encoded = msgspec.Raw(self._encoder.encode(message))
        return self._encoder.encode(_Placed(key, topic, encoded))

    def _write_run(self) -> None:
        if not self._some:
            return
        if len(self._runs) >= MAX_RUNS:
            self._merge_runs()
        require_room(self._target, LEAST_FREE)
        self._some.sort()
        self._runs.append(self._written(self._some))
        self._some.clear()
        self._bytes = 0

    def _merge_runs(self) -> None:
        with ExitStack() as stack:
            merged = self._written(heapq.merge(*(_read_run(run, stack) for run in self._runs)))
        self.close()
        self._runs.append(merged)

    def _written(self, entries: Iterable[_Entry]) -> Path:
        self._files += 1
        place = self._target.with_suffix(f".run{self._files}")
        with place.open("wb") as file:
            for at, number, record in entries:
                file.write(_HEADER.pack(at, number, len(record)))
                file.write(record)
        return place


def require_room(place: Path, least: int) -> None:
    """Raise SourceError if the disk with this file has less than `least` bytes of free space."""
    if shutil.disk_usage(place.parent).free < least:
        raise SourceError("The disk doesn't have enough room to read the export.")


def _read_run(place: Path, stack: ExitStack) -> Iterator[_Entry]:
    file = stack.enter_context(place.open("rb", buffering=64 * 1024))
    while header := file.read(_HEADER.size):
        at, number, length = _HEADER.unpack(header)
        yield at, number, file.read(length)


class SortedMessages:
    """The file that a `MessageSorter` wrote."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def batches(self, after: str, unread: "UnreadMarks") -> Iterator[MessageBatch]:
        """Yield the messages after the position."""
        decoder = msgspec.msgpack.Decoder(_Placed)
        with self._place.open("rb") as file:
            file.seek(int(after or 0))
            while some := list(_read_messages(file, decoder, unread)):
                yield MessageBatch(tuple(some), str(file.tell()))


def _read_messages(
    file: BinaryIO, decoder: msgspec.msgpack.Decoder[_Placed], unread: "UnreadMarks"
) -> Iterator[SourceMessage]:
    size = 0
    for _ in range(BATCH):
        header = file.read(_LENGTH.size)
        if not header or size > BATCH_BYTES:
            file.seek(-len(header), os.SEEK_CUR)
            return
        length = _LENGTH.unpack(header)[0]
        placed = decoder.decode(file.read(length))
        message = _decode_message(placed.message)
        unread_by = unread.of(message)
        size += length + 8 * len(unread_by)
        yield replace(
            message,
            key=placed.key,
            topic=message.topic if placed.topic is None else placed.topic,
            unread_by=unread_by,
        )


class UnreadMarks:
    """Decides who hasn't read a message, from the time when each person last read its conversation.

    Messages that are `OLDEST` seconds older than the newest one count as read, and so do
    conversations that a person never opened, because nobody goes through years of unread messages.
    """

    OLDEST: Final = 180 * 86_400
    """The age in seconds from which messages count as read."""

    def __init__(self, newest: int) -> None:
        self._since = newest - self.OLDEST
        self._read: dict[Key | tuple[Key, ...], list[tuple[int, Key]]] = {}
        self._is_sorted = True

    def read(self, place: Key | tuple[Key, ...], person: Key, until: int) -> None:
        """Record that someone has read a channel, or a direct conversation, until this time in UNIX
        seconds."""
        if until > 0:
            place = tuple(sorted(set(place), key=str)) if isinstance(place, tuple) else place
            self._read.setdefault(place, []).append((until, person))
            self._is_sorted = False

    def of(self, message: SourceMessage) -> tuple[Key, ...]:
        """Return the people who haven't read the message."""
        if message.sent_at < self._since or not self._read:
            return ()
        if not self._is_sorted:
            for some in self._read.values():
                some.sort(key=lambda pair: -pair[0])
            self._is_sorted = True
        people = tuple(sorted(set(message.people), key=str))
        place = people if message.channel is None else message.channel
        behind = self._read.get(place, [])
        first = bisect.bisect_right(behind, -message.sent_at, key=lambda pair: -pair[0])
        return tuple(person for _, person in behind[first:] if person != message.sender)


def scratch_directory(work: Path, fingerprint: str) -> Path:
    """Return the directory for files derived from an export. Only the server can read it."""
    scratch = work / f"{fingerprint}.read"
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    return scratch


def milliseconds(value: Any) -> int | None:
    """Return a time in milliseconds since 1970, or None if messages can't have it."""
    is_time = isinstance(value, int) and not isinstance(value, bool) and 0 < value < LATEST
    return value if is_time else None
