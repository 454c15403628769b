"""Where a request comes from. A proxy's word for it is taken where the settings say so, before
this."""

import ipaddress
from typing import Final

from starlette.requests import Request

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
