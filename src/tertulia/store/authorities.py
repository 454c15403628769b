"""The certificate authorities that outgoing connections trust.

These are the authorities of the operating system, and those that the environment variables
`SSL_CERT_FILE` and `SSL_CERT_DIR` name, which are added to them. certifi's list is used only if the
system has none.
"""

import logging
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger("tertulia.authorities")

FILE: Final = "SSL_CERT_FILE"
DIRECTORY: Final = "SSL_CERT_DIR"
_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, BSD
)
"""The paths where systems keep their list, for a Python whose OpenSSL looks elsewhere."""


@lru_cache(4)
def client_context(*protocols: str) -> "ssl.SSLContext":
    """Return the TLS settings of a client. `protocols` are offered to the server with ALPN. Takes
    tens of milliseconds the first time."""
    import ssl

    context = ssl.create_default_context()
    # As in other programs and in Python before 3.13: authorities that companies make themselves
    # often lack extensions that the strict mode requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    for name in (FILE, DIRECTORY):
        if (path := os.environ.get(name)) and not os.path.exists(path):
            fields = {"variable": name, "path": path}
            logger.warning("the certificate authorities weren't found", extra={"fields": fields})
    bundle = next(filter(os.path.isfile, _BUNDLES), None)
    for file, directory in list(_installed()) or [(bundle or _certifi(), None)]:
        context.load_verify_locations(file, directory)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def missing_in_environment() -> bytes:
    """Return, as PEM, the authorities missing from a library that trusts either the environment's
    or the system's: the system's if the environment names some, certifi's if neither has any."""
    is_named = os.environ.get(FILE) or os.environ.get(DIRECTORY)
    if not is_named and next(_installed(), None) is not None:
        return b""
    bundle = next(filter(os.path.isfile, _BUNDLES), None) or _certifi()
    return Path(bundle).read_bytes()


def _installed() -> Iterator[tuple[str | None, str | None]]:
    """Yield the file and the directory with the system's authorities, for
    `load_verify_locations`."""
    import ssl

    paths = ssl.get_default_verify_paths()
    if os.path.isfile(paths.openssl_cafile):
        yield paths.openssl_cafile, None
    if os.path.isdir(paths.openssl_capath) and os.listdir(paths.openssl_capath):
        yield None, paths.openssl_capath


def _certifi() -> str:
    import certifi

    return certifi.where()
