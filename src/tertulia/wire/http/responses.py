"""What answers of the API look like: JSON with `result`, and an answer's or an error's fields."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from tertulia.wire.http.errors import error_response
from tertulia.wire.http.fragments import FragmentedAnswer, Part

_SUCCESS_WITH_MSG = b'{"result":"success"'
SUCCESS = _SUCCESS_WITH_MSG + b',"msg":""'
"""How every successful answer begins that says nothing of itself."""
_JSON: Final = (b"content-type", b"application/json")
_encoder = msgspec.json.Encoder()


class JsonResponse(Response):
    """A response whose body is JSON already."""

    media_type = "application/json"

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        if headers:
            super().init_headers(headers)
        else:
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), _JSON]


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
