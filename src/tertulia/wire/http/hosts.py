"""Where the server is, as a request came to it."""

import re
from typing import Final

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.outbound import addresses
from tertulia.service.config import Config

_MAX_PORT: Final = 65535
_AUTHORITY: Final = re.compile(
    rb"(?:(?=.{1,255}(?::|$))(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+\.?|\[([0-9A-Fa-f:.]{2,45})\])"
    rb"(?::([0-9]{1,5}))?"
)


def is_authority(text: bytes) -> bool:
    """Whether the text is a host name or an IP address, with a port or without: what a `Host`
    header may say."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return False
    literal, port = match.groups()
    return (literal is None or addresses.parsed(literal.decode()) is not None) and (
        port is None or int(port) <= _MAX_PORT
    )


def host_of(request: Request) -> str:
    """Scheme and authority by which the client reached the server."""
    host = request.headers.get("host")
    if host is not None and not is_authority(host.encode()):
        raise Refused("The Host header must be a host name, with or without a port.")
    return f"{request.url.scheme}://{request.url.netloc}"


def site_of(config: Config, request: Request) -> str:
    """The organization's address: the configured one, or that by which it was reached."""
    return config.external_url or host_of(request)
