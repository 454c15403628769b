"""Files that are built into the package: the web client's, the manual's."""

import gzip
import mimetypes
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from tertulia.wire.http.compression import accepts

_WORTH_PACKING: Final = 1024
_PACKED_ALREADY: Final = (".woff2", ".png", ".webp")
_BROTLI: Final = ".br"
"""Beside a file: the same, packed by Brotli when it was built."""


class BuiltFile(Struct, frozen=True):
    """A file as it is, and packed where that is worth it."""

    content: bytes
    packed: Mapping[str, bytes]
    """By encoding, the smallest first."""
    media_type: str

    def encoded(self, request: Request) -> tuple[bytes, dict[str, str]]:
        """What is sent, packed if the client takes it so, with the headers that say so."""
        accepted = request.headers.get("accept-encoding", "")
        for encoding, packed in self.packed.items():
            if accepts(encoding, accepted):
                return packed, {"Vary": "Accept-Encoding", "Content-Encoding": encoding}
        return self.content, {"Vary": "Accept-Encoding"}


class BuiltFiles:
    """The files of a folder of the package, which may not be there. They are kept in memory from
    when they are first asked for."""

    def __init__(self, folder: str) -> None:
        """`folder` is a path within the package, with slashes."""
        self.folder = folder
        self._kept: dict[str, BuiltFile] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The paths of all files in it, with slashes; empty where it was not built."""
        if not self._place.is_dir():
            return frozenset()
        return frozenset(name for name in _names(self._place, "") if not name.endswith(_BROTLI))

    def file(self, name: str) -> BuiltFile | None:
        """The file at that path; None where there is none."""
        found = self._kept.get(name)
        if found is None and name in self.names:
            try:
                found = self._kept[name] = _read(self._at(name), self._at(name + _BROTLI))
            except FileNotFoundError:
                return None  # Another release was installed, for which the server starts again.
        return found

    def _at(self, name: str) -> Traversable:
        return self._place.joinpath(*name.split("/"))

    @property
    def _place(self) -> Traversable:
        return resources.files("tertulia").joinpath(*self.folder.split("/"))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _read(file: Traversable, smaller: Traversable) -> BuiltFile:
    content = file.read_bytes()
    packed: dict[str, bytes] = {}
    if smaller.is_file():
        packed["br"] = smaller.read_bytes()
    if len(content) > _WORTH_PACKING and not file.name.endswith(_PACKED_ALREADY):
        packed["gzip"] = gzip.compress(content, 9, mtime=0)
    return BuiltFile(content=content, packed=packed, media_type=_media_type(file.name))


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
