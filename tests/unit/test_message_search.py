"""Searches, compared with a plain filter over all messages."""

import contextlib
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.model import narrow, tokenizer
from tertulia.model.changes import (
    AnyChange,
    Entry,
    FlagsChanged,
    MessageEdited,
    MessageSent,
    MessagesMoved,
    MessagesRead,
)
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message, Propagation
from tertulia.model.narrow import LARGEST, ChannelSpan, Condition, MessageSearch, Scope, Term
from tertulia.model.tokenizer import Phrase, phrases_of
from tertulia.service.config import Config
from tertulia.store import (
    editing,
    message_marks,
    message_search,
    queries,
    scope_walk,
    search_hits,
    search_index,
    search_text,
    search_walk,
    topics,
)
from tertulia.store.codec import CHUNK_BITS
from tertulia.store.database import Connection, Row, TimeLimitReached
from tertulia.store.dialect import Lookup
from tertulia.store.narrow_sql import IdSubset, smallest_subset
from tertulia.store.search_hits import SearchHits
from tertulia.store.search_walk import SearchWalk
from tertulia.store.store import database_at
from tertulia.store.writing import Batch, write
from tests import databases
from tests.support import row

READER = 1
WORDS = ("Apple", "apples", "banana", "Straße", "über", "x1", "the", "cherry")
TOPICS = ("", "Food", "food", "✔ Food", "Straße", "100%_done")


@pytest.fixture
def connection(config: Config) -> Iterator[Connection]:
    databases.migrated(config)
    with contextlib.closing(_connected(config)) as connection:
        yield connection


def _connected(config: Config) -> Connection:
    return database_at(config.data_path, config.database_url).connect(readonly=False)


def messages_at_random(rng: random.Random, count: int) -> tuple[list[Message], dict[int, Flag]]:
    messages, flags = [], {}
    for message_id in sorted(rng.sample(range(1, 10 * count), count)):
        is_channel = rng.random() < 0.7
        messages.append(
            Message(
                id=message_id,
                sender_id=rng.randint(1, 3),
                sent_at=message_id * 10,
                channel_id=rng.randint(1, 3) if is_channel else None,
                topic=rng.choice(TOPICS) if is_channel else "",
                direct_id=None if is_channel else rng.randint(1, 3),
                content=" ".join(rng.choices(WORDS, k=rng.randint(1, 4))),
                has_link=rng.random() < 0.3,
                mentions_all=is_channel and rng.random() < 0.2,
            )
        )
        if rng.random() < 0.4:
            flags[message_id] = Flag(rng.randint(1, 127))
    return messages, flags


def written(connection: Connection, messages: list[Message], flags: dict[int, Flag]) -> None:
    entries = []
    for number, message in enumerate(messages, 1):
        own = {READER: flags[message.id]} if message.id in flags else {}
        entries.append(Entry(number, 0.0, None, MessageSent(message=message, flags=own)))
    write(connection, Batch(entries, {}))


def in_spans(message: Message, spans: tuple[ChannelSpan, ...]) -> bool:
    return any(
        message.channel_id == span.channel_id
        and message.id > span.after
        and (span.until is None or message.id <= span.until)
        for span in spans
    )


def in_scope(message: Message, scope: Scope, flags: dict[int, Flag]) -> bool:
    return (
        message.channel_id in scope.channel_ids
        or in_spans(message, scope.spans)
        or message.direct_id in scope.direct_ids
        or (
            message.channel_id in scope.recorded
            and bool(flags.get(message.id, Flag(0)) & Flag.RECORD)
        )
    )


def words_of(text: str) -> list[str]:
    plain = text.lower().replace("ß", "ss").replace("ü", "u")
    return re.findall(r"[a-z0-9]+", plain)


def has_phrase(words: list[str], phrase: Phrase) -> bool:
    size, (*before, last) = len(phrase.words), phrase.words
    return any(
        words[n : n + size - 1] == before
        and (
            words[n + size - 1] == last or (phrase.is_open and words[n + size - 1].startswith(last))
        )
        for n in range(len(words) - size + 1)
    )


def holds(message: Message, condition: Condition, flags: dict[int, Flag]) -> bool:
    own = flags.get(message.id, Flag(0))
    match condition:
        case narrow.InChannels(channel_ids=ids):
            return message.channel_id in ids
        case narrow.InTopic(key=key):
            return message.channel_id is not None and topic_key(message.topic) == key
        case narrow.TopicBegins(prefix=prefix):
            return message.channel_id is not None and topic_key(message.topic).startswith(prefix)
        case narrow.FromSender(user_id=user):
            return message.sender_id == user
        case narrow.InDirect(direct_ids=ids):
            return message.direct_id in ids
        case narrow.AnyDirect():
            return message.direct_id is not None
        case narrow.HasFlag(flags=mask, wildcards=spans):
            return bool(own & mask) or (message.mentions_all and in_spans(message, spans))
        case narrow.Mentions(user_id=user):
            return user == READER and bool(own & Flag.MENTIONED)
        case narrow.IsUnread(ids=ids):
            return message.id in ids
        case narrow.HasPart(part=part):
            return bool(getattr(message, f"has_{part}"))
        case narrow.HasId(message_id=wanted):
            return message.id == wanted
        case narrow.Matches(phrases=phrases):
            texts = (words_of(message.content), words_of(message.topic))
            return all(any(has_phrase(words, phrase) for words in texts) for phrase in phrases)
        case narrow.Nothing():
            return False
        case narrow.InTopics(topics=topics):
            return (message.channel_id, topic_key(message.topic)) in topics
        case narrow.IsMuted(channel_ids=ids, topics=muted, unmuted=spared):
            topic = message.channel_id, topic_key(message.topic)
            return topic in muted or (message.channel_id in ids and topic not in spared)
        case narrow.HasReaction():
            raise AssertionError(f"None of `conditions_at_random`: {condition}")


