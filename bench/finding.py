"""Finding messages in a long past, over HTTP, beside fetching as many by their IDs."""

import json
import time
from urllib.parse import quote

from bench.archive import COMMON, RARE, Archive
from bench.asking import get
from bench.report import Sample
from tertulia.config import Config
from tertulia.store import reading
from tertulia.store.store import database_at


def _page(archive: Archive, narrow: list[list[str]]) -> str:
    text = quote(json.dumps(narrow))
    page = f"/messages?anchor=newest&num_before=100&num_after=0&narrow={text}"
    return get(page, archive.authorization)


def by_id(archive: Archive) -> str:
    """A hundred messages by their IDs."""
    text = quote(json.dumps(archive.by_id))
    return get(f"/messages?message_ids={text}", archive.authorization)


def requests(archive: Archive) -> dict[str, str]:
    """What is asked for, by what it is."""
    narrows: dict[str, list[list[str]]] = {
        "the newest 100": [],
        "of a topic": [["channel", archive.channel], ["topic", archive.topic]],
        "of a sender": [["sender", archive.sender]],
        "direct, of a few": [["is", "dm"]],
        "unread ones": [["is", "unread"]],
        "with a link": [["has", "link"]],
        "with a rare word": [["search", RARE]],
        "with a common word": [["search", COMMON]],
    }
    return {title: _page(archive, narrow) for title, narrow in narrows.items()}


def rows(config: Config, archive: Archive, seconds: float) -> Sample:
    """The bare query for a hundred messages by their IDs, without a server."""
    connection = database_at(config.data_path, config.database_url).connect(readonly=True)
    clock = time.perf_counter
    took: list[float] = []
    reading.messages(connection, archive.by_id)  # What is read once is in memory now.
    start = clock()
    while clock() - start < seconds:
        before = clock()
        reading.messages(connection, archive.by_id)
        took.append(clock() - before)
    elapsed = clock() - start
    connection.close()
    return Sample(took, elapsed)
