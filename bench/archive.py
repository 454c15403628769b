"""An organization with a long history: people, channels, and any number of messages.

People and channels are created through the log. Messages are inserted into the tables in bulk, and
the log looks as if it had been pruned.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from pyroaring import BitMap

from bench import filling, organization
from bench.organization import BEGAN, Organization
from tertulia.model.channels import Topic
from tertulia.model.messages import DirectConversation, Flag
from tertulia.model.numbers import Counter
from tertulia.service.config import Config
from tertulia.store import search_index, usage
from tertulia.store.codec import CHUNK_BITS, encode
from tertulia.store.database import Connection
from tertulia.store.store import database_at
from tertulia.store.usage import UsageProgress

PEOPLE, CHANNELS, TOPICS = 300, 30, 60
"""The numbers of people and channels, and of topics in each channel. The first person is in every
channel."""
UNREAD = 50_000
RARE, COMMON = "zanzibar", "the"
_BATCH = 20_000
_INDEXES = {
    "messages_by_topic": "messages (topic_id, id)",
    "messages_by_channel": "messages (channel_id, id)",
    "messages_by_direct": "messages (direct_id, id)",
    "messages_by_sender": "messages (sender_id, id)",
    "messages_by_author": "messages (sender_id, channel_id, id)",
}
"""Indexes that are faster to create at the end."""
_TOPIC_COLUMNS = ("id", "channel_id", "key", "name")
_COLUMNS = (
    *("id", "sender_id", "sent_at", "channel_id", "topic_id", "direct_id", "content"),
    *("rendered", "client", "has_link", "has_image", "has_attachment", "is_me", "mentions_all"),
)


@dataclass
class Archive:
    """The accounts, channels, and messages that requests use."""

    authorization: str
    """The header of a person who is in every channel."""
    channel: str
    topic: str
    sender: str
    """The sender's email address."""
    partner: int
    """Someone with whom the reader exchanged a few direct messages, long ago."""
    by_id: list[int]
    """The IDs of a hundred random messages."""


@dataclass
class _Made:
    topics: dict[tuple[int, str], tuple[int, int, int]] = field(default_factory=dict)
    directs: dict[int, int] = field(default_factory=dict)


async def create(
    config: Config, count: int, people: int = PEOPLE, channels: int = CHANNELS
) -> Archive:
    """Create the organization with this many messages. Half of them, up to `UNREAD`, are unread for
    the reader."""
    return add_messages(config, await organization.create(config, people, channels), count)


def add_messages(config: Config, made: Organization, count: int) -> Archive:
    """Add `count` messages to the organization, which must not have any: one every ten seconds."""
    people = range(made.first_user_id, made.first_user_id + len(made.people))
    channels = range(made.first_channel_id, made.first_channel_id + made.channels)
    result = _Made()
    with filling.begun(config) as bulk:
        indexes = {**_INDEXES, **bulk.search_indexes}
        for index in indexes:
            bulk.run(f"DROP INDEX {index}")
        for rows in _batches(_rows(count, people, channels, result)):
            bulk.insert("messages", _COLUMNS, rows)
            bulk.insert(
                "message_search",
                bulk.search_columns,
                [
                    bulk.search_row(row[0], row[6], search_index.place_of(row[3], row[5]))
                    for row in rows
                ],
            )
        for index, columns in indexes.items():
            bulk.run(f"CREATE INDEX {index} ON {columns}")
    connection = database_at(config.data_path, config.database_url).connect(readonly=False)
    try:
        connection.run("BEGIN")
        _keep(connection, count, people, result)
        _count_messages(connection)
        connection.run("COMMIT")
        connection.run(bulk.tidy)
    finally:
        connection.close()
    return Archive(
        made.people[0],
        channel="channel 0",
        topic="topic 7",
        sender="p5@example.com",
        partner=people[1],
        by_id=sorted(random.Random(2).sample(range(1, count + 1), min(count, 100))),
    )


