"""Responses of the API: JSON with `result` and the fields of a response or an error, and common
headers."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tertulia.model.users import User
from tertulia.wire.http.errors import TooMuchUnread, error_response
from tertulia.wire.http.fragments import FragmentedResponse, Part
from tertulia.wire.http.rate_limits import LIMIT, REMAINING, RESET
from tertulia.wire.http.request_head import POSITION, client_network

_SUCCESS_WITH_MSG = b'{"result":"success"'
SUCCESS = _SUCCESS_WITH_MSG + b',"msg":""'
"""The beginning of every successful response without a message."""
_JSON: Final = (b"content-type", b"application/json")
_encoder = msgspec.json.Encoder()


PART_BYTES: Final = 64 * 1024
"""Larger bodies are sent in parts of this size, each when the client has taken the previous one."""
MIB: Final = 2**20
_STRANGERS: Final = "strangers"
IN_PROGRESS: Final = 2 * MIB
"""The size that a response counts for while it is made, when its size isn't known yet."""


class UnreadResponses:
    """Limits the responses that clients haven't read yet: in total, per network, and per person
    with their bots (or per network of anonymous clients). All anonymous clients together may leave
    as much unread as one network, since one person can have many of these. Only bodies larger than
    `PART_BYTES` count."""

    def __init__(self, most: int, of_network: int, of_one: int) -> None:
        """Sizes are in bytes."""
        self._most, self._of_network, self._of_one = most, of_network, of_one
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()

    def take(self, user: User | None, network: str | None, size: int) -> Callable[[], None]:
        """Count a body until the returned function is called. A client always has room for one body
        if others leave some. Raises TooMuchUnread."""
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
        found: list[tuple[Hashable, int]] = [(user.person_id, self._of_one)]
        return found if network is None else [*found, (network, self._of_network)]

    def _add(self, counted: Iterable[tuple[Hashable, int]], size: int) -> None:
        self.taken += size
        for who, _ in counted:
            self.taken_by[who] += size
            if not self.taken_by[who]:
                del self.taken_by[who]


unread_responses: Final = UnreadResponses(256 * MIB, of_network=128 * MIB, of_one=48 * MIB)
"""The room of this process."""


@contextlib.contextmanager
def making_large_response(request: Request) -> Iterator[None]:
    """Count a potentially large response while it is made, so that a client that has too much
    unread is refused before the work is done. Raises TooMuchUnread."""
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
"""The content policy of responses that aren't pages: if a browser shows one, it loads and runs
nothing, and no other page can embed it."""
PICTURE: Final = f"{NOTHING}; sandbox"
"""The content policy of images."""

EXPOSED = f"{LIMIT}, {REMAINING}, {RESET}, Retry-After, {POSITION}"
"""The headers that scripts of other sites may read."""

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, {POSITION}",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
    "Access-Control-Expose-Headers": EXPOSED,
}


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers in ASGI's form."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


HEADERS_PAGES = encoded({"X-Content-Type-Options": "nosniff", "Content-Security-Policy": NOTHING})
HEADERS_API = HEADERS_PAGES + encoded({**_CORS, "Cache-Control": "no-store"})


def unless_known(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str]
) -> Response:
    """Return the content with its ETag, or 304 if the client has it."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    sent = {"ETag": tag, **headers}
    header = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in header.split(",")}
    if tag in known or "*" in known:
        # An empty body has no encoding.
        sent.pop("Content-Encoding", None)
        return Response(status_code=304, headers=sent)
    return Response(content, media_type=media_type, headers=sent)
