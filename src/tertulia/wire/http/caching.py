"""Answers that rarely change: 304 for clients that have them already."""

import hashlib
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response


def unless_known(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str]
) -> Response:
    """The content with its ETag, or 304 where the client says that it has it."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    sent = {"ETag": tag, **headers}
    header = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in header.split(",")}
    if tag in known or "*" in known:
        # It has no content, and so none that is packed.
        sent.pop("Content-Encoding", None)
        return Response(status_code=304, headers=sent)
    return Response(content, media_type=media_type, headers=sent)