def _count_messages(connection: Connection) -> None:
    """Update the usage counts as the server would. Otherwise, it would do so during the
    measurement."""
    at: UsageProgress | None = usage.progress(connection)
    is_all = False
    while at is not None and not is_all:  # Nothing else counts usage.
        new = usage.new_messages(connection, at.message_id)
        at, is_all = usage.add_messages(connection, at, new), new.is_all


def add_topics(
    config: Config,
    channel_id: int,
    names: Sequence[str],
    count: int,
    senders: Sequence[int],
    content: str | None = None,
) -> list[range]:
    """Add topics to the channel, each with this many messages by these senders, newer than all
    others. Return the IDs of each topic's messages. All have `content`, or name their topic."""
    connection = database_at(config.data_path, config.database_url).connect(readonly=True)
    ((first,),) = connection.query("SELECT COALESCE(MAX(id), 0) + 1 FROM messages")
    connection.close()
    results, topics, by_id = [], [], []
    messages: list[tuple[Any, ...]] = []
    texts: list[tuple[int, str]] = []
    for number, name in enumerate(names):
        ids = range(first + number * count, first + (number + 1) * count)
        results.append(ids)
        text = content or f"What there is to say about {name}"
        messages += (
            (
                *(
                    message_id,
                    senders[message_id % len(senders)],
                    BEGAN + 10 * message_id,
                    channel_id,
                ),
                *(-ids[-1], None, text, f"<p>{text}</p>", "bench", 0, 0, 0, 0, 0),
            )
            for message_id in ids
        )
        texts += ((message_id, text) for message_id in ids)
        topic = Topic(
            channel_id=channel_id,
            key=name,
            name=name,
            last_message_id=ids[-1],
            message_count=count,
        )
        topics.append((channel_id, name, encode(topic)))
        by_id.append((-ids[-1], channel_id, name, name))
    with filling.begun(config) as bulk:
        bulk.insert("messages", _COLUMNS, messages)
        search = [bulk.search_row(*text, channel_id) for text in texts]
        bulk.insert("message_search", bulk.search_columns, search)
        bulk.insert("topics", ("channel_id", "key", "doc"), topics)
        bulk.insert("message_topics", _TOPIC_COLUMNS, by_id)
        counter = encode(Counter(name="messages", last=results[-1][-1])).replace("'", "''")
        bulk.run(f"UPDATE counters SET doc = '{counter}' WHERE name = 'messages'")
    connection = database_at(config.data_path, config.database_url).connect(readonly=False)
    connection.run("BEGIN")
    search_index.add_topics(connection, ((channel_id, name) for name in names))
    _count_messages(connection)
    connection.run("COMMIT")
    connection.close()
    return results


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def _rows(count: int, people: range, channels: range, made: _Made) -> Iterator[tuple[Any, ...]]:
    """Yield the messages as rows, and add their topics and conversations to `found`."""
    rng = random.Random(1)
    sentences = _sentences(rng)
    weights = [1 / (number + 1) for number in range(len(channels))]
    places = rng.choices(channels, weights, k=10_007)
    authors = rng.choices(people, [1 / (number + 3) for number in range(len(people))], k=9_973)
    for message_id in range(1, count + 1):
        text = sentences[message_id * 7919 % len(sentences)]
        if message_id % 50_000 == 4_711:
            text += f" {RARE}"
        has_link = message_id % 40 == 7
        if has_link:
            text += f" https://example.com/{message_id}"
        channel_id: int | None = places[message_id % len(places)]
        number = message_id // 97 % TOPICS
        topic_id: int | None = -((channel_id or 0) * TOPICS + number)
        direct_id = None
        if message_id % 20 == 0:
            # Other people's conversations, and a few old messages between the reader and one other
            # person.
            direct_id = 1 if message_id <= count // 50 and message_id % 400 == 0 else 2
            if message_id % 60 == 0:
                direct_id = 3 + message_id // 60 % 500
            channel_id = topic_id = None
            made.directs[direct_id] = message_id
        elif channel_id is not None and topic_id is not None:
            topic = f"topic {number}"
            _, messages, _ = made.topics.get((channel_id, topic), (0, 0, 0))
            made.topics[channel_id, topic] = (message_id, messages + 1, topic_id)
        yield (
            message_id,
            authors[message_id % len(authors)],
            BEGAN + 10 * message_id,
            channel_id,
            topic_id,
            direct_id,
            text,
            f"<p>{text}</p>",
            "bench",
            int(has_link),
            0,
            0,
            0,
            0,
        )


