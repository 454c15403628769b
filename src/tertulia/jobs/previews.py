"""Link previews, which are fetched after a message was sent and then added to it."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from tertulia.domain.messages import editing
from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.model.changes import MessageEdited, MessageSent
from tertulia.model.errors import NoSuchMessage, Refused, Unavailable
from tertulia.model.messages import LinkPreview, PendingPreview
from tertulia.outbound import pages
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.messages.editing import linked_pages, show_previews
from tertulia.service.node import Node
from tertulia.store.database import DatabaseError

logger = logging.getLogger("tertulia.previews")

MAX_CONCURRENT: Final = 8
"""The most messages whose pages are fetched at the same time."""
MAX_PAGE: Final = 512 * 1024
"""The number of bytes of a page that are read. Metadata is at the beginning."""
FETCH_SECONDS: Final = 15.0
KNOWN: Final = 500
"""The number of cached previews."""
KNOWN_SECONDS: Final = 3600.0
SHOW_SECONDS: Final = 60.0
"""The timeout in seconds for all pages of a message."""
LONGEST_SLEEP: Final = 60.0

_Working = dict[PendingPreview, asyncio.Task[None]]


class Previewer:
    """Fetches previews for one node. Pages that don't respond in time get no preview."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._log = node.log
        self._known: OrderedDict[str, tuple[float, LinkPreview | None]] = OrderedDict()
        self._working: _Working = {}
        self._ended: Callable[[], None] = lambda: None
        self._set_aside = FailedItems()

    def job(self) -> Job:
        """Return the job that adds previews to all messages that wait for them."""
        job = Job("previews", self._once, close=self._close, set_aside=self._set_aside)
        self._ended = job.want
        job.wake_on(self._log, MessageSent, MessageEdited)
        self._log.subscribers.on_reload.append(job.want)
        return job

    async def _once(self) -> float:
        """Start as many fetches as allowed. The end of each starts the next round."""
        for pending in self._next():
            task = asyncio.create_task(self._do(pending))
            self._working[pending] = task
            task.add_done_callback(partial(self._done, pending))
        # Messages may have been deleted, or handled by another node.
        awaiting = self._log.state.pending_previews
        self._set_aside.keep_only(pending.message_id for pending in awaiting)
        again = self._set_aside.next_attempt()
        return LONGEST_SLEEP if again is None else min(again, LONGEST_SLEEP)

    async def _close(self) -> None:
        left = list(self._working.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _next(self) -> list[PendingPreview]:
        if self._log.state.is_closed:
            return []
        pending_previews: list[PendingPreview] = []
        for pending in self._log.state.pending_previews:
            if len(self._working) + len(pending_previews) >= MAX_CONCURRENT:
                break
            if pending not in self._working and not self._set_aside.is_resting(pending.message_id):
                pending_previews.append(pending)
        return pending_previews

    def _done(self, pending: PendingPreview, _: asyncio.Task[None]) -> None:
        del self._working[pending]
        self._ended()

    async def _do(self, pending: PendingPreview) -> None:
        try:
            await self._show_or_give_up(pending)
        except Exception as error:
            # It is retried.
            self._set_aside.failed(pending.message_id, error)
            if not is_outage(error):
                logger.exception("could not add previews to message %d", pending.message_id)
        else:
            self._set_aside.done(pending.message_id)

    async def _show_or_give_up(self, pending: PendingPreview) -> None:
        try:
            async with asyncio.timeout(SHOW_SECONDS):
                await self.show(pending)
        except (Refused, Unavailable, DatabaseError):
            raise
        except Exception:  # A bug must not cause endless retries.
            logger.exception("gave up previews of message %d", pending.message_id)
            await self._log.submit(None, editing.give_up, pending)

    async def show(self, pending: PendingPreview) -> None:
        """Fetch a message's previews, and add them to it."""
        try:
            urls = await linked_pages(self._node, pending)
            results = await asyncio.gather(*map(self._preview, urls))
            await show_previews(self._node, pending, dict(zip(urls, results, strict=True)))
        except NoSuchMessage:
            await self._log.submit(None, editing.give_up, pending)

    async def _preview(self, url: str) -> LinkPreview | None:
        now = self._node.clock()
        if url in self._known and now - self._known[url][0] < KNOWN_SECONDS:
            return self._known[url][1]
        preview = await self._fetched(url)
        self._known[url] = (now, preview)
        self._known.move_to_end(url)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return preview

    async def _fetched(self, url: str) -> LinkPreview | None:
        try:
            async with self._node.web.opened(
                url, accept="text/html,application/xhtml+xml", seconds=FETCH_SECONDS
            ) as answer:
                if answer.media_type not in pages.MEDIA_TYPES:
                    return None
                content = await answer.beginning(MAX_PAGE)
                kind = answer.headers.get("content-type", "")
                return await pages.preview(content, answer.url, kind)
        except NotFetched as error:
            # Linked addresses aren't logged.
            logger.info("no preview of a page: %s", error)
            return None
