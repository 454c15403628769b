"""Which URLs may be linked, and how they are written."""

import re
from typing import Final
from urllib.parse import urlsplit

_WITH_HOST: Final = frozenset({"http", "https", "ftp"})
_WITHOUT_HOST: Final = frozenset({"mailto", "tel", "sms", "xmpp", "news"})
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f]")


def safe(address: str, site: str = "") -> str | None:
    """The URL in its final form; None where it is not safe to link (`javascript:` and the like).

    URLs of conversations and files of this server (`site`) become relative to it. A text without a
    scheme is a fragment, a path from the root, a mail address, or else a host on the web.
    """
    address = _UNSEEN.sub("", address.replace("&amp;", "&"))
    if not address:
        return None
    if site and address.startswith((f"{site}/#", f"{site}/user_uploads/")):
        rest = address.removeprefix(site)
        return rest[1:] if rest.startswith("/#") else rest
    if address[0] == "#" or (address[0] == "/" and address[1:2] not in {"/", "\\"}):
        return address
    try:
        parts = urlsplit(address)
        _ = parts.port  # Raises where the port is no number.
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme in _WITHOUT_HOST:
        return address if parts.path else None
    if scheme in _WITH_HOST:
        return address if parts.netloc else None
    if scheme and not _is_host_and_port(address):
        return None
    if address.startswith("//"):
        return "http:" + address if parts.netloc else None
    if "@" in address and "/" not in address:
        return f"mailto:{address}"
    return safe(f"http://{address}") if re.match(r"\w", address) else None


def _is_host_and_port(address: str) -> bool:
    """`localhost:9991/x` looks as if it had a scheme."""
    return re.match(r"[\w.-]+:[0-9]{1,5}(?:[/?#]|$)", address) is not None
