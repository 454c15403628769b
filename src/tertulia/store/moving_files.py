"""Files on their way from one place to another, while they are in use."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tertulia.store.files import Files, StoredFile


class MovingFiles(Files):
    """The files of two places: written to the first, and read there or else in the second."""

    def __init__(self, files: Files, others: Files) -> None:
        self.files = files
        self.others = others
        self.is_here = files.is_here
        self.description = f"{files.description}, and {others.description} before"

    async def put(self, path: str, content: bytes) -> None:
        await self.files.put(path, content)

    async def put_from(self, path: str, source: Path) -> None:
        await self.files.put_from(path, source)

    async def read(self, path: str) -> bytes | None:
        content = await self.files.read(path)
        return await self.others.read(path) if content is None else content

    async def found(self, path: str) -> StoredFile | None:
        return await self.files.found(path) or await self.others.found(path)

    async def chunks(
        self, path: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        stored = await self.found(path)
        if stored is None:
            raise FileNotFoundError(path)
        async for chunk in stored.files.chunks(path, start, end):
            yield chunk

    async def delete(self, path: str) -> None:
        # In this order: whoever copies it meanwhile sees that it has gone (`copied_over`).
        await self.others.delete(path)
        await self.files.delete(path)

    async def delete_below(self, directory: str) -> None:
        await self.others.delete_below(directory)
        await self.files.delete_below(directory)

    async def below(self, directory: str) -> AsyncIterator[StoredFile]:
        seen = set[str]()
        async for one in self.files.below(directory):
            seen.add(one.path)
            yield one
        async for one in self.others.below(directory):
            if one.path not in seen:
                yield one

    def local(self, stored: StoredFile) -> AbstractAsyncContextManager[Path]:
        return stored.files.local(stored)

    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        return await stored.files.signed(
            stored, media_type=media_type, disposition=disposition, now=now
        )

    async def probe(self) -> None:
        await self.files.probe()
        await self.others.probe()

    async def close(self) -> None:
        await self.files.close()
        await self.others.close()
