"""URLs of sites, as operators write them."""

import re
from typing import Final
from urllib.parse import urlsplit

_AUTHORITY: Final = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def site(text: str) -> str:
    """Return the URL of a site, without a slash at the end. Raise ValueError unless it consists of
    http or https, a host, and an optional port."""
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
        raise ValueError(f"'{text}' isn't the URL of a site, such as https://chat.example.com")
    return f"{parts.scheme}://{parts.netloc.lower()}"
