"""What answers of the API look like: JSON with `result`, and an answer's or an error's fields."""

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tertulia.wire.http.client_address import client_network
from tertulia.wire.http.errors import TooMuchUnread, error_response
from tertulia.wire.http.fragments import FragmentedAnswer, Part

_SUCCESS_WITH_MSG = b'{"result":"success"'
SUCCESS = _SUCCESS_WITH_MSG + b',"msg":""'
"""How every successful answer begins that says nothing of itself."""
_JSON: Final = (b"content-type", b"application/json")
_encoder = msgspec.json.Encoder()


PART_BYTES: Final = 256 * 1024
"""A larger body is sent in parts of this size, each when the client has taken the one before."""


class AnswerRoom:
    """How much the bodies may have, together, that clients have not taken yet. Clients that read
    slowly use up what they have themselves, and not the memory of the server."""

    def __init__(self, most: int, most_each: int) -> None:
        """In bytes: of all clients, and of one account or one network without account."""
        self.most, self.most_each = most, most_each
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()

    def has(self, who: Hashable, size: int) -> bool:
        """Whether there is room for a body of that size. A client always has room for one body."""
        own = self.taken_by[who]
        return self.taken + size <= self.most and (not own or own + size <= self.most_each)

    @contextlib.contextmanager
    def take(self, who: Hashable, size: int) -> Iterator[None]:
        """Count a body while it is sent."""
        self.taken += size
        self.taken_by[who] += size
        try:
            yield
        finally:
            self.taken -= size
            self.taken_by[who] -= size
            if not self.taken_by[who]:
                del self.taken_by[who]


answer_room: Final = AnswerRoom(256 * 2**20, 48 * 2**20)
"""Of this process."""


class JsonResponse(Response):
    """A response whose body is JSON already."""

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self.body
        if len(body) <= PART_BYTES:
            await super().__call__(scope, receive, send)
            return
        who = _who(Request(scope))
        if not answer_room.has(who, len(body)):
            await failure(TooMuchUnread())(scope, receive, send)
            return
        with answer_room.take(who, len(body)):
            start = {"type": "http.response.start", "status": self.status_code}
            await send({**start, "headers": self.raw_headers})
            for begin in range(0, len(body), PART_BYTES):
                end = begin + PART_BYTES
                part = bytes(body[begin:end])
                more = end < len(body)
                await send({"type": "http.response.body", "body": part, "more_body": more})

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        if headers:
            super().init_headers(headers)
        else:
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), _JSON]


def _who(request: Request) -> Hashable:
    """Whose room an answer takes: the account's, or the network's that it comes from."""
    user = getattr(request.state, "user", None)
    return client_network(request) if user is None else user.id


def success(answer: Any, ignored: list[str]) -> list[Part]:
    """The body of a success response: an answer's fields beside the common ones."""
    # What the request said stands by itself: see decision 0016.
    rest = b',"ignored_parameters_unsupported":' + _encoder.encode(ignored) if ignored else b""
    if isinstance(answer, FragmentedAnswer):
        return [SUCCESS, *answer.parts, rest + b"}"]
    encoded = answer if isinstance(answer, msgspec.Raw) else _encoder.encode(answer)
    fields = bytes(encoded)
    # What an answer says of itself in words stands in place of the empty `msg`.
    begins = SUCCESS if not fields.startswith(b'{"msg":') else _SUCCESS_WITH_MSG
    return [begins + (b"," + fields[1:-1] if len(fields) > 2 else b""), rest + b"}"]


class Failure(JsonResponse):
    """A response with an error. `code` is what programs know it by."""

    code = ""


def failure(error: Exception) -> Failure:
    """The response for an error."""
    status, fields, headers = error_response(error)
    body = _encoder.encode({"result": "error", **fields})
    response = Failure(body, status_code=status, headers=headers)
    response.code = fields["code"]
    return response
