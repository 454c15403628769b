"""Answers put together of JSON, the larger parts of which are kept as fragments that viewers share.

What is made of many records is made shard by shard (`state.shards.Shards`), and each fragment is
kept until its shard has another version: so an answer costs what is the viewer's own, and what has
changed since another viewer asked. See decision 0016.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import msgspec

from tertulia.wire.http import compression
from tertulia.wire.http.compression import Compressed

A = TypeVar("A")

MAX_BYTES: Final = 64 * 2**20
"""Bytes of fragments that a node keeps."""
MESSAGE_BYTES: Final = 4 * 2**20
"""Bytes of encoded messages that a node keeps."""
TURN_SECONDS: Final = 0.015
"""For so long, in processor time, an answer may make missing fragments in one turn of the event
loop."""
_MAX_TURNS: Final = 200
_MAKERS: Final = 2
"""Answers that make fragments in several turns at the same time."""
MIN_COMPRESSED: Final = 2048
"""Bytes; a smaller answer is sent as it is."""
MAX_COMPRESSED_ON_LOOP: Final = 128 * 1024
"""Bytes; to compress more is done in a thread."""
_OVERHEAD: Final = 600
"""Bytes that keeping a fragment costs beside its content, about."""

_encoder = msgspec.json.Encoder()
encode: Final = _encoder.encode


class Fragment:
    """JSON that is kept, and compressed when a client first wants it so."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def is_compressed(self) -> bool:
        """Whether it was compressed already."""
        return "compressed" in self.__dict__

    @cached_property
    def compressed(self) -> Compressed:
        return compression.compressed(self.content)


Part = bytes | Fragment


class TooLongForOneTurn(Exception):
    """Making the missing fragments would hold the event loop for too long."""


class Fragments:
    """The fragments that a node keeps: those that were asked for last, up to `max_bytes`."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[object, Fragment]] = OrderedDict()
        self._bytes_kept = 0
        self._in_turns = asyncio.Semaphore(_MAKERS)
        self._left: float | None = None
        """How long this turn may still make fragments; None where there is no bound."""
        self._made = 0

    async def in_turns(self, make: Callable[[], A]) -> A:
        """What `make` makes of fragments; where many are missing, in several turns of the event
        loop, and so `make` may be called several times."""
        with contextlib.suppress(TooLongForOneTurn):
            return self.in_one_turn(make)
        # All others wait for one turn of each of them.
        async with self._in_turns:
            for _ in range(_MAX_TURNS):
                await asyncio.sleep(0)
                with contextlib.suppress(TooLongForOneTurn):
                    return self.in_one_turn(make)
            return make()

    def in_one_turn(self, make: Callable[[], A]) -> A:
        """What `make` makes of fragments. Raises TooLongForOneTurn where too many are missing;
        those that were made until then are kept."""
        self._left, self._made = TURN_SECONDS, 0
        try:
            return make()
        finally:
            self._left = None

    def find(self, key: Hashable, version: object) -> Fragment | None:
        """The fragment of that key and version, if it is kept: where hundreds are asked for, what
        would make each of them need not be said."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != version:
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def get(self, key: Hashable, version: object, make: Callable[[], bytes]) -> Fragment:
        """The fragment of that key and version (anything that compares): the one that is kept, or
        else a new one."""
        found = self.find(key, version)
        if found is not None:
            return found
        if key in self._kept:
            self._drop(key)
        if self._left is not None and self._made and self._left < 0:
            raise TooLongForOneTurn
        self._made += 1
        fragment = self._new(make)
        self._kept[key] = version, fragment
        self._bytes_kept += _weight(fragment)
        while self._bytes_kept > self._max_bytes:
            self._drop(next(iter(self._kept)))
        return fragment

    def _new(self, make: Callable[[], bytes]) -> Fragment:
        if self._left is None:
            return Fragment(make())
        # What is kept already must not use up the turn: else each would make one fragment, of
        # hundreds. Nor does it count how busy the machine is.
        began = time.thread_time()
        fragment = Fragment(make())
        self._left -= time.thread_time() - began
        return fragment

    def _drop(self, key: Hashable) -> None:
        self._bytes_kept -= _weight(self._kept.pop(key)[1])

    def clear(self) -> None:
        """Drop them all."""
        self._kept.clear()
        self._bytes_kept = 0


