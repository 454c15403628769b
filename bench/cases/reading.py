"""Reading and searching in 1,000,000 messages."""

import time
from collections.abc import Iterator
from functools import partial

from bench import api, archive
from bench.archive import COMMON, RARE, Archive
from bench.arithmetic import Sample, Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY, OLD_COMPANY, Made
from bench.organization import SIZES, SMALL
from bench.report import Line
from tertulia.store import queries
from tertulia.store.store import database_at

NEWEST, SEARCH = 0.0015, 0.003
"""The allowed time of GET /messages, in seconds."""
LITTLE = 0.1
"""The longest time for a search with few or no matches, in seconds."""
OTHERS = 100_000
"""Messages in a channel of ten people, newer than everyone else's."""


def _narrows(archive: Archive) -> dict[str, tuple[str, list[list[str]], float | None]]:
    """Return the requests by name: their title, narrow, and allowed time in seconds."""
    return {
        "newest": ("newest 100", [], NEWEST),
        "rare": ("search, rare word", [["search", RARE]], SEARCH),
        "common": ("search, common word", [["search", COMMON]], SEARCH),
        "topic": ("topic", [["channel", archive.channel], ["topic", archive.topic]], None),
        "sender": ("sender", [["sender", archive.sender]], None),
        "direct": ("direct messages", [["is", "dm"]], None),
        "unread": ("unread", [["is", "unread"]], None),
        "link": ("with a link", [["has", "link"]], None),
    }


def _rows(made: Made, seconds: float) -> Sample:
    """Measure the bare query of 100 messages by ID, without a server."""
    config = made.config
    connection = database_at(config.data_path, config.database_url).connect(readonly=True)
    clock = time.perf_counter
    took: list[float] = []
    queries.messages(connection, made.archive.by_id)  # The first read fills the caches.
    start = clock()
    while clock() - start < seconds:
        before = clock()
        queries.messages(connection, made.archive.by_id)
        took.append(clock() - before)
    elapsed = clock() - start
    connection.close()
    return Sample(len(took), elapsed, took)


def _measure(bench: Bench) -> Iterator[Line]:
    served = bench.served(OLD_COMPANY)
    person = served.made.people[0]
    narrows = {
        name: narrow
        for name, narrow in _narrows(served.made.archive).items()
        if narrow[2] is not None or not bench.quick
    }
    asked = {name: api.newest(person, narrow) for name, (_, narrow, _) in narrows.items()}
    for request in asked.values():
        api.asked(served.port, request)
    result = bench.interleaved(
        {
            "rows": lambda: _rows(served.made, bench.seconds / 4),
            **{
                name: partial(bench.requests, served.server, request)
                for name, request in asked.items()
            },
        }
    )
    limit = result["rows"].medians()
    for name, (title, _, bound) in narrows.items():
        rounds = result[name]
        line = Line(
            f"read_{name}", f"GET /messages, 1,000,000 messages: {title}", "ms", rounds.medians()
        )
        line.p99 = rounds.p99()
        line.limit, line.limit_title = limit, "bare query, 100 rows"
        line.cpu, line.generator = rounds.cpu, rounds.generator
        if bound is not None:
            line.targets = [Target("p50", line.value, bound, "ms")]
        yield line
    yield from _after_others(bench)
    yield from _little(bench)


def _others_wrote(made: Made) -> None:
    """Let a bot send very many messages to a channel with few subscribers."""
    organization = made.organization
    channel_id = organization.first_channel_id + organization.channels + list(SIZES).index(SMALL)
    archive.add_topics(made.config, channel_id, ["mad"], OTHERS, [organization.first_user_id])


def _after_others(bench: Bench) -> Iterator[Line]:
    """Measure the newest page of someone who didn't receive many newer messages, compared with
    someone who received all of them."""
    with bench.fresh(COMPANY, prepare=_others_wrote) as served:
        text, other = served.made.people[0], served.made.usual
        result = bench.interleaved(
            {
                "one": partial(bench.requests, served.server, api.newest(text, [])),
                "other": partial(bench.requests, served.server, api.newest(other, [])),
            }
        )
    rounds = result["other"]
    title = f"GET /messages, {OTHERS:,} newer messages not received: newest 100"
    line = Line("read_after_others", title, "ms", rounds.medians(), rounds.p99())
    line.limit, line.limit_title = result["one"].medians(), "received"
    line.cpu, line.generator = rounds.cpu, rounds.generator
    yield line


def _quiet_wrote(made: Made) -> None:
    """Let one person send many messages to a channel, without a link and without the common
    word."""
    organization = made.organization
    channel_id = organization.first_channel_id + organization.channels + list(SIZES).index(SMALL)
    text = "apples and pears"
    topics, senders = ["budget", "quiet"], [organization.first_user_id]
    archive.add_topics(made.config, channel_id, topics, OTHERS // 2, senders, text)


def _little(bench: Bench) -> Iterator[Line]:
    """Search a million messages, half of which contain the word, as someone who can read few or
    none of them, and in a large channel without the word."""
    with bench.fresh(OLD_COMPANY, prepare=_quiet_wrote) as served:
        made = served.made
        text, nobody = made.people[0], made.organization.owner
        common, quiet = ["search", f'"{COMMON}"'], ["channel", SMALL]
        asked = {
            "newest": api.newest(text, []),
            "word": api.newest(text, [quiet, common]),
            "sender": api.newest(text, [quiet, ["sender", made.archive.sender]]),
            "link": api.newest(text, [quiet, ["has", "link"]]),
            "nowhere": api.newest(nobody, [common]),
            "topic": api.newest(text, [["search", "budget"]]),
        }
        for request in asked.values():
            api.asked(served.port, request)
        result = bench.interleaved(
            {
                name: partial(bench.requests, served.server, request)
                for name, request in asked.items()
            }
        )
    titles = {
        "word": f"a common word in {OTHERS:,} that don't say it",
        "sender": f"of a sender, in {OTHERS:,} of others",
        "link": f"with a link, in {OTHERS:,} without",
        "nowhere": "a common word, of who is in no channel",
        "topic": f"a word in the name of a topic of {OTHERS // 2:,}, before as many others",
    }
    for name, title in titles.items():
        rounds = result[name]
        title = f"GET /messages, 1,000,000 messages: {title}"
        line = Line(f"read_little_{name}", title, "ms", rounds.medians(), rounds.p99())
        line.limit, line.limit_title = result["newest"].medians(), "newest 100"
        line.cpu, line.generator = rounds.cpu, rounds.generator
        line.targets = [Target("p50", line.value, LITTLE, "ms")]
        yield line


CASE = Case("read", "GET /messages among a million messages: newest, and search", _measure)
