"""Files, beside the database: uploads and pictures, on the disk of this machine.

A file is known by its path below the root, with `/` between the parts. Paths are made by us, of
random parts; a path that leads out of the root is a mistake and raises ValueError.
"""

import asyncio
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from tertulia.store import file_modes

_PASSING = ("external/", "thumbnails/", "uploads/incoming/")


class Files:
    """The files below one directory. Nodes that share a database share this directory too."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def place(self, path: str) -> Path:
        """Where the file lies, or would."""
        parts = path.split("/")
        if not path or any(part in {"", ".", ".."} or "\0" in part for part in parts):
            raise ValueError(f"{path!r} is no path of a file")
        return self.root.joinpath(*parts)

    def kept(self) -> Iterator[tuple[str, Path]]:
        """Every file and its path, without what can be made again and what is still arriving."""
        for place in sorted(self.root.rglob("*")):
            path = place.relative_to(self.root).as_posix()
            if path.startswith(_PASSING) or place.name.startswith(".") or place.is_symlink():
                continue
            if place.is_file():
                yield path, place

    async def put(self, path: str, content: bytes) -> None:
        """Write the whole file. It is there with all its content, on disk, or not at all."""
        await asyncio.to_thread(self._put, path, content)

    def _put(self, path: str, content: bytes) -> None:
        place = self.place(path)
        file_modes.directory(place.parent)
        draft = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}")
        try:
            with open(draft, "wb", opener=file_modes.opener) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        directory = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    async def read(self, path: str) -> bytes | None:
        """The whole file; None where there is none."""
        try:
            return await asyncio.to_thread(self.place(path).read_bytes)
        except FileNotFoundError:
            return None

    async def delete(self, path: str) -> None:
        """Delete the file, if it is there."""
        await asyncio.to_thread(self.place(path).unlink, missing_ok=True)
