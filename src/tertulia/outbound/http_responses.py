"""Responses of other servers, and the errors of requests to them."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final


class NotFetched(Exception):
    """The request failed. `str(error)` is the reason, for the log."""

    def __init__(self, reason: str, status: int = 0, wait: float = 0.0) -> None:
        """Create an error. `status` is the response's, if any, and `wait` is its `Retry-After` in
        seconds."""
        super().__init__(reason)
        self.status = status
        self.wait = wait


class NotAllowed(NotFetched):
    """The host has an address that this server doesn't connect to."""


class NotModified(NotFetched):
    """The resource hasn't changed."""


@dataclass(frozen=True)
class StreamedResponse:
    """A response whose body is read by the caller."""

    url: str
    """The URL after redirects."""
    headers: Mapping[str, str]
    _chunks: Callable[[], AsyncIterator[bytes]]

    @property
    def media_type(self) -> str:
        """The media type in lowercase, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def lines(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body's lines, without their ends. Raise NotFetched if it is larger than `limit`
        bytes."""
        rest, size = b"", 0
        async for chunk in self._chunks():
            size += len(chunk)
            if size > limit:
                raise NotFetched("it is too large")
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r")
        if rest:
            yield rest

    async def beginning(self, size: int) -> bytes:
        """Return up to `size` bytes from the beginning of the body."""
        content = bytearray()
        async for chunk in self._chunks():
            content += chunk
            if len(content) >= size:
                break
        return bytes(content[:size])

    async def content(self, limit: int) -> bytes:
        """Return the whole body. Raise NotFetched if it is larger than `limit` bytes."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limit:
            raise NotFetched("it is too large")
        content = await self.beginning(limit + 1)
        if len(content) > limit:
            raise NotFetched("it is too large")
        return content

    async def save(self, file: BinaryIO, limit: int) -> int:
        """Write the body to a file, and return its size. Raise NotFetched if it is larger than
        `limit` bytes."""
        size = 0
        async for chunk in self._chunks():
            size += len(chunk)
            if size > limit:
                raise NotFetched("it is too large")
            file.write(chunk)
        return size


@dataclass(frozen=True)
class WebResponse:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


_TEMPORARY: Final = frozenset({408, 425, 429})


def is_temporary(status: int) -> bool:
    """Whether a request with this response is worth a retry."""
    return status >= 500 or status in _TEMPORARY


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """Return the `Retry-After` header in seconds; 0 if it is missing or a date."""
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
