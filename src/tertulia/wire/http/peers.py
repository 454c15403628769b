"""The peer of a connection, which may be a reverse proxy for many clients."""

import ipaddress
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from starlette.requests import Request

from tertulia.service.config import Config

PEER: Final = "peer"
"""The key in a request's state for the connection's peer: host and port, or None for a Unix socket.
(The request's `client` is the address that a trusted proxy reports.)"""
_UNKNOWN: Final = ("unknown", 0)


def peer_of(request: Request) -> str:
    """Return the host of the connection's peer, for the log."""
    peer = request.scope.get("state", {}).get(PEER, _UNKNOWN)
    return "a Unix socket" if peer is None else str(peer[0])


def is_from_proxy(config: Config, request: Request) -> bool:
    """Return whether the request comes directly from a reverse proxy in `proxy_trusted` or from the
    server's Unix socket. Only then may its headers name the client or the user."""
    peer = request.scope.get("state", {}).get(PEER, _UNKNOWN)
    return peer is None or _listed(config.proxy_trusted)(peer[0])


@lru_cache(4)
def _listed(listed: str) -> Callable[[str], bool]:
    return is_listed(listed)


def is_listed(listed: str) -> Callable[[str], bool]:
    """Return a function that checks whether an address is in a comma-separated list of addresses
    and networks, or `*` for all."""
    networks = []
    for text in filter(None, (part.strip() for part in listed.split(","))):
        if text == "*":
            return lambda _: True
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            continue  # The path of a socket: its connections have no address.
    return lambda host: _is_in(host, networks)


def address_of_host(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in(host: str, networks: "list[ipaddress.IPv4Network | ipaddress.IPv6Network]") -> bool:
    address = address_of_host(host)
    return address is not None and any(address in network for network in networks)
