"""Headers of the tus protocol."""

import base64
import binascii
import hashlib
import re
from typing import Final

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.wire.http.errors import TusRefused

ALGORITHMS: Final = ("sha1", "sha256", "md5")
"""Supported checksum algorithms."""
NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Checksum:
    """The expected checksum of a chunk."""

    def __init__(self, algorithm: str, expected: bytes) -> None:
        self._hash = hashlib.new(algorithm, usedforsecurity=False)
        self._expected = expected

    @classmethod
    def of(cls, request: Request) -> "Checksum | None":
        """The request's checksum, or None. Refused if it can't be parsed."""
        header = request.headers.get("upload-checksum")
        if header is None:
            return None
        algorithm, _, encoded = header.strip().partition(" ")
        if algorithm not in ALGORITHMS:
            raise Refused("This checksum algorithm isn't supported.")
        try:
            return cls(algorithm, base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            raise Refused("The checksum isn't valid.") from None

    def update(self, piece: bytes) -> None:
        self._hash.update(piece)

    def verify(self) -> None:
        """Raise TusRefused if the checksum doesn't match."""
        if self._hash.digest() != self._expected:
            raise TusRefused(460, "The checksum doesn't match the chunk.")


def content_type(request: Request) -> str:
    """The body's media type, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def number_in(request: Request, header: str) -> int:
    """The number of bytes in a header. Refused if it's missing or invalid."""
    text = request.headers.get(header, "")
    if not NUMBER.fullmatch(text):
        raise Refused(f"The {header.title()} header must be a number of bytes.")
    return int(text)


def metadata_in(header: str) -> dict[str, str]:
    """Decode an Upload-Metadata header. Refused if it isn't valid."""
    metadata: dict[str, str] = {}
    for pair in header.split(",") if header.strip() else ():
        name, _, encoded = pair.strip().partition(" ")
        if not name or name in metadata:
            raise Refused("The Upload-Metadata header isn't valid.")
        try:
            metadata[name] = base64.b64decode(encoded.strip(), validate=True).decode()
        except ValueError:
            raise Refused("The Upload-Metadata header isn't valid.") from None
    return metadata
