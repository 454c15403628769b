"""One request, as a handler sees it."""

from msgspec import Struct
from starlette.requests import Request

from tertulia.service.caller import Caller
from tertulia.store.uploads import ArrivedFile
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import site_of


class Call(Caller, frozen=True, kw_only=True):
    """A request: the caller, the program, and the node."""

    node: HttpNode
    client: str
    """The program's name."""
    request: Request
    session_id: int | None = None
    """Of the browser's session by which the caller is known; None for an API key."""
    uploads: "tuple[Upload, ...]" = ()
    ignored: list[str] = []
    """Parameters that the handler ignored, named in the answer beside those that are not known."""
    file: ArrivedFile | None = None
    """Of endpoints that take one."""
    body: bytes = b""
    """As it came, for endpoints that take what others send."""
    answer_headers: dict[str, str] = {}
    """More of them, for the answer."""

    @property
    def url(self) -> str:
        """The organization's address: the configured one, or that by which it was reached. Refused
        where that is no address."""
        return site_of(self.node.config, self.request)


class Upload(Struct, frozen=True):
    """A file that came with the request."""

    name: str
    content_type: str
    content: bytes
