"""Answers spliced from pieces of JSON, of which those that are the same for many are kept.

What is made of many records is made stretch by stretch (`state.tables.Stretches`) and kept until
the stretch is another: so an answer costs what is its own, and what has changed since somebody
else was told. See decision 0016.
"""

import asyncio
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from tertulia.state.tables import Shards
from tertulia.wire.http import compression
from tertulia.wire.http.compression import Packed

T = TypeVar("T")
A = TypeVar("A")

ROOM: Final = 64 * 2**20
"""Bytes of fragments that a node keeps."""
TURN_SECONDS: Final = 0.015
"""For so long an answer may be made of fragments that are not there yet, in one turn."""
_TURNS: Final = 200
WORTH_PACKING: Final = 2048
"""Bytes; a smaller answer is sent as it is."""
LONG_PACKING: Final = 128 * 1024
"""Bytes; to compress more is not done on the event loop."""
_OVERHEAD: Final = 600
"""Bytes that keeping a fragment costs beside its content, about."""

_encoder = msgspec.json.Encoder()
encode: Final = _encoder.encode


class Fragment:
    """JSON that is kept, and compressed when somebody first wants it so."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def is_packed(self) -> bool:
        """Whether it was compressed already."""
        return "packed" in self.__dict__

    @cached_property
    def packed(self) -> Packed:
        return compression.packed(self.content)


Part = bytes | Fragment


class TakesLong(Exception):
    """So many fragments are to be made that the event loop would be held for too long."""


class Fragments:
    """The fragments that are kept: those that were asked for last, as far as there is room."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._kept: OrderedDict[Hashable, tuple[Hashable, Fragment]] = OrderedDict()
        self._taken = 0
        self._until: float | None = None
        """When so much has been made in a turn that the rest has to wait; None where all of it is
        made at once."""
        self._made = 0

    async def without_hurry(self, make: Callable[[], A]) -> A:
        """What is made of fragments, which are made in several turns of the loop where they are
        many. `make` may be called several times."""
        for _ in range(_TURNS):
            try:
                return self.at_once(make)
            except TakesLong:
                await asyncio.sleep(0)
        return make()

    def at_once(self, make: Callable[[], A]) -> A:
        """What is made of fragments, if few of them have to be made. Raises TakesLong; what was
        made until then is kept."""
        self._until, self._made = time.perf_counter() + TURN_SECONDS, 0
        try:
            return make()
        finally:
            self._until = None

    def get(self, key: Hashable, stamp: Hashable, make: Callable[[], bytes]) -> Fragment:
        """The fragment of that key, made of what the stamp stands for; made anew if the one that
        is kept was made of something else."""
        kept = self._kept.get(key)
        if kept is not None:
            if kept[0] == stamp:
                self._kept.move_to_end(key)
                return kept[1]
            self._forget(key)
        if self._until is not None and self._made and time.perf_counter() > self._until:
            raise TakesLong
        self._made += 1
        fragment = Fragment(make())
        self._kept[key] = stamp, fragment
        self._taken += _weight(fragment)
        while self._taken > self._room:
            self._forget(next(iter(self._kept)))
        return fragment

    def _forget(self, key: Hashable) -> None:
        self._taken -= _weight(self._kept.pop(key)[1])

    def clear(self) -> None:
        """Forget them all."""
        self._kept.clear()
        self._taken = 0


def _weight(fragment: Fragment) -> int:
    # What is compressed is far smaller, and counted whether it is there or not.
    return len(fragment.content) * 5 // 4 + _OVERHEAD


