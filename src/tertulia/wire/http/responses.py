"""Responses of the API: their JSON, common headers, and cached fragments.

Large collections are encoded shard by shard (`state.shards.Shards`), and a fragment is cached until
its shard's version changes. So a response takes work only for the parts that are specific to the
viewer and those that have changed since another viewer asked. See decision 0016.
"""

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tertulia.model.users import User
from tertulia.wire.http import compression
from tertulia.wire.http.compression import Compressed
from tertulia.wire.http.errors import TooMuchUnread, error_response
from tertulia.wire.http.loop_turns import STEP_SECONDS, LoopTurns
from tertulia.wire.http.rate_limits import LIMIT, REMAINING, RESET
from tertulia.wire.http.request_head import POSITION, client_network

A = TypeVar("A")

MAX_BYTES: Final = 48 * 2**20
"""The size of the cache of fragments, in bytes."""
MESSAGE_BYTES: Final = 4 * 2**20
"""The size of the cache of encoded messages, in bytes."""
_MAX_STEPS: Final = 500
MIN_COMPRESSED: Final = 2048
"""Smallest response that is compressed, in bytes."""
MAX_COMPRESSED_ON_LOOP: Final = 128 * 1024
"""Largest fragment that is compressed on the event loop, in bytes. Larger ones are compressed in a
thread."""
_OVERHEAD: Final = 600
"""The memory of a cached fragment in addition to its content, in bytes."""

_encoder = msgspec.json.Encoder()
encode: Final = _encoder.encode


class Fragment:
    """Cached JSON. It's compressed when a client first accepts that."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def is_compressed(self) -> bool:
        return "compressed" in self.__dict__

    @cached_property
    def compressed(self) -> Compressed:
        return compression.compressed(self.content)


Part = bytes | Fragment


class TooLongForOneStep(Exception):
    """Making the missing fragments would block the event loop."""


class Fragments:
    """A cache of the most recently used fragments, up to `max_bytes`."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[object, Fragment]] = OrderedDict()
        self._bytes_kept = 0
        self.turns = LoopTurns()
        self._left: float | None = None
        """The time left for making fragments in this step; None if unlimited."""
        self._made = 0

    async def in_steps(self, make: Callable[[], A]) -> A:
        """Return what `make` makes of fragments. While many are missing, it's called again in
        further steps. Call this within one of the `turns`."""
        for _ in range(_MAX_STEPS):
            with contextlib.suppress(TooLongForOneStep):
                return self.in_one_step(make)
            await self.turns.rest()
        return self.turns.step(make)

    def in_one_step(self, make: Callable[[], A]) -> A:
        """Return what `make` makes of fragments. Raises TooLongForOneStep if too many are missing.
        Completed fragments stay cached."""
        self._left, self._made = STEP_SECONDS, 0
        try:
            return self.turns.step(make)
        finally:
            self._left = None

    def find(self, key: Hashable, version: object) -> Fragment | None:
        """Return the cached fragment of this key and version, if any."""
        entry = self._kept.get(key)
        if entry is None or entry[0] != version:
            return None
        self._kept.move_to_end(key)
        return entry[1]

    def get(self, key: Hashable, version: object, make: Callable[[], bytes]) -> Fragment:
        """Return the cached fragment of this key and version (any comparable value), or make
        one."""
        value = self.find(key, version)
        if value is not None:
            return value
        if key in self._kept:
            self._drop(key)
        fragment = Fragment(self.measured(make))
        self._kept[key] = version, fragment
        self._bytes_kept += _weight(fragment)
        while self._bytes_kept > self._max_bytes:
            self._drop(next(iter(self._kept)))
        return fragment

    def measured(self, make: Callable[[], bytes]) -> bytes:
        """Return what `make` makes, as a part of a step. Raises TooLongForOneStep if the step has
        no time left."""
        if self._left is None:
            return make()
        if self._made and self._left < 0:
            raise TooLongForOneStep
        self._made += 1
        # Reading the cache must not use up the step, or each step would make only one of hundreds
        # of fragments. A busy machine must not use it up either.
        began = time.thread_time()
        made = make()
        self._left -= time.thread_time() - began
        return made

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
    enclosed: list[Part] = []
    for part in parts:
        if part if isinstance(part, bytes) else part.content:
            enclosed += (b"," if enclosed else begin, part)
    return JsonParts([*enclosed, end] if enclosed else [begin + end])


def array_items(values: Iterable[Any]) -> bytes:
    """Encode values as a part of a `json_array`."""
    return encode(list(values))[1:-1]


def object_fields(value: Mapping[str, Any]) -> bytes:
    """Encode fields as a part of a `json_object`, or for `fragmented`."""
    return encode(value)[1:-1]


