"""Files in an S3-compatible bucket.

Every failure is logged and raised as FilesUnavailable. Every request has a time limit and is
retried by obstore. Objects are stored as attachments of unknown type, so browsers never display one
that is opened without Tertulia's headers.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tertulia.model.errors import FilesUnavailable
from tertulia.model.numbers import counted
from tertulia.store import authorities, file_modes, s3_addresses
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import INCOMING, Files, StoredFile, is_path, parts_of
from tertulia.store.s3_addresses import S3Address

if TYPE_CHECKING:
    from obstore.store import S3Store

logger = logging.getLogger("tertulia.files")

REQUEST_SECONDS: Final = 15.0
"""The time limit in seconds of a small request, including retries."""
CHUNK_SECONDS: Final = 45.0
"""The time limit in seconds for the next bytes of a file that is being read."""
LEAST_BYTES_PER_SECOND: Final = 256 * 1024
"""Slower uploads are given up."""
PART: Final = 5 * 1024 * 1024
"""Bytes per part of a large file. S3 requires at least this much, and allows 10,000 parts."""
MAX_CONCURRENT_PARTS: Final = 3
MAX_CONCURRENT_FILES: Final = 4
"""The most large files that are transferred concurrently. Together they use up to `PART` *
`MAX_CONCURRENT_PARTS` * this many bytes of memory."""
QUIET_SECONDS: Final = 60.0
"""Seconds between two log lines about an unreachable bucket."""
CHUNK: Final = 256 * 1024
MAX_SMALL: Final = 64 * 1024 * 1024
"""The most bytes that `read` holds in memory."""
_ATTRIBUTES: Final = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Cache-Control": "private",
}


class S3Keys(Struct, frozen=True, kw_only=True):
    """Credentials. If both are empty, obstore takes them from the environment or the machine's
    role."""

    key_id: str = ""
    secret: str = ""

    @property
    def signing_secret(self) -> str:
        """The secret key that signs URLs, or "" if it isn't known."""
        return self.secret or os.environ.get("AWS_SECRET_ACCESS_KEY", "")