class Pieces:
    """A value in JSON, in parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts


def array(parts: Iterable[Part]) -> Pieces:
    """An array of what the parts are lists of, without brackets: `{...},{...}`, or nothing."""
    return _enclosed(b"[", parts, b"]")


def mapping(parts: Iterable[Part]) -> Pieces:
    """An object of what the parts are fields of, without braces: `"a":1,"b":2`, or nothing."""
    return _enclosed(b"{", parts, b"}")


def _enclosed(begin: bytes, parts: Iterable[Part], end: bytes) -> Pieces:
    found: list[Part] = []
    for part in parts:
        if part if isinstance(part, bytes) else part.content:
            found += (b"," if found else begin, part)
    return Pieces([*found, end] if found else [begin + end])


def listed(values: Iterable[Any]) -> bytes:
    """A part of an `array`."""
    return encode(list(values))[1:-1]


class Spliced:
    """The fields of an answer, some of which are `Pieces`."""

    def __init__(self, fields: Mapping[str, Any], kept: Sequence[Fragment]) -> None:
        self.parts: list[Part] = []
        """Each field has a comma before it. Each is a part, so that none is compressed with the
        help of another."""
        for fragment in kept:
            self.parts += (b",", fragment)
        for name, value in fields.items():
            begins = b"," + encode(name) + b":"
            if isinstance(value, Pieces):
                self.parts += (begins, *value.parts)
            else:
                self.parts.append(begins + encode(value))


def spliced(kind: Callable[..., A], fields: Mapping[str, Any], kept: Sequence[Fragment] = ()) -> A:
    """An answer of that kind, some of whose fields are `Pieces`; `kept` are others that are encoded
    already: `"name":value,...`."""
    return cast(A, Spliced(fields, kept))


def fields(value: Mapping[str, Any]) -> bytes:
    """A part of a `mapping`, or what `spliced` takes as kept."""
    return encode(value)[1:-1]


# The body


async def pack(parts: Sequence[Part], accepted: str | None) -> None:
    """Compress what `body_of` will want compressed: in a thread where that takes long."""
    if accepted is None or not compression.takes_gzip(accepted):
        return
    missing = [one for one in parts if isinstance(one, Fragment) and not one.is_packed]
    if sum(len(one.content) for one in missing) > LONG_PACKING:
        await asyncio.to_thread(lambda: [one.packed for one in missing])


def body_of(parts: Sequence[Part], accepted: str | None) -> tuple[bytes, Mapping[str, str]]:
    """The parts as one body, and the headers that say how it is encoded. `accepted` is what the
    client says that it reads; None where the answer is never compressed."""
    if accepted is None:
        return _plain(parts), {}
    vary = {"Vary": "Accept-Encoding"}
    if not compression.takes_gzip(accepted) or _size(parts) < WORTH_PACKING:
        return _plain(parts), vary
    packed = (part.packed if isinstance(part, Fragment) else part for part in parts)
    return compression.joined(packed), {**vary, "Content-Encoding": "gzip"}


def _plain(parts: Iterable[Part]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else part.content for part in parts)


def _size(parts: Iterable[Part]) -> int:
    return sum(len(part if isinstance(part, bytes) else part.content) for part in parts)


# Shards


class Run(NamedTuple, Generic[T]):
    """Some of a table's IDs, all of one kind: a stretch, or a half of one, a quarter and so on."""

    first: int
    size: int
    """For how many IDs there is room."""
    ids: Sequence[int]
    """Those that there are."""
    version: int
    """Another one when something of them has changed."""
    kind: T


def runs(stretches: Shards[Any], usual: T, odd: Mapping[int, T]) -> list[Run[T]]:
    """All of a table's IDs, ascending: of the `usual` kind, or of that which `odd` says of an ID.

    Runs of different viewers are the same as far as they see the same.
    """
    found: list[Run[T]] = []
    odd_ids = sorted(odd)
    for first, ids, version in stretches:
        _divide(Run(first, stretches.SIZE, ids, version, usual), odd, odd_ids, found)
    return found


def _divide(run: Run[T], odd: Mapping[int, T], odd_ids: Sequence[int], found: list[Run[T]]) -> None:
    first, size, ids, version, usual = run
    if not ids:
        return
    begin = bisect_left(odd_ids, first)
    there = odd_ids[begin : bisect_left(odd_ids, first + size, begin)]
    if not there:
        found.append(run)
        return
    kinds = {odd[one] for one in there}
    if len(kinds) == 1 and len(there) == len(ids):
        found.append(Run(first, size, ids, version, kinds.pop()))
        return
    half = size // 2
    middle = bisect_left(ids, first + half)
    _divide(Run(first, half, ids[:middle], version, usual), odd, there, found)
    _divide(Run(first + half, half, ids[middle:], version, usual), odd, there, found)
