"""Which addresses of the network the server may ask for somebody else."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Address = IPv4Address | IPv6Address

_SPECIAL: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
    IPv6Network("fec0::/10"),
)
"""Of these, some versions of Python do not know that they are not the internet."""
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""IPv4 in the last four bytes, on networks that have only IPv6."""


def is_public(address: Address) -> bool:
    """Whether it is a machine on the internet, and not one of this network, this machine itself, a
    cloud's metadata service, or many machines at once.

    An IPv6 address that stands for one of IPv4 is public if that is.
    """
    if isinstance(address, IPv6Address):
        if address in _TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address.sixtofour is not None:
            return is_public(address.sixtofour)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _SPECIAL)
    )


def parsed(text: str) -> Address | None:
    """The address that the text is, if it is one."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None