class BucketFiles(Files):
    is_here = False

    def __init__(self, address: S3Address, keys: S3Keys, disk: DiskFiles) -> None:
        """Temporary local copies are written to `disk`."""
        self._address = address
        self._keys = keys
        self._disk = disk
        self._writing = asyncio.Semaphore(MAX_CONCURRENT_FILES)
        self._quiet_until = 0.0
        self.description = str(address)

    @cached_property
    def _store(self) -> "S3Store":
        from obstore.store import S3Store  # Only imported if files are in S3.

        address, keys = self._address, self._keys
        config: dict[str, Any] = {
            "region": address.region,
            "virtual_hosted_style_request": address.is_host_style,
            # Not every service supports bulk deletion.
            "disable_bulk_delete": True,
        }
        if address.endpoint:
            config["endpoint"] = address.origin
        if keys.key_id:
            config |= {"access_key_id": keys.key_id, "secret_access_key": keys.secret}
        if address.encryption:
            config["server_side_encryption"] = address.encryption
        if address.kms_key:
            config["sse_kms_key_id"] = address.kms_key
        added = authorities.missing_in_environment()
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=config,  # type: ignore[arg-type]  # checked when it is made
            client_options={
                **({"root_certificate": added} if added else {}),
                "allow_http": address.endpoint.startswith("http:"),
                "connect_timeout": "5s",
                "read_timeout": "30s",
                # This limit applies to a whole file. Ours apply to its parts.
                "timeout": "1d",
            },
            retry_config={
                "max_retries": 3,
                "retry_timeout": timedelta(seconds=REQUEST_SECONDS),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=2),
                    "base": 2,
                },
            },
        )

    @contextlib.asynccontextmanager
    async def _asking(self, seconds: float | None = None) -> AsyncIterator["S3Store"]:
        """Yield the store for requests that end within `seconds` (default: `REQUEST_SECONDS`).
        Raise FilesUnavailable."""
        seconds = REQUEST_SECONDS if seconds is None else seconds
        if "_store" not in self.__dict__:
            # Loading the library and certificates takes tens of milliseconds.
            await asyncio.to_thread(getattr, self, "_store")
        from obstore.exceptions import BaseError

        try:
            async with asyncio.timeout(seconds):
                yield self._store
        except TimeoutError:
            reason = f"no response within {seconds:.0f} seconds"
        except BaseError as error:
            reason = str(error).partition("\n")[0]
        else:
            return
        self._note(reason)
        raise FilesUnavailable(f"{self._address}: {reason[:300]}") from None

    def _note(self, reason: str) -> None:
        """Log the error, at most once per `QUIET_SECONDS`."""
        if time.monotonic() > self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            fields = {"place": self.description, "reason": reason}
            logger.warning("the file storage is unreachable", extra={"fields": fields})

    async def put(self, path: str, content: bytes) -> None:
        async with self._asking(REQUEST_SECONDS + len(content) / LEAST_BYTES_PER_SECOND) as store:
            await store.put_async(
                _path(path),
                content,
                attributes=dict(_ATTRIBUTES),
                use_multipart=False,
            )

    async def put_from(self, path: str, source: Path) -> None:
        size = (await asyncio.to_thread(source.stat)).st_size
        async with (
            self._writing if size > PART else contextlib.nullcontext(),
            self._asking(REQUEST_SECONDS + size / LEAST_BYTES_PER_SECOND) as store,
        ):
            await store.put_async(
                _path(path),
                source,
                attributes=dict(_ATTRIBUTES),
                use_multipart=size > PART,
                chunk_size=PART,
                max_concurrency=MAX_CONCURRENT_PARTS,
            )

    async def read(self, path: str) -> bytes | None:
        content = bytearray()
        try:
            async for chunk in self.chunks(path):
                content += chunk
                if len(content) > MAX_SMALL:
                    raise FilesUnavailable(f"{self._address}: {path} is too large")
        except FileNotFoundError:
            return None
        return bytes(content)

    async def found(self, path: str) -> StoredFile | None:
        try:
            async with self._asking() as store:
                meta = await store.head_async(_path(path))
        except FileNotFoundError:
            return None
        return self._stored(meta)

    async def chunks(
        self, path: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        if end is not None and end <= start:
            return
        options: dict[str, Any] = {}
        if end is not None:
            options["range"] = (start, end)
        elif start:
            options["range"] = {"offset": start}
        async with self._asking() as store:
            answer = await store.get_async(
                _path(path),
                options=options,  # type: ignore[arg-type]  # as it is documented
            )
        coming = answer.stream(min_chunk_size=CHUNK).__aiter__()
        while True:
            # A stalled download doesn't block its reader forever.
            async with self._asking(CHUNK_SECONDS):
                try:
                    chunk = await anext(coming)
                except StopAsyncIteration:
                    return
            yield bytes(chunk)

    async def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            async with self._asking() as store:
                await store.delete_async(_path(path))

    async def delete_below(self, directory: str) -> None:
        async for stored_file in self.below(_path(directory)):
            await self.delete(stored_file.path)

    async def below(self, directory: str) -> AsyncIterator[StoredFile]:
        prefix = _path(directory) if directory else None
        async with self._asking() as store:
            coming = store.list(prefix, chunk_size=1000).__aiter__()
        while True:
            async with self._asking():
                try:
                    some = await anext(coming)
                except StopAsyncIteration:
                    return
            for meta in some:
                # Consoles create an empty object for the prefix itself.
                if is_path(meta["path"]):
                    yield self._stored(meta)

    def _stored(self, meta: Any) -> StoredFile:
        return StoredFile(self, meta["path"], meta["size"], meta["last_modified"].timestamp())

    def _cut_short(self, stored: StoredFile) -> FilesUnavailable:
        reason = (
            f"{stored.path} has {counted(stored.size, 'byte')}, but a different number was received"
        )
        self._note(reason)
        return FilesUnavailable(f"{self._address}: {reason}")

    @contextlib.asynccontextmanager
    async def local(self, stored: StoredFile) -> AsyncIterator[Path]:
        # After a crash, it is cleaned up like an abandoned upload (`tertulia.store.uploads`).
        path = self._disk.local_path(INCOMING) / secrets.token_hex(16)
        try:
            if await copied(self.chunks(stored.path), path) != stored.size:
                raise self._cut_short(stored)
            yield path
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        secret = self._keys.signing_secret
        if not secret:
            return None
        lifetime = timedelta(seconds=s3_addresses.WINDOW_SECONDS)
        async with self._asking() as store:
            import obstore

            address = await obstore.sign_async(store, "GET", _path(stored.path), lifetime)
        headers = {
            "response-content-type": media_type,
            "response-content-disposition": disposition,
            "response-cache-control": f"private, max-age={s3_addresses.WINDOW_SECONDS}",
        }
        return s3_addresses.with_headers(address, secret, headers, now)

    async def probe(self) -> None:
        async for _ in self.below(f"{INCOMING}/offered"):
            return

    async def close(self) -> None:
        self.__dict__.pop("_store", None)


def _path(path: str) -> str:
    return "/".join(parts_of(path))


async def copied(chunks: AsyncIterator[bytes], path: Path) -> int:
    """Write the chunks to a new file, which the caller deletes, and return its size in bytes."""
    with _new(path) as descriptor:
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            await asyncio.to_thread(_write, descriptor, chunk)
    return size


@contextlib.contextmanager
def _new(path: Path) -> Iterator[int]:
    file_modes.directory(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