def _sentences(rng: random.Random) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (number + 2) for number in range(len(letters))]
    words = ["".join(rng.choices(letters, weights, k=rng.randint(2, 9))) for _ in range(20_000)]
    usual = list(accumulate(1 / (number + 10) for number in range(len(words))))
    return [
        " ".join(
            [COMMON, *rng.choices(words, cum_weights=usual, k=rng.randint(3, 20))][number % 2 :]
        )
        for number in range(30_000)
    ]


def _keep(connection: Connection, count: int, people: range, made: _Made) -> None:
    """Fill the other tables: topics, conversations, and the first person's flags and read state."""
    reader, rng = people[0], random.Random(3)
    connection.run_many(
        "INSERT INTO topics (channel_id, key, doc) VALUES (?, ?, ?)",
        [
            (
                channel_id,
                key,
                encode(
                    Topic(
                        channel_id=channel_id,
                        key=key,
                        name=key,
                        last_message_id=last,
                        message_count=messages,
                    )
                ),
            )
            for (channel_id, key), (last, messages, _) in made.topics.items()
        ],
    )
    connection.run_many(
        "INSERT INTO message_topics (id, channel_id, key, name) VALUES (?, ?, ?, ?)",
        [
            (topic_id, channel_id, key, key)
            for (channel_id, key), (_, _, topic_id) in made.topics.items()
        ],
    )
    search_index.add_all_topics(connection, lambda _: None)
    connection.run_many(
        "INSERT INTO direct_conversations (id, doc) VALUES (?, ?)",
        [
            (direct_id, encode(_conversation(direct_id, last, people)))
            for direct_id, last in made.directs.items()
        ],
    )
    connection.run("DELETE FROM counters WHERE name = 'messages'")
    counter = encode(Counter(name="messages", last=count))
    connection.run("INSERT INTO counters (name, doc) VALUES ('messages', ?)", (counter,))
    flags: dict[int, Flag] = defaultdict(lambda: Flag(0))
    for flag, some in ((Flag.STARRED, 200), (Flag.MENTIONED, 1000)):
        for message_id in rng.sample(range(1, count + 1), some):
            flags[message_id] |= flag
    connection.run_many(
        "INSERT INTO message_flags (user_id, message_id, flags) VALUES (?, ?, ?)",
        [(reader, message_id, int(flag)) for message_id, flag in flags.items()],
    )
    unread = BitMap(rng.sample(range(1, count + 1), min(UNREAD, count // 2)))
    for chunk in range((count >> CHUNK_BITS) + 1):
        ids = range(max(chunk << CHUNK_BITS, 1), min((chunk + 1) << CHUNK_BITS, count + 1))
        read = BitMap(ids) - unread
        connection.run(
            "INSERT INTO read_state (user_id, chunk, bitmap) VALUES (?, ?, ?)",
            (reader, chunk, read.serialize()),
        )


def _conversation(direct_id: int, last: int, people: range) -> DirectConversation:
    if direct_id <= 2:
        members = (people[0], people[1]) if direct_id == 1 else (people[1], people[2])
    else:
        first, other = divmod(direct_id, len(people) - 4)
        members = (people[2 + first], people[3 + first + other % (len(people) - 10)])
    return DirectConversation(id=direct_id, members=members, last_message_id=last)
