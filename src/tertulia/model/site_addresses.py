"""Addresses of sites, as operators write them."""

import re
from typing import Final
from urllib.parse import urlsplit

_AUTHORITY: Final = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def site(text: str) -> str:
    """The address of a whole site, without a slash at its end. ValueError for what is none: it is
    http or https, a host, perhaps a port, and no path."""
    parts = urlsplit(text.strip())
    host, _ = parts.hostname, parts.port
    if (
        not host
        or parts.scheme not in {"http", "https"}
        or parts.path not in {"", "/"}
        or parts.query
        or parts.fragment
        or not _AUTHORITY.fullmatch(parts.netloc)
    ):
        raise ValueError(f"'{text}' is not the address of a site")
    return f"{parts.scheme}://{parts.netloc.lower()}"
