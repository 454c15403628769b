"""Reading RSS and Atom feeds that bots follow, and posting new entries, each once."""

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

import msgspec

from tertulia.domain import names
from tertulia.domain.accounts import feeds as verbs
from tertulia.domain.messages.sending import ToChannel
from tertulia.integrations.payloads import address, harmless, link, paragraphs, short
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.feeds import Feed
from tertulia.model.webhooks import WebhookLogEntry, WebhookOutcome
from tertulia.outbound import feeds as documents
from tertulia.outbound.feeds import FeedDocument, FeedEntry, NoFeed
from tertulia.outbound.http_responses import NotFetched, NotModified, StreamedResponse
from tertulia.service.messages import sending
from tertulia.service.node import Caller, Node
from tertulia.service.tasks import FairTasks, RetryLater
from tertulia.service.webhooks.journal import INTERNAL_ERROR
from tertulia.state.state import State
from tertulia.store import feeds
from tertulia.store.database import DatabaseError
from tertulia.store.feeds import FeedLease, FeedStatus
from tertulia.workers import TaskUnavailable

logger = logging.getLogger("tertulia.feeds")

MAX_CONCURRENT: Final = 4
"""The most feeds that one node reads at the same time."""
PER_OWNER: Final = 2
"""The most of these that belong to one owner's bots, so that slow feeds don't delay other owners'
feeds."""
FETCH_SECONDS: Final = 30.0
MAX_DOCUMENT: Final = 4 * 1024 * 1024
"""Largest feed, in bytes."""
LEASE_SECONDS: Final = 300.0
"""The duration of a lease in seconds, longer than reading a feed and posting its entries takes."""
ROUND_SECONDS: Final = 240.0
MAX_POSTED: Final = 10
"""The most entries of one feed that are posted at a time."""
REST_SECONDS: Final = 60.0
"""The pause before the next entries, in seconds."""
OLDEST: Final = 30 * 86_400.0
"""Entries that are older than this many seconds aren't posted."""
LONGEST_PAUSE: Final = 86_400.0
"""Pauses after failures double up to this many seconds."""
LONGEST_SLEEP: Final = 60.0
"""The longest sleep in seconds, since another node may have left something."""
MAX_VALIDATOR: Final = 1000
"""Longest `ETag` and `Last-Modified`, in characters."""
_JITTER: Final = (0.9, 1.1)


def followed(state: State) -> list[int]:
    """Return the IDs of active bots' feeds."""
    if state.is_closed:
        return []
    return [feed.id for feed in state.feeds if state.users[feed.bot_id].is_active]