def _weight(fragment: Fragment) -> int:
    # The compressed bytes are far fewer, and are counted whether they are there or not.
    return len(fragment.content) * 5 // 4 + _OVERHEAD


# JSON in parts


class JsonParts:
    """A value in JSON, in parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts


def json_array(parts: Iterable[Part]) -> JsonParts:
    """An array of parts that each are items without brackets: `{...},{...}`, or nothing."""
    return _enclosed(b"[", parts, b"]")


def json_object(parts: Iterable[Part]) -> JsonParts:
    """An object of parts that each are fields without braces: `"a":1,"b":2`, or nothing."""
    return _enclosed(b"{", parts, b"}")


def _enclosed(begin: bytes, parts: Iterable[Part], end: bytes) -> JsonParts:
    found: list[Part] = []
    for part in parts:
        if part if isinstance(part, bytes) else part.content:
            found += (b"," if found else begin, part)
    return JsonParts([*found, end] if found else [begin + end])


def array_items(values: Iterable[Any]) -> bytes:
    """A part of a `json_array`."""
    return encode(list(values))[1:-1]


def object_fields(value: Mapping[str, Any]) -> bytes:
    """A part of a `json_object`, or an encoded part of a `fragmented` answer."""
    return encode(value)[1:-1]


class FragmentedAnswer:
    """An answer's fields in parts, each with a comma before it.

    Each field is a part of its own, so that none is compressed with the help of another."""

    def __init__(self, fields: Mapping[str, Any], encoded: Sequence[Fragment]) -> None:
        self.parts: list[Part] = []
        for fragment in encoded:
            self.parts += (b",", fragment)
        for name, value in fields.items():
            begins = b"," + encode(name) + b":"
            if isinstance(value, JsonParts):
                self.parts += (begins, *value.parts)
            else:
                self.parts.append(begins + encode(value))


def fragmented(
    kind: Callable[..., A], fields: Mapping[str, Any], encoded: Sequence[Fragment] = ()
) -> A:
    """An answer of that kind, some of whose fields are `JsonParts`; the fields in `encoded` are
    JSON already: `"name":value,...`."""
    return cast(A, FragmentedAnswer(fields, encoded))


# The body


async def compress_fragments(parts: Sequence[Part], accepted: str | None) -> None:
    """Compress the fragments that `body_of` will want compressed: in a thread where that takes
    long."""
    if accepted is None or not compression.accepts("gzip", accepted):
        return
    missing = [one for one in parts if isinstance(one, Fragment) and not one.is_compressed]
    if sum(len(one.content) for one in missing) > MAX_COMPRESSED_ON_LOOP:
        await asyncio.to_thread(lambda: [one.compressed for one in missing])


def body_of(parts: Sequence[Part], accepted: str | None) -> tuple[bytes, Mapping[str, str]]:
    """The parts as one body, and the headers that say how it is encoded. `accepted` is the
    client's `Accept-Encoding`; None where the answer is never compressed."""
    if accepted is None:
        return plain(parts), {}
    vary = {"Vary": "Accept-Encoding"}
    if not compression.accepts("gzip", accepted) or _size(parts) < MIN_COMPRESSED:
        return plain(parts), vary
    streams = (part.compressed if isinstance(part, Fragment) else part for part in parts)
    return compression.joined(streams), {**vary, "Content-Encoding": "gzip"}


def plain(parts: Iterable[Part]) -> bytes:
    """The parts as one body, not compressed."""
    return b"".join([part if isinstance(part, bytes) else part.content for part in parts])


def _size(parts: Iterable[Part]) -> int:
    return sum(len(part if isinstance(part, bytes) else part.content) for part in parts)