def conditions_at_random(rng: random.Random, messages: list[Message]) -> list[Condition]:
    ids = [message.id for message in messages]
    spans = (
        ChannelSpan(1, rng.choice(ids), None),
        ChannelSpan(2, 0, rng.choice(ids)),
        ChannelSpan(3, 0, None),
    )
    return [
        narrow.InChannels(frozenset(rng.sample(range(1, 5), rng.randint(0, 3)))),
        narrow.InChannels(frozenset({2})),
        narrow.InTopic(topic_key(rng.choice(TOPICS))),
        narrow.TopicBegins("✔ "),
        narrow.TopicBegins("100%"),
        narrow.InTopics(topics_at_random(rng, 3)),
        narrow.IsMuted(
            frozenset({rng.randint(1, 3)}), topics_at_random(rng, 2), topics_at_random(rng, 2)
        ),
        narrow.FromSender(2),
        narrow.InDirect(frozenset({1})),
        narrow.InDirect(frozenset({1, 3})),
        narrow.InDirect(frozenset()),
        narrow.AnyDirect(),
        narrow.HasFlag(int(Flag.STARRED)),
        narrow.HasFlag(int(Flag.MENTIONED | Flag.HAS_ALERT_WORD), spans),
        narrow.Mentions(READER),
        narrow.Mentions(3),
        narrow.IsUnread(BitMap(rng.sample(ids, 10))),
        narrow.HasPart("link"),
        narrow.HasPart("image"),
        narrow.HasId(rng.choice(ids)),
        *(
            narrow.Matches(phrases_of(text))
            for text in ("apple", '"apple"', "ban the", '"the apple"', "the-apple", "apple STRASSE")
        ),
        narrow.Nothing(),
    ]


def topics_at_random(rng: random.Random, count: int) -> frozenset[tuple[int, str]]:
    return frozenset((rng.randint(1, 3), topic_key(rng.choice(TOPICS))) for _ in range(count))


def scopes_at_random(rng: random.Random, messages: list[Message]) -> Scope:
    ids = [message.id for message in messages]
    return Scope(
        user_id=READER,
        channel_ids=frozenset(rng.sample(range(1, 4), rng.randint(0, 3))),
        spans=tuple(
            span for n in range(1, rng.randint(1, 4)) for span in stretches_at_random(rng, n, ids)
        ),
        direct_ids=frozenset(rng.sample(range(1, 4), rng.randint(0, 3))),
        recorded=frozenset(rng.sample(range(1, 4), rng.randint(0, 2))),
    )


def stretches_at_random(rng: random.Random, channel_id: int, ids: list[int]) -> list[ChannelSpan]:
    """All of a channel, or the parts that someone who joined and left can read."""
    cuts = rng.choice([[0], sorted(rng.choices([0, *ids], k=rng.randint(1, 5)))])
    ends = [*cuts[1::2], None]
    return [
        ChannelSpan(channel_id, after, until) for after, until in zip(cuts[::2], ends, strict=False)
    ]