class FragmentedResponse:
    """A response's fields in parts, each preceded by a comma. Each field is a separate part, so
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
    """Return a response of this kind. Some of its fields are `JsonParts`, and `encoded` has fields
    that are already JSON: `"name":value,...`."""
    return cast(A, FragmentedResponse(fields, encoded))


async def compress_fragments(parts: Sequence[Part], accepted: str | None) -> None:
    """Compress the fragments that `body_of` needs, in a thread if that takes long."""
    if accepted is None or not compression.accepts("gzip", accepted):
        return
    missing = [part for part in parts if isinstance(part, Fragment) and not part.is_compressed]
    if sum(len(fragment.content) for fragment in missing) > MAX_COMPRESSED_ON_LOOP:
        await asyncio.to_thread(lambda: [fragment.compressed for fragment in missing])


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


_SUCCESS_WITH_MSG = b'{"result":"success"'
SUCCESS = _SUCCESS_WITH_MSG + b',"msg":""'
"""The beginning of every successful response without a message."""
_JSON: Final = (b"content-type", b"application/json")


PART_BYTES: Final = 64 * 1024
"""The size of parts in which larger bodies are sent, in bytes. Each is sent after the client has
taken the previous one."""
MIB: Final = 2**20
_STRANGERS: Final = "strangers"
IN_PROGRESS: Final = 2 * MIB
"""The size that a response counts for while it's made and its size isn't known yet, in bytes."""


class UnreadResponses:
    """Limits the responses that clients haven't read yet: in total, per network, and per person
    including their bots (or per network of anonymous clients). All anonymous clients together have
    the limit of one network, since one person can use many. Only bodies larger than `PART_BYTES`
    count."""

    def __init__(self, most: int, of_network: int, of_one: int) -> None:
        """All limits are in bytes."""
        self._most, self._of_network, self._of_one = most, of_network, of_one
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()

    def take(self, user: User | None, network: str | None, size: int) -> Callable[[], None]:
        """Count a body until the returned function is called. A client may always have one unread
        body if the total allows it. Raises TooMuchUnread."""
        counted = self._counted(user, network)
        for who, most in counted:
            if self.taken_by[who] and self.taken_by[who] + size > most:
                raise TooMuchUnread
        if self.taken + size > self._most:
            raise TooMuchUnread
        self._add(counted, size)
        return partial(self._add, counted, -size)

    def _counted(self, user: User | None, network: str | None) -> list[tuple[Hashable, int]]:
        if user is None:
            return [(network, self._of_one), (_STRANGERS, self._of_network)]
        budgets: list[tuple[Hashable, int]] = [(user.person_id, self._of_one)]
        return budgets if network is None else [*budgets, (network, self._of_network)]

    def _add(self, counted: Iterable[tuple[Hashable, int]], size: int) -> None:
        self.taken += size
        for who, _ in counted:
            self.taken_by[who] += size
            if not self.taken_by[who]:
                del self.taken_by[who]


unread_responses: Final = UnreadResponses(256 * MIB, of_network=128 * MIB, of_one=48 * MIB)
"""The limits of this process."""


@contextlib.contextmanager
def making_large_response(request: Request) -> Iterator[None]:
    """Count a potentially large response while it's made, so that a client with too much unread
    data is refused before the work is done. Raises TooMuchUnread."""
    release = unread_responses.take(*_asking(request), IN_PROGRESS)
    try:
        yield
    finally:
        release()


def _asking(request: Request) -> tuple[User | None, str | None]:
    return getattr(request.state, "user", None), client_network(request)


class JsonResponse(Response):
    """A response whose body is already JSON."""

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self.body
        if len(body) <= PART_BYTES:
            await super().__call__(scope, receive, send)
            return
        try:
            release = unread_responses.take(*_asking(Request(scope)), len(body))
        except TooMuchUnread as refusal:
            await failure(refusal)(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": self.status_code}
        try:
            await send({**start, "headers": self.raw_headers})
            for begin in range(0, len(body), PART_BYTES):
                end = begin + PART_BYTES
                part = bytes(body[begin:end])
                more = end < len(body)
                await send({"type": "http.response.body", "body": part, "more_body": more})
        finally:
            release()

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        if headers:
            super().init_headers(headers)
        else:
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), _JSON]


def success(answer: Any, ignored: list[str]) -> list[Part]:
    """Return the body of a successful response in parts."""
    # Text from the request is a separate part: see decision 0016.
    rest = b',"ignored_parameters_unsupported":' + _encoder.encode(ignored) if ignored else b""
    if isinstance(answer, FragmentedResponse):
        return [SUCCESS, *answer.parts, rest + b"}"]
    encoded = answer if isinstance(answer, msgspec.Raw) else _encoder.encode(answer)
    fields = bytes(encoded)
    # A response's own `msg` replaces the empty one.
    begins = SUCCESS if not fields.startswith(b'{"msg":') else _SUCCESS_WITH_MSG
    return [begins + (b"," + fields[1:-1] if len(fields) > 2 else b""), rest + b"}"]


class Failure(JsonResponse):
    """An error response."""

    code = ""


def failure(error: Exception) -> Failure:
    status, fields, headers = error_response(error)
    body = _encoder.encode({"result": "error", **fields})
    response = Failure(body, status_code=status, headers=headers)
    response.code = fields["code"]
    return response


NOTHING: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The content security policy of responses that aren't pages: if a browser shows one, it loads and
runs nothing, and no other page can embed it."""
PICTURE: Final = f"{NOTHING}; sandbox"
"""The content security policy of images."""

EXPOSED = f"{LIMIT}, {REMAINING}, {RESET}, Retry-After, {POSITION}"
"""The headers that scripts of other sites may read."""

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, {POSITION}",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
    "Access-Control-Expose-Headers": EXPOSED,
}


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers in ASGI's format."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


HEADERS_PAGES = encoded({"X-Content-Type-Options": "nosniff", "Content-Security-Policy": NOTHING})
HEADERS_API = HEADERS_PAGES + encoded({**_CORS, "Cache-Control": "no-store"})


def unless_known(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str]
) -> Response:
    """Return the content with its ETag, or 304 if the client already has it."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    sent = {"ETag": tag, **headers}
    header = request.headers.get("if-none-match", "")
    known = {text.strip().removeprefix("W/") for text in header.split(",")}
    if tag in known or "*" in known:
        # An empty body has no encoding.
        sent.pop("Content-Encoding", None)
        return Response(status_code=304, headers=sent)
    return Response(content, media_type=media_type, headers=sent)
