"""Rendering imported messages in other processes, because it takes longer than writing them."""

import asyncio
import logging
import multiprocessing
import os
import re
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tertulia.imports.reading import end_with_parent, yield_to_others
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.former_names import FormerNames
from tertulia.markup.render import Renderer
from tertulia.model.messages import Rendered
from tertulia.model.nouns import NOUNS
from tertulia.service.garbage import collect_rarely, return_freed_memory
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

logger = logging.getLogger("tertulia.imports")

MAX_SECONDS: Final = 2.0
"""CPU time for one message. Above it, the message's code and formulas become plain text."""
BATCH_SECONDS: Final = 120.0
"""The longest wait for a batch before its processes are killed."""
_NEEDED: Final = frozenset(
    {"realm", "users", "user_groups", "channels", "custom_emoji", "linkifiers", "channel_folders"}
)
"""Tables that rendering uses. Topics and attachments are looked up as they're linked."""

Text = tuple[int, str, FormerNames | None]
"""A user's ID, their content, and what the names in it referred to. The ID 0 stands for someone who
wasn't imported."""


class RenderPool:
    """Renders batches of messages with the state at the time when the pool was created."""

    def __init__(
        self,
        state: State,
        site: str,
        processes: int | None = None,
        media: ExternalMedia | None = None,
    ) -> None:
        self._records = {
            noun.table: msgspec.msgpack.encode(list(state.tables[noun.table]))
            for noun in NOUNS
            if noun.table in _NEEDED
        }
        self._site = site
        self._proxied = media.proxy_address if media is not None else None
        # The processes can't sign URLs, so they write a text that no message can have. It's
        # replaced here.
        self._mark = secrets.token_hex(16)
        self._marked = re.compile(rf"{self._mark}([0-9a-f]*)\.")
        self._processes = processes or max(1, (os.cpu_count() or 2) - 1)
        self._plain = Renderer(site)
        self._state = state
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._records, self._site, self._mark if self._proxied else ""),
        )

    async def render(self, texts: Sequence[Text]) -> list[Rendered]:
        """Render the texts. No content raises an error."""
        size = max(1, -(-len(texts) // (self._processes * 2)))
        parts = [texts[first : first + size] for first in range(0, len(texts), size)]
        loop = asyncio.get_running_loop()
        try:
            done = await asyncio.wait_for(
                asyncio.gather(*(loop.run_in_executor(self._pool, _render, p) for p in parts)),
                BATCH_SECONDS,
            )
        except Exception:  # Processes that die or hang must not end the import.
            logger.warning("rendering a batch failed; its code and formulas become plain text")
            self.close()
            self._pool = self._new_pool()
            return [rendered async for rendered in self._rendered_here(texts)]
        rendered = (msgspec.msgpack.decode(part, type=list[Rendered]) for part in done)
        return [self._with_media(text) for some in rendered for text in some]

    def _with_media(self, rendered: Rendered) -> Rendered:
        """Replace the URLs of images and videos on other servers with their URLs here."""
        proxied = self._proxied
        if proxied is None or self._mark not in rendered.html:
            return rendered
        html = self._marked.sub(
            lambda match: proxied(bytes.fromhex(match[1]).decode()), rendered.html
        )
        return replace(rendered, html=html)

    async def _rendered_here(self, texts: Sequence[Text]) -> AsyncIterator[Rendered]:
        context = CommandContext(self._state, 0, None)
        for _, text, names in texts:
            yield self._plain.render(context, text, names=names)
            await asyncio.sleep(0)  # A text can have 1,000, each taking 0.1 s.

    def close(self) -> None:
        """End the processes, even if they're busy."""
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Slow(Exception):
    pass


_own: "_Worker"


class _Worker:
    def __init__(self, records: Mapping[str, bytes], site: str, mark: str) -> None:
        types = {noun.table: noun.type for noun in NOUNS}
        decoded: dict[str, list[Any]] = {
            # mypy can't check types that are known only at run time.
            table: msgspec.msgpack.decode(rows, type=list[types[table]])  # type: ignore[valid-type]
            for table, rows in records.items()
        }
        self.context = CommandContext(State.load(0, decoded), 0, None)
        proxied = (lambda url: f"{mark}{url.encode().hex()}.") if mark else None
        self.full = Renderer(site, ExternalMedia(proxied), in_place=True)
        self.plain = Renderer(site)


def _begin(records: Mapping[str, bytes], site: str, mark: str) -> None:
    global _own
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGVTALRM, _interrupt)
    threading.Thread(target=end_with_parent, daemon=True).start()
    _own = _Worker(records, site, mark)
    yield_to_others()
    collect_rarely()
    return_freed_memory()


def _render(texts: Sequence[Text]) -> bytes:
    return msgspec.msgpack.encode([_one(*text) for text in texts])


def _one(user_id: int, content: str, names: FormerNames | None) -> Rendered:
    context = CommandContext(_own.context.state, 0, user_id or None)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
        try:
            return _own.full.render(context, content, names=names)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _Slow:
        pass
    except Exception:  # One message must not fail the others of its batch.
        logger.warning("could not render a message in full", exc_info=True)
    return _own.plain.render(context, content, names=names)


def _interrupt(*_: object) -> None:
    raise _Slow
