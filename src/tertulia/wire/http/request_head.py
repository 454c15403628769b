"""A request's head: raw headers (lowercase names, byte values), client addresses, paths, and cookie
names."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.routing import compile_path

from tertulia.model.errors import Refused
from tertulia.outbound import addresses
from tertulia.service.config import Config

Headers = Sequence[tuple[bytes, bytes]]


def header(headers: Headers, name: bytes) -> str | None:
    """Return the first header with this name."""
    for item, value in headers:
        if item == name:
            return value.decode("latin-1")
    return None


def first_of_each(headers: Headers) -> Mapping[bytes, bytes]:
    """Return the headers by name. If a header is repeated, the first one counts."""
    return dict(reversed(headers))


_LONGEST: Final = 64
"""The length, in characters, that addresses are cut to."""


def client_address(request: Request) -> str:
    """Return the client's IP address; `-` if unknown."""
    return (request.client.host[:_LONGEST] if request.client else "") or "-"


def client_network(request: Request) -> str | None:
    """Return the client's network (`network_of`)."""
    return network_of(request.client.host) if request.client else None


def network_of(host: str) -> str:
    """Return the IPv4 address, or the /64 network of an IPv6 address, since one computer may have
    all of its addresses."""
    if ":" not in host:
        return host[:_LONGEST]
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host[:_LONGEST]
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return address.packed[:8].hex(":", 2) + "::/64"


_MAX_PORT: Final = 65535
_AUTHORITY: Final = re.compile(
    rb"(?:(?=.{1,255}(?::|$))(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+\.?|\[([0-9A-Fa-f:.]{2,45})\])"
    rb"(?::([0-9]{1,5}))?"
)


def is_authority(text: bytes) -> bool:
    """Return whether the text is a host name or an IP address with an optional port, as allowed in
    `Host`."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return False
    literal, port = match.groups()
    return (literal is None or addresses.parsed(literal.decode()) is not None) and (
        port is None or int(port) <= _MAX_PORT
    )


def host_of(request: Request) -> str:
    """Return the scheme and authority that the client used."""
    host = request.headers.get("host")
    if host is not None and not is_authority(host.encode()):
        raise Refused("The Host header must be a host name, with or without a port.")
    return f"{request.url.scheme}://{request.url.netloc}"


def site_of(config: Config, request: Request) -> str:
    """Return the organization's URL: the configured one, or the one that the client used."""
    return config.external_url or host_of(request)


T = TypeVar("T")


class _Digits(Convertor[str]):
    """An ID in a path, as text, of at most 16 digits."""

    regex = "0|[1-9][0-9]{0,15}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _Digits())


class Paths(Generic[T]):
    """Values by path. Paths without parameters are looked up directly. Others are tried in order if
    their first word matches."""

    def __init__(self, prefix: str, places: Mapping[str, T]) -> None:
        """`places` has the values by path without the prefix. Parameters are `{name}` or
        `{name:int}`."""
        self.paths = tuple(places)
        """The paths without the prefix."""
        self._exact: dict[str, T] = {}
        self._begun: dict[str, list[tuple[Any, Mapping[str, Convertor[Any]], T]]] = {}
        self._at = prefix.count("/") + 1
        """The index of the first word between the slashes."""
        for path, place in places.items():
            whole = prefix + path
            if "{" not in path:
                self._exact[whole] = place
                continue
            pattern, _, convertors = compile_path(whole.replace(":int}", ":id}"))
            self._begun.setdefault(self._word(whole), []).append((pattern, convertors, place))

    def find(self, path: str) -> tuple[T, dict[str, Any]] | None:
        """Return the value for a path, and the path's parameters."""
        place = self._exact.get(path)
        if place is not None:
            return place, {}
        for pattern, convertors, patterned in self._begun.get(self._word(path), ()):
            if match := pattern.match(path):
                texts = match.groupdict()
                return patterned, {name: convertors[name].convert(texts[name]) for name in texts}
        return None

    def _word(self, path: str) -> str:
        parts = path.split("/", self._at + 1)
        return parts[self._at] if len(parts) > self._at else ""


SESSION_COOKIE: Final = "tertulia_session"
CSRF_COOKIE: Final = "tertulia_csrf"
DEVICE_COOKIE: Final = "tertulia_device"
POSITION_COOKIE: Final = "tertulia_position"


def cookie_name(config: Config, name: str) -> str:
    """Return the cookie's full name. On https sites, the prefix `__Host-` prevents other servers of
    the domain, and plain http, from setting it."""
    return f"__Host-{name}" if config.is_https else name


PREFIX = "/api/v1"


BROWSER_PREFIX = "/json/"
"""The prefix of the API for pages in a browser."""


POLLS = f"{PREFIX}/events"
"""The path of GET /events."""


HEALTH: Final = "/health"


READY: Final = "/ready"


METRICS: Final = "/metrics"


POSITION: Final = "Tertulia-Position"


POSITION_NAME: Final = POSITION.lower().encode()