READS, ASKS, TAKES_TURNS, HOLDS = (0.0, 1e9, 1e9), (1e9, 0.0, 1e9), (5.0, 1.5, 1e9), (5.0, 1.5, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_finds_what_a_plain_filter_finds(
    connection: Connection, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever query plan it chooses, and however many steps it takes."""
    monkeypatch.setattr(scope_walk, "_REACH", (8, 2, 0, 0)[seed])
    monkeypatch.setattr(scope_walk, "_REACH_OF_PLACE", 0)
    monkeypatch.setattr(scope_walk, "_MERGED", (512, 512, 4, 1)[seed])
    monkeypatch.setattr(scope_walk, "_WORTH", (8, 8, 1, 1)[seed])
    monkeypatch.setattr(message_search, "_FIRST_PAGE_STEP", 4)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 4)
    monkeypatch.setattr(search_walk, "STEP_GROWTH", 2)
    rng = random.Random(seed)
    messages, flags = messages_at_random(rng, 120)
    written(connection, messages, flags)
    for _ in range(8):
        for condition in conditions_at_random(rng, messages):
            terms = [Term(condition, negated=rng.random() < 0.4)]
            if rng.random() < 0.5:
                other = rng.choice(conditions_at_random(rng, messages))
                terms.append(Term(other, negated=rng.random() < 0.4))
            scope = scopes_at_random(rng, messages)
            expected = [
                message
                for message in messages
                if in_scope(message, scope, flags)
                and all(holds(message, t.condition, flags) is not t.negated for t in terms)
            ]
            search = MessageSearch(
                scope,
                tuple(terms),
                anchor=rng.choice([0, LARGEST, rng.choice(messages).id, rng.randint(0, 1300)]),
                before=rng.choice([0, 1, 3, 500]),
                after=rng.choice([0, 1, 3, 500]),
                include_anchor=rng.random() < 0.7,
            )
            assert_found(connection, search, expected, monkeypatch)
            some = sorted(rng.sample([message.id for message in messages], 40))
            assert message_search.matching(connection, search, some) == [
                message for message in expected if message.id in some
            ], terms


def assert_found(
    connection: Connection,
    search: MessageSearch,
    expected: list[Message],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By each way to search for text, or by the only way without text."""
    has_text = any(isinstance(term.condition, narrow.Matches) for term in search.terms)
    for costs in (READS, ASKS, TAKES_TURNS, HOLDS) if has_text else (READS,):
        with row(costs), monkeypatch.context() as patch:
            for name, cost in zip(("_SCAN_COST", "_LOOKUP_COST", "_LONG"), costs, strict=True):
                patch.setattr(search_walk, name, cost)
            assert_is_page(message_search.find(connection, search), search, expected)


def assert_is_page(
    page: message_search.Page, search: MessageSearch, expected: list[Message]
) -> None:
    before = [message for message in expected if message.id < search.anchor]
    after = [message for message in expected if message.id > search.anchor]
    anchor = [m for m in expected if m.id == search.anchor and search.include_anchor]
    wanted = [
        *(before[-search.before :] if search.before else []),
        *anchor,
        *after[: search.after],
    ]
    assert page.messages == wanted, search
    if search.before:
        assert page.found_oldest is (len(before) <= search.before), search
    if search.after:
        assert page.found_newest is (len(after) <= search.after), search


def test_read_state_survives_splitting_into_rows(connection: Connection) -> None:
    """Marked as read and unread, in one commit and in many, on both sides of every split."""
    rng = random.Random(7)
    chunk = 1 << CHUNK_BITS
    ids = sorted(
        {0 + 1, chunk - 1, chunk, chunk + 1, 3 * chunk, *rng.sample(range(1, 200_000), 300)}
    )
    read: set[int] = set()
    flags: dict[int, Flag] = {}
    seq = 0
    for _ in range(20):
        entries = []
        for _ in range(rng.randint(1, 4)):
            some = tuple(sorted(rng.sample(ids, 40)))
            change: AnyChange
            if rng.random() < 0.5:
                change = MessagesRead(user_id=READER, message_ids=some)
                read |= set(some)
            else:
                flag, added = rng.choice([Flag.STARRED, Flag.COLLAPSED]), rng.random() < 0.6
                change = FlagsChanged(
                    user_id=READER, message_ids=some, flag=flag, added=added, recorded=()
                )
                for mid in some:
                    before = flags.get(mid, Flag(0))
                    flags[mid] = before | flag if added else before & ~flag
            seq += 1
            entries.append(Entry(seq, 0.0, READER, change))
        write(connection, Batch(entries, {}))
        bitmap, kept = message_marks.marks_of_users(connection, [READER])[READER]
        assert set(bitmap) == read
        assert {flag: set(mids) for flag, mids in kept.items() if mids} == {
            flag: having
            for flag in (Flag.STARRED, Flag.COLLAPSED)
            if (having := {mid for mid, own in flags.items() if own & flag})
        }
    relations = message_marks.relations(connection, READER, ids)
    assert {mid for mid, relation in relations.items() if relation.read} == read
    assert {mid: r.flags for mid, r in relations.items()} == {
        mid: flags.get(mid, Flag(0)) for mid in ids
    }
    assert message_marks.marks_of_users(connection, [READER + 1]) == {READER + 1: (BitMap(), {})}


class Counting:
    """A connection that counts statements and returned rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.dialect = connection.dialect
        self.statements = self.rows = 0

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        rows = self._connection.query(sql, parameters)
        self.statements += 1
        self.rows += len(rows)
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


MANY = 3000


def archive(text: Callable[[int], str]) -> list[Message]:
    """Three thousand messages in one channel."""
    return [
        Message(
            id=mid,
            sender_id=1 + mid % 3,
            sent_at=mid,
            channel_id=1,
            topic=f"topic {mid % 5}",
            content=text(mid),
            rendered="",
        )
        for mid in range(1, MANY + 1)
    ]


@pytest.fixture(scope="module")
def archive_config(shared_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """The configuration of the shared archive, where each message contains `the message` and its
    number."""
    directory = tmp_path_factory.mktemp("archive")
    config = Config(data_dir=str(directory), database_url=shared_database_url)
    databases.migrated(config)
    with contextlib.closing(_connected(config)) as connection:
        written(connection, archive(lambda mid: f"the message {mid}"), {})
    return config


@pytest.fixture
def archived(archive_config: Config) -> Iterator[Connection]:
    """A connection to the archive for one test. Changes aren't committed."""
    with contextlib.closing(_connected(archive_config)) as connection:
        yield connection


def sizes_of_lookups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each lookup in the search index adds how many hits it asks for."""
    sizes: list[int] = []
    next_hits = SearchHits._next_hits

    def look_up(hits: Any, size: int, *others: Any) -> Any:
        sizes.append(size)
        return next_hits(hits, size, *others)

    monkeypatch.setattr(SearchHits, "_next_hits", look_up)
    return sizes


FOUND = {
    "the": 10,
    "rare": 2,
    "the rare": 2,
    "seldom": 3,
    "mid": 10,
    "nowhere": 0,
    "the nowhere": 0,
}
"""How many of ten requested messages are found."""


def test_a_search_reads_few_messages_however_common_the_word(connection: Connection) -> None:
    def text(mid: int) -> str:
        rest = "rare" if mid in {7, 2000} else "mid" if mid % 40 == 0 else "apple"
        return f"the {rest} {'seldom' if mid % 900 == 5 else ''} tree"

    written(connection, archive(text), {})
    for asked, count in FOUND.items():
        counting = Counting(connection)
        page = message_search.find(counting, saying(Term(narrow.Matches(phrases_of(asked)))))
        wanted = [m for m in range(1, MANY + 1) if all(w in text(m) for w in asked.split())]
        assert [message.id for message in page.messages] == wanted[-10:], asked
        assert len(page.messages) == min(count, 10) or count == 3, asked
        assert counting.rows < MANY / 3, asked


def test_a_common_word_in_a_narrow_where_it_is_rare(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thirds of all messages contain it, but of one sender's only the oldest."""
    monkeypatch.setattr(search_walk, "_LONG", 1000.0)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 50)
    looked: list[IdSubset | None] = []

    def counted(*arguments: Any) -> IdSubset | None:
        looked.append(smallest_subset(*arguments))
        return looked[-1]

    monkeypatch.setattr(search_walk, "smallest_subset", counted)
    written(connection, archive(lambda mid: "the tree" if mid % 3 or mid < 7 else "apple"), {})
    terms = Term(narrow.Matches(phrases_of("the"))), Term(narrow.FromSender(1))
    page = message_search.find(connection, saying(*terms))
    assert [message.id for message in page.messages] == [3, 6]
    expected = [] if connection.dialect.search_chunk else [MANY // 3]
    assert [one and one.number for one in looked] == expected


def test_a_common_word_is_not_looked_up_with_a_rare_one(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's index passes all hits of both words for each lookup, which takes longer than reading
    the messages with the rare word."""
    if connection.dialect.search_chunk:
        pytest.skip("PostgreSQL's index is divided by place")
    for name, cost in (("_SCAN_COST", 1e9), ("_HIT_COST", 10.0), ("_LONG", 1.0)):
        monkeypatch.setattr(search_walk, name, cost)
    monkeypatch.setattr(SearchWalk, "_fewest", None)
    looked_up: list[tuple[str, ...]] = []
    next_hits = SearchHits._next_hits

    def look_up(hits: Any, *others: Any) -> Any:
        looked_up.append(tuple(" ".join(phrase.words) for phrase in hits.phrases))
        return next_hits(hits, *others)

    monkeypatch.setattr(SearchHits, "_next_hits", look_up)
    text = {True: "a rare tree", False: "the tree"}
    written(connection, archive(lambda mid: text[mid % 500 == 0]), {})
    page = message_search.find(connection, saying(Term(narrow.Matches(phrases_of("rare the")))))
    assert page.messages == []
    assert looked_up == [("rare",)]


@pytest.mark.parametrize(("matched", "is_looked_up"), [(250, False), (6, True)])
def test_a_common_word_is_not_looked_up_for_a_reader_of_few_messages(
    archived: Connection, monkeypatch: pytest.MonkeyPatch, matched: int, is_looked_up: bool
) -> None:
    """The search index lists messages that others received, too."""
    looked_up = sizes_of_lookups(monkeypatch)
    seen = search_text.ScannedSample(
        passed=250, matched=matched, gained=6, span=250, newest=10**5, messages=()
    )
    search = saying(Term(narrow.Matches(phrases_of("the"))))
    search = replace(search, anchor=MANY - 249, include_anchor=False)
    page = message_search.find(archived, search, seen)
    assert [message.id for message in page.messages] == list(range(MANY - 259, MANY - 249))
    assert bool(looked_up) is is_looked_up


def test_a_channel_s_content_is_known_without_reading_messages(archived: Connection) -> None:
    counting = Counting(archived)
    found = queries.channel_messages(counting, [1, 2])
    assert {key: len(ids) for key, ids in found[1].topics.items()} == {
        f"topic {number}": MANY // 5 for number in range(5)
    }
    assert (len(found[1].all), len(found[2].all)) == (MANY, 0)
    assert (counting.statements, counting.rows) == (2, 5)


def test_a_reader_may_have_been_in_very_many_channels(archived: Connection) -> None:
    """More than a statement's limit of conditions."""
    spans = tuple(
        ChannelSpan(channel_id, after, until)
        for channel_id in (*range(2, 1500), 1)
        for after, until in ((0, 10), (20, 30), (2990, None))
    )
    terms = (Term(narrow.HasFlag(int(Flag.MENTIONED), spans), negated=True),)
    search = MessageSearch(Scope(user_id=READER, spans=spans), terms, LARGEST, before=100, after=0)
    page = message_search.find(archived, search)
    assert [m.id for m in page.messages] == [*range(1, 11), *range(21, 31), *range(2991, 3001)]


@pytest.mark.parametrize("is_negated", [False, True])
def test_a_reader_may_follow_topics_in_very_many_channels(
    archived: Connection, is_negated: bool
) -> None:
    """More than a statement's limit of conditions."""
    scope = Scope(user_id=READER, channel_ids=frozenset({1}))
    topics = frozenset((channel_id, "no such topic") for channel_id in range(1, 1500))
    for condition in (narrow.InTopics(topics), narrow.IsMuted(frozenset(), topics, topics)):
        terms = (Term(condition, negated=is_negated),)
        page = message_search.find(
            archived, MessageSearch(scope, terms, LARGEST, before=3, after=0)
        )
        assert len(page.messages) == (3 if is_negated else 0)


def test_no_channel_is_queried_twice_for_the_same_messages(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a small organization, and at the ends of the reader's access to a channel."""
    monkeypatch.setattr(message_search, "_FIRST_PAGE_STEP", 500)
    written(connection, archive(str)[:300], {})
    whole = Scope(user_id=READER, channel_ids=frozenset({1, 2}), direct_ids=frozenset({1}))
    parts = Scope(user_id=READER, spans=(ChannelSpan(1, 9, 20), ChannelSpan(1, 30, 40)))
    for scope, anchor, is_back, numbers, statements in (
        (whole, LARGEST, True, range(1, 301), 3),  # With the newest ID, and the anchor.
        (whole, 200, True, range(1, 201), 2),
        (parts, 200, True, [*range(10, 21), *range(31, 41)], 2),
        (parts, 1, False, [*range(10, 21), *range(31, 41)], 1),
    ):
        counting = Counting(connection)
        before, after = (400, 0) if is_back else (0, 400)
        page = message_search.find(counting, MessageSearch(scope, (), anchor, before, after))
        assert [message.id for message in page.messages] == list(numbers), anchor
        assert counting.statements == statements, anchor


def test_a_search_with_enough_matches_stops(
    archived: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where almost none of a reader's messages match, until many do."""
    for name, value in (("_REACH", 0), ("_REACH_OF_PLACE", 0), ("_MERGED", 8), ("_WORTH", 1)):
        monkeypatch.setattr(scope_walk, name, value)
    archived.run("BEGIN")  # And never ended.
    archived.run("UPDATE messages SET sender_id = 9 WHERE id > ?", (MANY - 6,))
    scope = Scope(user_id=READER, channel_ids=frozenset({1}), direct_ids=frozenset({1}))
    counting = Counting(archived)
    terms = (Term(narrow.FromSender(9), negated=True),)
    page = message_search.find(
        counting, MessageSearch(scope, terms, LARGEST, 3, 0, include_anchor=False)
    )
    assert [message.id for message in page.messages] == [MANY - 8, MANY - 7, MANY - 6]
    assert counting.rows < 20


def test_the_search_index_finds_words_whatever_the_planner_assumes(
    archived: Connection,
) -> None:
    """It plans once for all words. PostgreSQL would assume that the words are common, and scan all
    messages for a rare one."""
    if archived.dialect.name != "postgresql":
        pytest.skip("SQLite has no other way")
    for way in ("bitmapscan", "seqscan"):
        archived.run(f"SET enable_{way} TO off")
    for comparison in ("<", ">"):
        for places in (1, 100):
            lookup = Lookup(phrases_of("a"), comparison, 9, range(3), range(places))
            hits, values = archived.dialect.search_hits(lookup)
            order = "DESC" if comparison == "<" else "ASC"
            plan = archived.query(f"EXPLAIN {hits} ORDER BY id {order} LIMIT 10", values)
            assert "message_search_pkey" not in str(plan)
            assert "message_search_words" in str(plan)


class Working:
    """A connection that counts the database's work: SQLite's steps, or the rows that PostgreSQL
    reads."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Any = connection
        self.dialect = connection.dialect
        self.work = 0
        self.lookups = self.checked = 0
        """The queries of PostgreSQL's search index, and their rows."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        if self.dialect.name == "postgresql":
            ((found,),) = self._connection.query(
                f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", parameters
            )
            self.work += _looked_at(found[0]["Plan"])
            self.checked += _looked_at(found[0]["Plan"], "message_search")
            self.lookups += "message_search" in sql
            return list(self._connection.query(sql, parameters))
        driver = self._connection.driver
        driver.set_progress_handler(self._step, 10, id=self)
        try:
            return list(self._connection.query(sql, parameters))
        finally:
            driver.set_progress_handler(None, id=self)

    def _step(self) -> bool:
        self.work += 10
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _looked_at(plan: dict[str, Any], table: str = "") -> int:
    rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    below = sum(_looked_at(part, table) for part in plan.get("Plans", ()))
    is_counted = not table or plan.get("Relation Name") == table
    return int(rows * plan["Actual Loops"]) * is_counted + below


def others_write(connection: Connection, count: int) -> None:
    """Send this many messages to a channel that only others are in."""
    ((last,),) = connection.query("SELECT MAX(id) FROM messages")
    columns = "sent_at, content, rendered, client, has_link, has_image, has_attachment, is_me"
    for first in range(0, count, MANY):
        connection.run(
            f"INSERT INTO messages (id, channel_id, sender_id, mentions_all, {columns})"
            f" SELECT id + ?, 9, 7, 0, {columns}"
            " FROM messages WHERE id <= ?",
            (last + first, min(MANY, count - first)),
        )


@pytest.mark.parametrize("direction", ["newest", "oldest"])
def test_other_people_s_messages_are_not_scanned(connection: Connection, direction: str) -> None:
    """Neither for the newest page nor for a page that starts where they began."""
    own = [
        replace(message, channel_id=None if message.id % 3 else 1, direct_id=message.id % 3 or None)
        for message in archive(str)
    ]
    written(connection, own, dict.fromkeys((10, 20, 30), Flag.RECORD))
    scope = Scope(
        user_id=READER,
        spans=(ChannelSpan(1, 0, None), ChannelSpan(2, 5, 2000)),
        direct_ids=frozenset({1}),
        recorded=frozenset({1, 9}),
    )
    anchor, before, after = (LARGEST, 100, 0) if direction == "newest" else (MANY, 0, 100)
    found: list[list[int]] = []
    work: list[int] = []
    for _ in range(2):
        connection.run("UPDATE messages SET channel_id = 9 WHERE id > ?", (MANY,))
        others_write(connection, MANY)
        if direction == "oldest":
            ((last,),) = connection.query("SELECT MAX(id) FROM messages")
            connection.run("UPDATE messages SET channel_id = 1 WHERE id > ?", (last - 150,))
        if connection.dialect.name == "postgresql":
            connection.run("ANALYZE messages")  # As it does by itself, sooner or later.
        working: Any = Working(connection)
        page = message_search.find(
            working, MessageSearch(scope, (), anchor, before, after, include_anchor=False)
        )
        found.append([message.id for message in page.messages])
        work.append(working.work)
    assert len(found[0]) == 100
    # Deleted rows cost PostgreSQL some work until they are vacuumed. Reading all would double it.
    assert work[1] < 1.5 * work[0] + 100, work
    if direction == "newest":
        assert found[0] == found[1] == [mid for mid in range(2851, MANY + 1) if mid % 3 < 2]


def saying(*terms: Term) -> MessageSearch:
    return MessageSearch(
        Scope(user_id=READER, channel_ids=frozenset({1})), terms, anchor=LARGEST, before=10, after=0
    )


def test_a_search_with_many_terms_reads_each_message_once(
    archived: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded, counting = 0, Counting(archived)

    def count(texts: Sequence[str]) -> tuple[str, ...]:
        nonlocal folded
        folded += 1
        return tokenizer.fold_texts(texts)

    monkeypatch.setattr(search_text, "fold_texts", count)
    absent = [Term(narrow.Matches(phrases_of(f"absent{n}")), negated=True) for n in range(99)]
    page = message_search.find(counting, saying(Term(narrow.Matches(phrases_of("the"))), *absent))
    assert [message.id for message in page.messages] == list(range(MANY - 9, MANY + 1))
    assert folded < 2 * counting.rows


def test_a_search_ends_in_time_even_if_comparing_is_slow(
    archived: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0

    def compare(texts: Sequence[str], phrases: Sequence[Phrase]) -> bool:
        nonlocal compared
        compared += 1
        time.sleep(0.05)
        return False

    monkeypatch.setattr(search_text, "folded_contain", compare)
    archived.begin_read(0.5)
    with pytest.raises(TimeLimitReached):
        message_search.find(archived, saying(Term(narrow.Matches(phrases_of("the")))))
    assert compared <= 20


# Jobs that look for old or new messages


def test_a_digest_reads_messages_of_its_time(archived: Connection) -> None:
    if archived.dialect.name == "postgresql":
        archived.run("ANALYZE messages")
    working: Any = Working(archived)
    assert topics.lively_topics(working, MANY + 1) == []
    found = topics.lively_topics(working, MANY - 7)
    assert {(one.key, one.count, one.sender_ids, one.first_id) for one in found} == {
        ("topic 3", 2, (2, 3), MANY - 7),
        ("topic 4", 2, (1, 3), MANY - 6),
        ("topic 0", 2, (1, 2), MANY - 5),
        ("topic 1", 1, (3,), MANY - 4),
        ("topic 2", 1, (1,), MANY - 3),
    }
    assert [one.count for one in found[:3]] == [2, 2, 2]
    assert working.work < 1000


def test_a_digest_of_a_busy_time_reads_the_newest_messages(
    archived: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "LIVELY_MESSAGES", 20)
    working: Any = Working(archived)
    assert sum(one.count for one in topics.lively_topics(working, 1)) == 20
    assert working.work < 1500


@pytest.mark.parametrize("place", ["channel", "direct"])
def test_retention_reads_the_oldest_messages_of_a_channel(
    connection: Connection, place: str
) -> None:
    channel_id = 1 if place == "channel" else None
    messages = [
        replace(one, channel_id=channel_id, direct_id=None if channel_id else 7)
        for one in archive(str)
    ]
    written(connection, messages, {})
    if connection.dialect.name == "postgresql":
        connection.run("ANALYZE messages")
    working: Any = Working(connection)
    assert editing.older_than(working, channel_id, before=1, limit=10) == []
    found = editing.older_than(working, channel_id, before=8, limit=10)
    assert sorted(mid for ids in found for mid in ids) == [*range(1, 8)]
    found = editing.older_than(working, channel_id, before=MANY, limit=10)
    assert sorted(mid for ids in found for mid in ids) == [*range(1, 11)]
    assert working.work < 1000


def test_moving_messages_out_of_a_large_topic_reads_no_others(connection: Connection) -> None:
    """However many messages its channel and topic have."""
    by_channel = {
        channel_id: [
            Message(
                id=channel_id * 10_000 + one,
                sender_id=1,
                sent_at=1,
                channel_id=channel_id,
                topic="tea",
            )
            for one in range(size)
        ]
        for channel_id, size in ((1, 200), (2, 2000))
    }
    written(connection, [*by_channel[1], *by_channel[2]], {})
    if connection.dialect.name == "postgresql":
        connection.run("ANALYZE messages")
        connection.run("SET enable_seqscan = off")
    work = []
    for channel_id, messages in by_channel.items():
        working: Any = Working(connection)
        ids = topics.newest_of_topic(working, channel_id, "tea", [(0, LARGEST)], 50)
        assert ids == [message.id for message in messages[-50:]]
        assert len(topics.some_of_topic(working, channel_id, "tea", ids)) == 51
        assert editing.first_without(working, channel_id, ids) == messages[0].id
        work.append(working.work)
    assert work[1] < 1.5 * work[0] + 100, work


# Searches without matches


def apart(text: str = "the tree") -> list[Message]:
    """Alternate messages of two channels: the first has one sender's; the other has someone else's
    links and the text."""
    return [
        Message(
            id=mid,
            sender_id=1 + mid % 2,
            sent_at=mid,
            channel_id=1 + mid % 2,
            topic="t",
            content=text if mid % 2 else "apple",
            rendered="",
            has_link=bool(mid % 2),
        )
        for mid in range(1, 2 * MANY + 1)
    ]


LITTLE = 1000
"""The most steps or rows for finding nothing among thousands of messages."""


@pytest.mark.parametrize(
    "term",
    [Term(narrow.FromSender(2)), Term(narrow.HasPart("link"))],
    ids=["sender", "has"],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_what_a_channel_does_not_contain_is_known_without_its_messages(
    connection: Connection, term: Term, is_named: bool
) -> None:
    written(connection, apart(), {})
    if connection.dialect.name == "postgresql":
        connection.run("ANALYZE messages")
    terms = (Term(narrow.InChannels(frozenset({1}))), term) if is_named else (term,)
    working: Any = Working(connection)
    assert message_search.find(working, saying(*terms)).messages == []
    assert working.work < LITTLE


def test_a_common_word_that_is_rare_in_a_scope_is_looked_up_once(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_walk, "_LONG", 500.0)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 50)
    looked_up = sizes_of_lookups(monkeypatch)
    messages = apart()
    messages[3] = replace(messages[3], content="the oldest")
    written(connection, messages, {})
    counting = Counting(connection)
    page = message_search.find(counting, saying(Term(narrow.Matches(phrases_of("the")))))
    assert [message.id for message in page.messages] == [4]
    if connection.dialect.search_chunk:
        assert len(looked_up) == 1
    assert counting.rows < MANY


@pytest.mark.parametrize("asked", ["budget", "budget tree"])
def test_a_topic_whose_name_matches_is_not_read_entirely(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(search_walk, "_SCAN_COST", 1e9)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 50)
    others = [replace(one, topic="fruit", content="apple") for one in archive(str)[:60]]
    work: list[int] = []
    for count in (MANY, 2 * MANY):
        said = [
            replace(others[0], id=mid, topic="The budget", content="a tree")
            for mid in range(1, count + 1)
        ]
        newer = [replace(one, id=count + one.id) for one in others]
        for table in ("log", "messages", "message_search"):
            connection.run(f"DELETE FROM {table}")
        written(connection, [*said, *newer], {})
        if connection.dialect.name == "postgresql":
            connection.run("ANALYZE")
            connection.run("SET enable_seqscan TO off")  # As with more messages.
        working: Any = Working(connection)
        page = message_search.find(working, saying(Term(narrow.Matches(phrases_of(asked)))))
        assert [one.id for one in page.messages] == list(range(count - 9, count + 1))
        work.append(working.work)
    # Deleted rows cost PostgreSQL some work until they are vacuumed. Reading all would double it.
    assert work[1] < 1.5 * work[0] + 100, work


@pytest.mark.parametrize("is_named", [True, False])
def test_topics_of_unsearched_channels_are_not_looked_up(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """Neither if the reader isn't in them, nor if the search names another channel."""
    monkeypatch.setattr(search_walk, "_SCAN_COST", 1e9)
    messages = [
        replace(one, channel_id=2, topic=f"budget {one.id}")
        if one.id <= 1000
        else replace(one, topic="fruit")
        for one in archive(str)[:2000]
    ]
    written(connection, messages, {})
    counting = Counting(connection)
    search = saying(Term(narrow.Matches(phrases_of("budget"))))
    if is_named:
        scope = Scope(user_id=READER, channel_ids=frozenset({1, 2}))
        terms = (Term(narrow.InChannels(frozenset({1}))), *search.terms)
        search = replace(search, scope=scope, terms=terms)
    assert message_search.find(counting, search).messages == []
    assert counting.rows < 700


def test_a_large_topic_without_the_other_word_is_not_read(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the newest messages have that word, so that it seems to be the common one."""
    monkeypatch.setattr(search_walk, "_LONG", 500.0)
    monkeypatch.setattr(search_hits, "MOST_ROWS", 300)
    newest = 2 * MANY - 300
    messages = [
        replace(one, topic="fruit", content="a pear")
        if one.id > newest
        else replace(one, topic="budget", content="an apple")
        for one in (*archive(str), *(replace(m, id=MANY + m.id) for m in archive(str)))
    ]
    written(connection, messages, {})
    counting = Counting(connection)
    search = saying(Term(narrow.Matches(phrases_of("budget pear"))))
    assert message_search.find(counting, search).messages == []
    assert counting.rows < MANY / 2


def test_a_channel_that_lacks_a_common_word_is_checked_without_all_hits(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many messages of other channels have the word."""
    if not connection.dialect.search_chunk:
        pytest.skip("SQLite intersects the IDs in its indexes")
    monkeypatch.setattr(search_walk, "_SCAN_COST", 1e9)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 50)
    messages = [replace(one, channel_id=2) for one in archive(lambda _: "the tree")]
    messages += [replace(one, id=MANY + one.id) for one in messages]
    quiet = archive(lambda _: "an apple")[:400]
    written(connection, [*messages, *(replace(one, id=2 * MANY + one.id) for one in quiet)], {})
    connection.run("ANALYZE")
    connection.run("SET enable_seqscan TO off")  # As with more messages.
    working: Any = Working(connection)
    search = saying(Term(narrow.Matches(phrases_of("the"))))
    assert message_search.find(working, search).messages == []
    assert working.lookups > 0
    assert working.checked == 0


@pytest.mark.parametrize("place", ["everywhere", "channel"])
def test_a_common_word_that_the_newest_messages_lack_is_found_near(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Rather than all messages with the word."""
    if not connection.dialect.search_chunk:
        pytest.skip("SQLite's search index is ordered")
    monkeypatch.setattr(search_walk, "_SCAN_COST", 1e9)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 50)
    messages = [
        replace(one, id=200 * (first + one.id), content="apple" if first + one.id > 5600 else "tea")
        for first in (0, MANY)
        for one in archive(str)
    ]
    written(connection, messages, {})
    connection.run("ANALYZE")
    connection.run("SET enable_seqscan TO off")  # As with more messages.
    working: Any = Working(connection)
    terms = [Term(narrow.Matches(phrases_of("tea")))]
    if place == "channel":
        terms.append(Term(narrow.InChannels(frozenset({1}))))
    page = message_search.find(working, saying(*terms))
    assert [one.id for one in page.messages] == list(range(5591 * 200, 5601 * 200, 200))
    assert working.checked < 4000, working.checked


def test_a_moved_message_is_found_in_its_new_channel(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the search index, also after an edit."""
    monkeypatch.setattr(search_walk, "_SCAN_COST", 1e9)
    monkeypatch.setattr(search_walk, "_FIRST_STEP", 2)
    message, *others = archive(lambda mid: "tea" if mid == 1 else "apple")[:20]
    written(connection, [message, *(replace(one, channel_id=2) for one in others)], {})
    moved = MessagesMoved(
        message_ids=(1,),
        anchor_id=1,
        channel_id=1,
        topic=message.topic,
        new_channel_id=2,
        new_topic="drinks",
        propagation=Propagation.ONE,
    )
    edited = MessageEdited(message=replace(message, content="coffee"), was_content="tea")
    searches = {
        channel_id: replace(saying(), scope=Scope(READER, channel_ids=frozenset({channel_id})))
        for channel_id in (1, 2)
    }
    for seq, change, word in ((101, moved, "tea"), (102, edited, "coffee")):
        write(connection, Batch([Entry(seq, 0.0, 1, change)], {}))
        terms = (Term(narrow.Matches(phrases_of(word))),)
        found = {
            channel_id: [
                one.id
                for one in message_search.find(connection, replace(search, terms=terms)).messages
            ]
            for channel_id, search in searches.items()
        }
        assert found == {1: [], 2: [1]}, word


def test_a_reader_without_access_finds_nothing_without_a_query(archived: Connection) -> None:
    counting = Counting(archived)
    for terms in ((), (Term(narrow.Matches(phrases_of("the"))),), (Term(narrow.FromSender(1)),)):
        search = replace(saying(*terms), scope=Scope(READER))
        page = message_search.find(counting, search)
        assert page == message_search.Page([], found_oldest=True, found_newest=True)
        assert message_search.is_bounded(search)
    assert counting.statements == 0


def test_removing_words_from_the_index_rewrites_no_others(
    connection: Connection,
) -> None:
    """However many are indexed, and however many are removed."""
    if connection.dialect.name != "sqlite":
        pytest.skip("PostgreSQL leaves it to its vacuum")
    connection.run("BEGIN")
    search_index.add(
        connection, [(one, f"the same words and w{one}", 1, None) for one in range(1, 4001)]
    )
    connection.run("COMMIT")
    changes = []
    for first in range(1, 801, 10):
        ((before,),) = connection.query("SELECT total_changes()")
        connection.run("BEGIN")
        search_index.remove(connection, range(first, first + 10))
        connection.run("COMMIT")
        ((after,),) = connection.query("SELECT total_changes()")
        changes.append(after - before)
    assert max(changes) < 80, changes