class FeedReader:
    """Reads feeds for one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.tasks = FairTasks(
            MAX_CONCURRENT, PER_OWNER, self._owner_of, logger, "could not read a feed"
        )
        """Running tasks, by feed ID."""

    async def once(self) -> float:
        """Start reading the feeds that are due. Return the seconds until the next round."""
        store, known = self._node.store, followed(self._node.state)
        if not known or not self._node.config.feed_minutes:
            return LONGEST_SLEEP

        async def leased(feed_ids: list[int], now: float) -> list[tuple[int, FeedLease]]:
            leases = await store.write(
                lambda c: feeds.lease(c, known, now, LEASE_SECONDS, feed_ids)
            )
            return [(lease.feed_id, lease) for lease in leases]

        return await self.tasks.round(
            lambda: store.read(feeds.due_times, known),
            leased,
            self._read,
            self._node.clock,
            LONGEST_SLEEP,
        )

    def _owner_of(self, feed_id: int) -> int:
        """Return the bot's owner, or the bot; 0 if the feed no longer exists."""
        feed = self._node.state.feeds.get(feed_id)
        if feed is None:
            return 0
        return self._node.state.users[feed.bot_id].person_id

    async def _read(self, due: FeedLease) -> None:
        """Read the feed, post new entries, and store the result."""
        node = self._node
        feed = node.state.feeds.get(due.feed_id)
        if feed is None:
            return
        before = due.standing
        if before.url != feed.url:
            before = FeedStatus(url=feed.url)
        interval = node.config.feed_minutes * 60.0
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                after, is_done = await self._told(feed, before)
            pause = interval if is_done else min(REST_SECONDS, interval)
        except Exception as error:
            trouble = _failure(error)
            failures = before.failures + 1
            since = before.failing_since if before.failures else node.clock()
            after = msgspec.structs.replace(
                before, failures=failures, reason=str(trouble)[:500], failing_since=since
            )
            pause = trouble.pause(failures, interval, max(LONGEST_PAUSE, interval), LONGEST_PAUSE)
            if after.reason != before.reason:  # The journal holds 50 lines.
                self._note(feed, "failed", after.title, reason=after.reason)
        due_at = node.clock() + pause * random.uniform(*_JITTER)  # noqa: S311 (no secret)
        await node.store.write(lambda c: feeds.finish(c, due, after, due_at))

    async def _told(self, feed: Feed, before: FeedStatus) -> tuple[FeedStatus, bool]:
        """Read the feed, and post new entries. Return its status, and whether all entries were
        posted. Raise RetryLater and Refused."""
        node = self._node
        now = node.clock()
        try:
            document, etag, modified = await self._fetched(feed, before)
        except NotModified:
            return msgspec.structs.replace(before, read_at=now, failures=0, reason=""), True
        marks = frozenset(entry.mark for entry in document.entries)
        new = in_order(document.entries)
        if not feed.has_begun:
            # Post the newest entry, to show that it works.
            passed = [entry.mark for entry in new[:-1]]
        else:
            passed = [
                entry.mark for entry in new if entry.at is not None and entry.at < now - OLDEST
            ]
        passed = [mark for mark in passed if mark not in feed.seen]
        if passed or not feed.has_begun:
            await node.log.submit(None, verbs.skip_entries, feed, passed, marks)
        seen = {*feed.seen, *passed}
        new = [entry for entry in new if entry.mark not in seen]
        told_at = before.told_at
        for entry in new[:MAX_POSTED]:
            if await self._tell(feed, document.title, entry, marks):
                told_at = node.clock()
        is_done = len(new) <= MAX_POSTED
        # With these headers, the server would respond that the feed hasn't changed.
        standing = FeedStatus(
            url=feed.url,
            etag=etag if is_done else "",
            modified=modified if is_done else "",
            title=document.title,
            read_at=now,
            told_at=told_at,
        )
        return standing, is_done

    async def _fetched(self, feed: Feed, before: FeedStatus) -> tuple[FeedDocument, str, str]:
        """Return the document, its `ETag`, and its `Last-Modified`. Raise RetryLater and
        NotModified."""
        since = {"If-None-Match": before.etag, "If-Modified-Since": before.modified}
        since = {name: value for name, value in since.items() if value}
        try:
            async with self._node.services.opened(
                feed.url, accept=documents.ACCEPT, seconds=FETCH_SECONDS, since=since
            ) as answer:
                content = await answer.content(MAX_DOCUMENT)
        except NotModified:
            raise
        except NotFetched as error:
            raise RetryLater(f"Couldn't fetch the feed: {error}.", error.wait) from None
        kind = answer.headers.get("content-type", "")
        try:
            document = await documents.parsed(content, answer.url, kind)
        except NoFeed as error:
            raise RetryLater(f"Couldn't read the feed: {error}.") from None
        return document, _validator(answer, "etag"), _validator(answer, "last-modified")

    async def _tell(self, feed: Feed, title: str, entry: FeedEntry, marks: frozenset[str]) -> bool:
        """Post the entry, unless it was posted before. Return whether it was posted now."""
        node = self._node
        bot = node.state.users[feed.bot_id]
        topic = names.topic_name(feed.topic or _topic(title))
        draft = await sending.draft_of(
            node,
            bot,
            ToChannel(topic=topic, channel_id=feed.channel_id),
            names.message_content(worded(entry)),
            client="Feed",
            read_by_sender=False,
        )
        caller = Caller(node=node, user_id=bot.id)
        message_id = await caller.submit(verbs.post_entry, feed, entry.mark, marks, draft)
        if message_id is None:
            return False
        self._note(feed, "sent", entry.title or entry.url, message_id=message_id)
        return True

    def _note(
        self,
        feed: Feed,
        outcome: WebhookOutcome,
        what: str,
        *,
        reason: str = "",
        message_id: int | None = None,
    ) -> None:
        line = WebhookLogEntry(
            at=self._node.clock(),
            direction="in",
            what="feed",
            event=short(what or feed.url, 100),
            outcome=outcome,
            reason=reason,
            message_id=message_id,
        )
        self._node.journal.note(feed.bot_id, line)


def in_order(entries: Sequence[FeedEntry]) -> list[FeedEntry]:
    """Return the entries, oldest first: by their times if all have one, otherwise in reverse."""
    oldest_first = list(reversed(entries))
    if all(entry.at is not None for entry in oldest_first):
        oldest_first.sort(key=lambda entry: entry.at or 0.0)
    return oldest_first


def worded(entry: FeedEntry) -> str:
    """Return the entry as Markdown, without mentions."""
    url = address(entry.url)
    title = link(entry.title or (url and "…"), url)
    if entry.title:
        title = f"**{title}**"
    return short(harmless(paragraphs(title, entry.text)), names.MAX_MESSAGE) or "…"


def _topic(title: str) -> str:
    return short("".join(filter(names.is_plain, title)), names.MAX_TOPIC)


def _validator(answer: StreamedResponse, name: str) -> str:
    """Return the header, if it can be sent back."""
    text = answer.headers.get(name, "")
    return text if text.isascii() and text.isprintable() and len(text) <= MAX_VALIDATOR else ""


def _failure(error: Exception) -> RetryLater:
    match error:
        case RetryLater():
            return error
        case Refused():
            return RetryLater(f"The new entries couldn't be sent: {error}")
        case TimeoutError():
            return RetryLater("Reading the feed took too long.")
        case TaskUnavailable() | Unavailable() | DatabaseError():
            return RetryLater("The server was too busy.")
        case _:  # A bug: log it.
            logger.exception("could not read a feed", exc_info=error)
            return RetryLater(INTERNAL_ERROR)
