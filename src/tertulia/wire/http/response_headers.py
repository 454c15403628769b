"""The headers that all responses have."""

from collections.abc import Mapping

from tertulia.wire.http import content_policies
from tertulia.wire.http.positions import POSITION
from tertulia.wire.http.rate_limits import LIMIT, REMAINING, RESET

EXPOSED = f"{LIMIT}, {REMAINING}, {RESET}, Retry-After, {POSITION}"
"""What a script of another server's page may read of every answer."""

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, {POSITION}",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
    "Access-Control-Expose-Headers": EXPOSED,
}


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """The headers as ASGI takes them."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


HEADERS_PAGES = encoded(
    {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": content_policies.NOTHING}
)
HEADERS_API = HEADERS_PAGES + encoded({**_CORS, "Cache-Control": "no-store"})
