"""RSS, Atom, and RDF feeds, parsed by a worker."""

from typing import Final

from msgspec import Struct

from tertulia.workers import FILES, TaskBudget, TaskFailed, TaskLimitExceeded, WorkerTask

MAX_ENTRIES: Final = 200
"""The number of entries that are read. Feeds begin with the newest."""
MAX_TITLE: Final = 200
MAX_TEXT: Final = 1000
"""The most characters of an entry's text in Markdown."""
MAX_SECONDS: Final = 5.0
"""The most processor seconds for one document. A typical one takes a twentieth."""
PATIENCE: Final = 60.0
ACCEPT: Final = (
    "application/atom+xml,application/rss+xml,application/rdf+xml;q=0.9,"
    "application/xml;q=0.8,text/xml;q=0.8,*/*;q=0.5"
)


class FeedEntry(Struct, frozen=True, kw_only=True):
    """An entry of a feed."""

    mark: str
    """A digest of the entry's ID."""
    title: str
    """The title in one line; may be empty."""
    url: str
    """The entry's URL; may be empty."""
    text: str
    """The text as Markdown; may be empty."""
    at: float | None
    """Publication time in UNIX seconds, if known."""


class FeedDocument(Struct, frozen=True, kw_only=True):
    """A parsed feed."""

    title: str
    entries: list[FeedEntry]
    """In the feed's order, usually newest first."""


class NoFeed(Exception):
    """The document isn't a readable feed. `str(error)` is the end of a sentence."""


PARSED: Final[WorkerTask[FeedDocument | None]] = WorkerTask(
    "tertulia.outbound.feed_work:parsed",
    FeedDocument | None,
    load="tertulia.outbound.feed_work:load",
)


async def parsed(document: bytes, url: str, content_type: str) -> FeedDocument:
    """Parse the document from the URL. Raise NoFeed if it isn't a feed or takes too long, and
    Unanswered if too many are waiting."""
    allowance = TaskBudget(MAX_SECONDS, PATIENCE)
    try:
        document_read = await FILES.call(PARSED, document, url, content_type, allowance=allowance)
    except TaskLimitExceeded:
        raise NoFeed("it takes too long to read") from None
    except TaskFailed as error:
        raise NoFeed(f"it isn't valid ({error.kind})") from None
    if document_read is None:
        raise NoFeed("it isn't a feed")
    return document_read
