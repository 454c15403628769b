"""JSON responses made of fragments that are cached and shared between viewers.

What consists of many records is encoded shard by shard (`state.shards.Shards`), and a fragment is
cached until its shard's version changes. So a response costs only what is specific to the viewer
and what changed since another viewer asked. See decision 0016.
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
"""The size limit of the cache of fragments."""
MESSAGE_BYTES: Final = 4 * 2**20
"""The size limit of the cache of encoded messages."""
TURN_SECONDS: Final = 0.015
"""The processor time that a response may spend on missing fragments in one turn of the event
loop."""
_MAX_TURNS: Final = 200
_MAKERS: Final = 2
"""The number of responses that make fragments over several turns at the same time."""
MIN_COMPRESSED: Final = 2048
"""Smaller responses aren't compressed."""
MAX_COMPRESSED_ON_LOOP: Final = 128 * 1024
"""Larger fragments are compressed in a thread."""
_OVERHEAD: Final = 600
"""The memory, in bytes, that a cached fragment takes in addition to its content."""

_encoder = msgspec.json.Encoder()
encode: Final = _encoder.encode


class Fragment:
    """Cached JSON, compressed when a client first accepts that."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def is_compressed(self) -> bool:
        return "compressed" in self.__dict__

    @cached_property
    def compressed(self) -> Compressed:
        return compression.compressed(self.content)


Part = bytes | Fragment


class TooLongForOneTurn(Exception):
    """Making the missing fragments would block the event loop."""


class Fragments:
    """A cache of the fragments that were used last, up to `max_bytes`."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[object, Fragment]] = OrderedDict()
        self._bytes_kept = 0
        self._in_turns = asyncio.Semaphore(_MAKERS)
        self._left: float | None = None
        """The time left for making fragments in this turn; None if unlimited."""
        self._made = 0

    async def in_turns(self, make: Callable[[], A]) -> A:
        """Return what `make` makes of fragments, calling it again in further turns of the event
        loop while many are missing."""
        with contextlib.suppress(TooLongForOneTurn):
            return self.in_one_turn(make)
        # The semaphore bounds how many turns others wait for.
        async with self._in_turns:
            for _ in range(_MAX_TURNS):
                await asyncio.sleep(0)
                with contextlib.suppress(TooLongForOneTurn):
                    return self.in_one_turn(make)
            return make()

    def in_one_turn(self, make: Callable[[], A]) -> A:
        """Return what `make` makes of fragments. Raises TooLongForOneTurn if too many are missing;
        those already made stay cached."""
        self._left, self._made = TURN_SECONDS, 0
        try:
            return make()
        finally:
            self._left = None

    def find(self, key: Hashable, version: object) -> Fragment | None:
        """Return the cached fragment of this key and version, if any."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != version:
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def get(self, key: Hashable, version: object, make: Callable[[], bytes]) -> Fragment:
        """Return the cached fragment of this key and version (any comparable value), or make
        one."""
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
        # Reading the cache must not use up the turn, or each turn would make one of hundreds; nor
        # should a busy machine.
        began = time.thread_time()
        fragment = Fragment(make())
        self._left -= time.thread_time() - began
        return fragment

    def _drop(self, key: Hashable) -> None:
        self._bytes_kept -= _weight(self._kept.pop(key)[1])

    def clear(self) -> None:
        self._kept.clear()
        self._bytes_kept = 0


def _weight(fragment: Fragment) -> int:
    # Always count the compressed bytes, which are far fewer.
    return len(fragment.content) * 5 // 4 + _OVERHEAD


class JsonParts:
    """A JSON value in parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts


def json_array(parts: Iterable[Part]) -> JsonParts:
    """Return an array of parts, each of which is items without brackets: `{...},{...}`, or
    empty."""
    return _enclosed(b"[", parts, b"]")


def json_object(parts: Iterable[Part]) -> JsonParts:
    """Return an object of parts, each of which is fields without braces: `"a":1,"b":2`, or
    empty."""
    return _enclosed(b"{", parts, b"}")


def _enclosed(begin: bytes, parts: Iterable[Part], end: bytes) -> JsonParts:
    found: list[Part] = []
    for part in parts:
        if part if isinstance(part, bytes) else part.content:
            found += (b"," if found else begin, part)
    return JsonParts([*found, end] if found else [begin + end])


def array_items(values: Iterable[Any]) -> bytes:
    """Encode values as a part of a `json_array`."""
    return encode(list(values))[1:-1]


def object_fields(value: Mapping[str, Any]) -> bytes:
    """Encode fields as a part of a `json_object`, or for `fragmented`."""
    return encode(value)[1:-1]


class FragmentedResponse:
    """A response's fields in parts, each with a comma before it. Each field is a separate part, so
    that none is compressed with the help of another."""

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
    """Return a response of this kind, some of whose fields are `JsonParts`. `encoded` are fields
    that are JSON already: `"name":value,...`."""
    return cast(A, FragmentedResponse(fields, encoded))


async def compress_fragments(parts: Sequence[Part], accepted: str | None) -> None:
    """Compress the fragments that `body_of` needs, in a thread if that takes long."""
    if accepted is None or not compression.accepts("gzip", accepted):
        return
    missing = [one for one in parts if isinstance(one, Fragment) and not one.is_compressed]
    if sum(len(one.content) for one in missing) > MAX_COMPRESSED_ON_LOOP:
        await asyncio.to_thread(lambda: [one.compressed for one in missing])


def body_of(parts: Sequence[Part], accepted: str | None) -> tuple[bytes, Mapping[str, str]]:
    """Return the parts as one body, and the headers for its encoding. `accepted` is the client's
    `Accept-Encoding`; None if the response is never compressed."""
    if accepted is None:
        return plain(parts), {}
    vary = {"Vary": "Accept-Encoding"}
    if not compression.accepts("gzip", accepted) or _size(parts) < MIN_COMPRESSED:
        return plain(parts), vary
    streams = (part.compressed if isinstance(part, Fragment) else part for part in parts)
    return compression.joined(streams), {**vary, "Content-Encoding": "gzip"}


def plain(parts: Iterable[Part]) -> bytes:
    """Return the parts as one uncompressed body."""
    return b"".join([part if isinstance(part, bytes) else part.content for part in parts])


def _size(parts: Iterable[Part]) -> int:
    return sum(len(part if isinstance(part, bytes) else part.content) for part in parts)
