"""Fetching an export's files from the other server, several at the same time."""

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from tertulia.imports.source import FileUnavailable
from tertulia.model.errors import Unavailable
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, StreamedResponse

MAX_CONCURRENT: Final = 8
"""Files that are fetched at the same time."""
MAX_FILE: Final = 1024**3
"""Bytes of a file."""
SECONDS: Final = 900.0
"""Longest time for a file."""
ATTEMPTS: Final = 3
LONGEST_WAIT: Final = 60.0
"""Seconds between two attempts."""
GIVE_UP: Final = 10
"""Files in a row without any response after which the rest isn't tried, because the network is
down."""
_TOO_MANY: Final = 429


class Downloads:
    """Fetches files ahead, in the order in which they will be opened.

    `bearer` returns the token for a URL, or an empty text. `check` raises NotFetched if a response
    isn't the file, for example a login page. A file stays in `directory` until it's closed.
    """

    def __init__(
        self,
        directory: Path,
        bearer: Callable[[str], str],
        check: Callable[[str, StreamedResponse], None],
        new_web: Callable[[], Web] | None = None,
    ) -> None:
        self._directory = directory
        self._bearer = bearer
        self._check = check
        self._new_web = new_web or (lambda: Web(max_concurrent=MAX_CONCURRENT))
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        """Protects `_waiting`: files are opened while the next messages are read."""
        self._running: dict[str, Future[Path]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._web: Web | None = None
        self._failed = 0

    def plan(self, urls: Iterable[str]) -> None:
        """Record which files will be opened next."""
        with self._lock:
            self._waiting.extend(urls)

    def open(self, url: str) -> BinaryIO:
        """Return a file, and start to fetch the next ones. Raises FileUnavailable."""
        with self._lock:
            while self._waiting and url in self._waiting and self._waiting[0] != url:
                unneeded = self._running.pop(self._waiting.popleft(), None)
                if unneeded is not None:
                    unneeded.cancel()
            if self._waiting and self._waiting[0] == url:
                self._waiting.popleft()
            next_ones = tuple(islice(self._waiting, MAX_CONCURRENT - 1))
        future = self._running.pop(url, None) or self._begin(url)
        for following in next_ones:
            if following not in self._running and len(self._running) < MAX_CONCURRENT:
                self._running[following] = self._begin(following)
        try:
            path = future.result()
        except (NotFetched, Unavailable) as error:
            raise FileUnavailable(f"It couldn't be fetched: {error}.") from None
        file = path.open("rb")
        path.unlink()
        return file

    def close(self) -> None:
        """Cancel running downloads, and delete files that weren't opened."""
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
        if self._directory.is_dir():
            for path in self._directory.iterdir():
                path.unlink(missing_ok=True)

    async def _end(self) -> None:
        """Cancel running downloads."""
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._web is not None:
            await self._web.close()

    def _begin(self, url: str) -> Future[Path]:
        if self._loop is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="downloads", daemon=True
            )
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._fetched(url), self._loop)

    async def _fetched(self, url: str) -> Path:
        if self._failed >= GIVE_UP:
            raise NotFetched("no server responds")
        self._web = self._web or self._new_web()
        path = self._directory / hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
        for attempt in range(ATTEMPTS):
            try:
                await self._save(self._web, url, path)
            except (NotFetched, Unavailable) as error:
                path.unlink(missing_ok=True)
                status = error.status if isinstance(error, NotFetched) else 0
                wait = error.wait if isinstance(error, NotFetched) else 0
                self._failed = 0 if status else self._failed + 1
                is_passing = status == _TOO_MANY or status >= 500
                if not is_passing or attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(min(wait or 2.0**attempt, LONGEST_WAIT))
            else:
                self._failed = 0
                break
        return path

    async def _save(self, web: Web, url: str, path: Path) -> None:
        async with web.opened(
            url, accept="*/*", seconds=SECONDS, bearer=self._bearer(url)
        ) as response:
            self._check(url, response)
            with path.open("wb") as file:
                await response.save(file, MAX_FILE)
