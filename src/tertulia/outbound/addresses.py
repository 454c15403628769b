"""Checking network addresses, chosen by others, that the server may connect to."""

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SPECIAL: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
    IPv6Network("fec0::/10"),
)
"""Special networks that some versions of Python don't know."""
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""The network of NAT64, whose addresses end with an IPv4 address."""


def networks(listed: str) -> tuple[Network, ...]:
    """Parse addresses and networks, separated by commas; `*` stands for all. Raise ValueError."""
    results: list[Network] = []
    for name in filter(None, (part.strip() for part in listed.split(","))):
        both = ("0.0.0.0/0", "::/0") if name == "*" else (name,)
        results += (ip_network(text) for text in both)
    return tuple(results)


def is_public(address: Address) -> bool:
    """Whether the address belongs to one machine on the internet: it isn't private, local,
    multicast, or reserved. An IPv6 address that embeds an IPv4 address is public if that is."""
    inner = embedded(address)
    if inner is not None:
        return is_public(inner)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _SPECIAL)
    )


def embedded(address: Address) -> IPv4Address | None:
    """Return the embedded IPv4 address of a NAT64 or 6to4 address."""
    if not isinstance(address, IPv6Address):
        return None
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


def is_elsewhere(address: Address) -> bool:
    """Whether the address belongs to another machine on the internet."""
    inner = embedded(address)
    return is_public(address) and not is_local(address) and (inner is None or not is_local(inner))


def is_local(address: Address) -> bool:
    """Whether this machine has the address, so that it can be bound."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.bind((str(address), 0))
    except OSError:
        return False
    return True


def parsed(text: str) -> Address | None:
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None
