"""The targets of requests to other servers."""

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from tertulia.outbound.http_responses import NotFetched

# Imported with the first request, because that is slow.
if TYPE_CHECKING:
    import httpcore

MAX_URL: Final = 2000
"""Longest URL, in characters."""
_PORTS: Final = {"http": 80, "https": 443}
WEB_PORTS: Final = frozenset(_PORTS.values())
"""The ports of public services. Others can't be used, and must not use HTTP."""


class HttpTarget(NamedTuple):
    """The target of a request."""

    url: str
    origin: "httpcore.Origin"
    host: str
    """Without the brackets of an IPv6 address."""
    authority: str
    path: bytes


def target_of(url: str) -> HttpTarget:
    """Parse a URL. Raise NotFetched if it isn't allowed."""
    import httpcore
    import httpx

    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise NotFetched("the URL isn't valid") from None
    if parts.scheme not in _PORTS or not parts.host or len(url) > MAX_URL:
        raise NotFetched("it isn't an http:// or https:// URL")
    if parts.userinfo:
        raise NotFetched("the URL contains a password")
    port = _PORTS[parts.scheme] if parts.port is None else parts.port
    host = parts.raw_host.strip(b"[]")
    origin = httpcore.Origin(parts.raw_scheme, host, port)
    return HttpTarget(
        url, origin, host.decode("ascii"), parts.netloc.decode("ascii"), parts.raw_path
    )


@lru_cache(4)
def host_of(site: str) -> str:
    """Return the host of this server's own URL; may be empty."""
    import httpx

    try:
        return httpx.URL(site).raw_host.decode("ascii").strip("[]").rstrip(".") if site else ""
    except httpx.InvalidURL:
        return ""


def joined(url: str, location: str) -> str:
    """Return the URL that a redirect leads to. Raise NotFetched if its location isn't a URL."""
    try:
        url_there = urljoin(url, location)
        urlsplit(url_there)
    except ValueError:
        raise NotFetched("it redirects to an invalid URL") from None
    return url_there
