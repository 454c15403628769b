"""What feeds say: documents in RSS, Atom or RDF, read by a worker."""

from typing import Final

from msgspec import Struct

from tertulia.workers import FILES, TaskBudget, TaskFailed, TaskLimitExceeded, WorkerTask

MAX_ENTRIES: Final = 200
"""Of one document, from its beginning: there the newest are."""
MAX_TITLE: Final = 200
MAX_TEXT: Final = 1000
"""Characters of what an entry says, in Markdown."""
MAX_SECONDS: Final = 5.0
"""Of the processor, for one document; a usual one takes a twentieth."""
PATIENCE: Final = 60.0
ACCEPT: Final = (
    "application/atom+xml,application/rss+xml,application/rdf+xml;q=0.9,"
    "application/xml;q=0.8,text/xml;q=0.8,*/*;q=0.5"
)


class FeedEntry(Struct, frozen=True, kw_only=True):
    """One entry."""

    mark: str
    """Stands for its identity: the same as long as the feed means the same entry."""
    title: str
    """In one line; may be empty."""
    url: str
    """Empty where it has none on the web."""
    text: str
    """What it says, in Markdown; may be empty."""
    at: float | None
    """When it was published, in UNIX seconds; None where it does not say."""


class FeedDocument(Struct, frozen=True, kw_only=True):
    """What a document says."""

    title: str
    entries: list[FeedEntry]
    """In its own order, which mostly is the newest first."""


class NoFeed(Exception):
    """The document is none that can be read. `str(error)` says why, as the end of a sentence."""


PARSED: Final[WorkerTask[FeedDocument | None]] = WorkerTask(
    "tertulia.outbound.feed_work:parsed",
    FeedDocument | None,
    load="tertulia.outbound.feed_work:load",
)


async def parsed(document: bytes, url: str, content_type: str) -> FeedDocument:
    """What the document says that was found at the URL. NoFeed where it is no feed, or takes too
    long; Unanswered where too much waits."""
    allowance = TaskBudget(MAX_SECONDS, PATIENCE)
    try:
        found = await FILES.call(PARSED, document, url, content_type, allowance=allowance)
    except TaskLimitExceeded:
        raise NoFeed("it takes too long to read") from None
    except TaskFailed as error:
        raise NoFeed(f"it isn't valid ({error.kind})") from None
    if found is None:
        raise NoFeed("it isn't a feed")
    return found
