"""Files that are built into the package: the web client's, the manual's."""

import gzip
import mimetypes
from collections.abc import Iterator
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct
from starlette.requests import Request

_WORTH_PACKING: Final = 1024
_PACKED_ALREADY: Final = (".woff2", ".png", ".webp")


class BuiltFile(Struct, frozen=True):
    """A file as it is, and packed where that is worth it."""

    content: bytes
    packed: bytes | None
    media_type: str

    def encoded(self, request: Request) -> tuple[bytes, dict[str, str]]:
        """What is sent, packed if the client takes it so, with the headers that say so."""
        headers = {"Vary": "Accept-Encoding"}
        if self.packed is None or "gzip" not in request.headers.get("accept-encoding", ""):
            return self.content, headers
        headers["Content-Encoding"] = "gzip"
        return self.packed, headers


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
        return frozenset(_names(self._place, "")) if self._place.is_dir() else frozenset()

    def file(self, name: str) -> BuiltFile | None:
        """The file at that path; None where there is none."""
        found = self._kept.get(name)
        if found is None and name in self.names:
            found = self._kept[name] = _read(self._place.joinpath(*name.split("/")))
        return found

    @property
    def _place(self) -> Traversable:
        return resources.files("tertulia").joinpath(*self.folder.split("/"))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _read(file: Traversable) -> BuiltFile:
    content = file.read_bytes()
    is_packable = len(content) > _WORTH_PACKING and not file.name.endswith(_PACKED_ALREADY)
    return BuiltFile(
        content=content,
        packed=gzip.compress(content, 9, mtime=0) if is_packable else None,
        media_type=_media_type(file.name),
    )


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
