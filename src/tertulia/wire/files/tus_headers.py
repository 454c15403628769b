"""What the headers of the tus protocol say."""

import base64
import binascii
import hashlib
import re
from typing import Final

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.wire.http.errors import TusRefused

ALGORITHMS: Final = ("sha1", "sha256", "md5")
"""Kinds of checksums."""
NUMBER: Final = re.compile(r"[0-9]{1,18}")
"""A number of bytes."""


class Checksum:
    """What a piece's bytes should come to."""

    def __init__(self, algorithm: str, expected: bytes) -> None:
        self._hash = hashlib.new(algorithm, usedforsecurity=False)
        self._expected = expected

    @classmethod
    def of(cls, request: Request) -> "Checksum | None":
        """What the request says, if it does. Refused where that is not understood."""
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
        """Take in what follows."""
        self._hash.update(piece)

    def verify(self) -> None:
        """TusRefused where it is not what was expected."""
        if self._hash.digest() != self._expected:
            raise TusRefused(460, "The checksum doesn't match the chunk.")


def content_type(request: Request) -> str:
    """The body's type, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def number_in(request: Request, header: str) -> int:
    """The header's number of bytes. Refused where there is none."""
    text = request.headers.get(header, "")
    if not NUMBER.fullmatch(text):
        raise Refused(f"The {header.title()} header must be a number of bytes.")
    return int(text)


def metadata_in(header: str) -> dict[str, str]:
    """What is said of the file: names, each with a value in Base64. Refused where it cannot be
    read."""
    found: dict[str, str] = {}
    for pair in header.split(",") if header.strip() else ():
        name, _, encoded = pair.strip().partition(" ")
        if not name or name in found:
            raise Refused("The Upload-Metadata header isn't valid.")
        try:
            found[name] = base64.b64decode(encoded.strip(), validate=True).decode()
        except ValueError:
            raise Refused("The Upload-Metadata header isn't valid.") from None
    return found
