"""A request's headers as they came: names in small letters, and values as bytes.

Starlette's `Request.headers` is the same for people; it decodes and compares anew for each name.
"""

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
    """The first header of that name; None where there is none."""
    for one, value in headers:
        if one == name:
            return value.decode("latin-1")
    return None


def first_of_each(headers: Headers) -> Mapping[bytes, bytes]:
    """The headers by their names; of several of a name, the first."""
    return dict(reversed(headers))


_LONGEST: Final = 64
"""Characters of an address."""


def client_address(request: Request) -> str:
    """The address of the computer that the request comes from, `-` where it is not known."""
    return (request.client.host[:_LONGEST] if request.client else "") or "-"


def client_network(request: Request) -> str | None:
    """The address of the computer that the request comes from, or what stands for it: see
    `network_of`."""
    return network_of(request.client.host) if request.client else None


def network_of(host: str) -> str:
    """What stands for an address: of IPv6 the network, of which one computer has all addresses."""
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


T = TypeVar("T")


class _Digits(Convertor[str]):
    """An ID in a path, as it was written. What is longer than any ID can be is none."""

    regex = "0|[1-9][0-9]{0,15}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _Digits())


class Paths(Generic[T]):
    """What lies at each path. Those without parameters are looked up; of the others, those that
    begin with the same word are tried in order."""

    def __init__(self, prefix: str, places: Mapping[str, T]) -> None:
        """`places` by their paths after the prefix, with `{name}` or `{name:int}` for their
        parts."""
        self.paths = tuple(places)
        """Without the prefix."""
        self._exact: dict[str, T] = {}
        self._begun: dict[str, list[tuple[Any, Mapping[str, Convertor[Any]], T]]] = {}
        self._at = prefix.count("/") + 1
        """Which of the parts between slashes is the first word."""
        for path, place in places.items():
            whole = prefix + path
            if "{" not in path:
                self._exact[whole] = place
                continue
            pattern, _, convertors = compile_path(whole.replace(":int}", ":id}"))
            self._begun.setdefault(self._word(whole), []).append((pattern, convertors, place))

    def find(self, path: str) -> tuple[T, dict[str, Any]] | None:
        """What lies there, and the path's parameters; None for nothing."""
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
    """What the cookie is called. Where the site is https, browsers take one of that name from
    nobody but us: not from another server below the same domain, nor over http."""
    return f"__Host-{name}" if config.is_https else name
