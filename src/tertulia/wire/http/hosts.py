"""Where the server is, as a request came to it."""

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.service.config import Config


def host_of(request: Request) -> str:
    """Scheme and authority by which the client reached the server."""
    try:
        return f"{request.url.scheme}://{request.url.netloc}"
    except ValueError:
        raise Refused("The Host header is not the name of a host.") from None


def site_of(config: Config, request: Request) -> str:
    """The organization's address: the configured one, or that by which it was reached."""
    return config.external_url or host_of(request)
