"""The certificate with which the server speaks TLS, read again when its files change."""

import logging
import os
import ssl
from typing import Final, NoReturn

from tertulia.app.setting_sources import ConfigError

logger = logging.getLogger("tertulia.serving")

LOOK_SECONDS: Final = 10.0
"""Between two looks at whether the files have changed."""

_Stamp = tuple[tuple[int, int, int], ...]


class Certificates:
    """What new connections are secured with."""

    def __init__(self, certificate: str, key: str) -> None:
        """Paths of files in PEM: the certificate with those that lead to its authority, and its
        key, empty where that is in the same file. ConfigError where they cannot be used."""
        self._certificate = certificate
        self._key = key
        self._seen = self._stamp()
        self.context = self._loaded()

    def refresh(self, *, is_told: bool = False) -> None:
        """Read the files again, if they have changed, or whenever somebody `is_told` to. Where they
        cannot be used, the log says so, and those of before are used on. It reads files: not for
        the event loop."""
        seen = self._stamp()
        if seen == self._seen and not is_told:
            return
        self._seen = seen
        try:
            self.context = self._loaded()
        except ConfigError as error:
            fields = {"reason": str(error)}
            logger.error("the new certificate can't be used", extra={"fields": fields})
        else:
            logger.info("the certificate was loaded", extra={"fields": {"file": self._certificate}})

    def _stamp(self) -> _Stamp:
        """What is another one after the files have changed."""
        found = []
        for path in filter(None, (self._certificate, self._key)):
            try:
                is_now = os.stat(path)
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((is_now.st_ino, is_now.st_mtime_ns, is_now.st_size))
        return tuple(found)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        for name, path in (("tls_cert", self._certificate), ("tls_key", self._key)):
            try:
                with open(path or self._certificate, "rb"):
                    pass
            except OSError as error:
                raise ConfigError(f"Setting {name}: can't read {path}: {error.strerror}.") from None
        try:
            context.load_cert_chain(self._certificate, self._key or None, password=_encrypted)
        except ssl.SSLError as error:
            raise ConfigError(
                f"Setting tls_cert: {self._certificate} and {self._key or 'the key in it'} aren't a"
                f" certificate and its key ({_reason(error)})."
            ) from None
        except _Encrypted:
            raise ConfigError(
                "Setting tls_key: the key is encrypted with a password. Use a key without a"
                " password."
            ) from None
        except OSError as error:  # It was taken away just now.
            raise ConfigError(
                f"Setting tls_cert: can't read {self._certificate}: {error.strerror}."
            ) from None
        return context


class _Encrypted(Exception):
    """The key needs a password."""


def _encrypted() -> NoReturn:
    raise _Encrypted


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not PEM").replace("_", " ").lower()
