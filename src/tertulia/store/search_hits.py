"""Messages that the search index returns for the words of a search."""

from collections import defaultdict

import msgspec
from msgspec.structs import replace

from tertulia.model import narrow
from tertulia.model.messages import Message
from tertulia.model.tokenizer import Phrase
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.database import Connection, Row
from tertulia.store.dialect import Lookup
from tertulia.store.narrow_sql import Clause, IdSubset
from tertulia.store.scope_walk import ScopeWalk

_ids_decoder = msgspec.json.Decoder(list[int])

LONGEST_STEP = 100_000
"""The most hits that one lookup returns. They are read in steps of `MOST_ROWS`."""

MOST_ROWS = 2000
"""Messages read in one step, because other threads wait for it."""

_FIRST_CHUNKS, _MOST_CHUNKS = 2, 64
"""Chunks of IDs that the first lookup covers, and later ones at most, where the search index isn't
ordered."""

_CHUNKS_GROWTH = 8


class SearchHits:
    """The hits of some phrases on a walk: messages whose content or topic has each phrase. Some may
    lack a phrase (`is_whole_topic`, and old messages on PostgreSQL, which were indexed with their
    former topic)."""

    def __init__(
        self, connection: Connection, walk: ScopeWalk, phrases: tuple[Phrase, ...]
    ) -> None:
        self._connection = connection
        self._walk = walk
        self.phrases = phrases
        self.among: IdSubset | None = None
        """Messages that hits are intersected with."""
        self.is_begun = False
        """Whether the number of hits was estimated from some."""
        self.is_whole_topic = len(phrases) > 1
        """Whether the next lookup returns all of a topic whose name has some phrases. If most of
        it has the others, too, that is less than all messages with these."""
        self._left: list[int] = []
        """The remaining hits of the last lookup, nearest first."""
        self._end: int | None = None
        """The ID before which there are no other hits; None if the last lookup returned as many as
        it could."""
        self._is_last = False
        """Whether no hits follow those."""
        self._chunks = _FIRST_CHUNKS
        self._topics: dict[Phrase, list[int]] = {}
        """The topics whose names have a phrase, as far as they were queried."""

    @property
    def is_named(self) -> bool:
        """Whether the next hits are already looked up."""
        return bool(self._left)

    def read(self, size: int, enough: int) -> tuple[int, list[Message], bool]:
        """Read up to `enough` messages from the next hits, or a lookup of `size` hits. Many are
        named at a time, because each lookup may find all hits again. Return how many hits were
        passed, the messages that fit the narrow, and whether these were the last."""
        connection, walk = self._connection, self._walk
        self.is_begun = True
        left = [
            message_id for message_id in self._left if (message_id < walk.last_id) is walk.is_back
        ]
        if not left and not self._is_last:
            left = self._named(size)
        some = left[:MOST_ROWS]
        where, values = walk.where
        rows: list[Row] = []
        if some:
            rows = connection.query(
                f"SELECT {MESSAGE_COLUMNS} FROM messages"
                f" WHERE {connection.dialect.among('messages.id')} AND {where}"
                f" ORDER BY messages.id {walk.order} LIMIT ?",
                (connection.dialect.array(some), *values, enough),
            )
        if len(rows) == enough:
            some = some[: some.index(rows[-1][0]) + 1]
        self._left = left[len(some) :]
        if some:
            walk.last_id = some[-1]
        if not self._left and self._end is not None:
            walk.last_id, self._end = self._end, None
        return len(some), [message_of(row) for row in rows], self._is_last and not self._left

    def _named(self, size: int) -> list[int]:
        """Look up the next `size` hits."""
        chunks, end = self._next_chunks()
        hits, parameters = self._next_hits(size, chunks, end)
        ids = self._connection.dialect.collected("id")
        ((result,),) = self._connection.query(f"SELECT {ids} FROM ({hits}) AS named", parameters)
        named = sorted(_ids_decoder.decode(result or "[]"), reverse=self._walk.is_back)
        is_all = len(named) < size
        self._is_last = is_all and chunks is None
        self._end = end if is_all and chunks is not None else None
        if is_all:
            self._chunks = min(self._chunks * _CHUNKS_GROWTH, _MOST_CHUNKS)
        self.is_whole_topic = False
        return named

    def _next_chunks(self) -> tuple[range | None, int]:
        """Return the next chunks of IDs that are looked up, None for all, and the last ID."""
        walk, chunk = self._walk, self._connection.dialect.search_chunk
        if chunk and walk.is_back:
            last = (walk.last_id - 1) // chunk
            first = last - self._chunks + 1
            if first > 0:
                return range(first, last + 1), first * chunk
        elif chunk:
            first = (walk.last_id + 1) // chunk
            last = first + self._chunks
            if last * chunk <= walk.newest:
                return range(first, last), last * chunk - 1
        return None, 0 if walk.is_back else narrow.LARGEST

    def _next_hits(self, size: int, chunks: range | None, end: int) -> Clause:
        """Return a query for the IDs (`id`) of the next `size` hits."""
        dialect, walk = self._connection.dialect, self._walk
        among = None if self.among is None else (self.among.ids, self.among.parameters)
        scope = walk.scope
        places = sorted([*scope.every_channel, *(-direct_id for direct_id in scope.direct_ids)])
        lookup = Lookup(self.phrases, walk.comparison, walk.last_id, chunks, places, among)
        queries = [dialect.search_hits(lookup)]
        longest = (
            1 << (size - 1).bit_length()
        )  # Use few distinct sizes, because each is a statement to prepare.
        for topic_ids, rest in self._topics_with(self.phrases):
            if rest and not self.is_whole_topic:
                hits, values = dialect.search_hits(replace(lookup, phrases=rest))
                topic_id = "(SELECT topic_id FROM messages WHERE messages.id = hits.id)"
                sql = f"SELECT id FROM ({hits}) AS hits WHERE {dialect.among(topic_id)}"
                queries.append((sql, [*values, dialect.array(topic_ids)]))
            elif among is not None:
                sql = (
                    f"SELECT id FROM messages WHERE {dialect.among('topic_id')}"
                    f" AND id IN ({among[0]}) AND id {walk.comparison} ?"
                )
                queries.append((sql, [dialect.array(topic_ids), *among[1], walk.last_id]))
            else:
                within = (max(end - 1, 0), narrow.LARGEST) if walk.is_back else (0, end)
                spans = dialect.spans((topic_id, *within) for topic_id in topic_ids)
                sql = dialect.merged("topic_id", walk.comparison, longest)
                queries.append((sql, [spans, walk.last_id]))
        if len(queries) == 1:
            sql = queries[0][0]
        else:
            # The first hits of each are enough, because a topic may have any number of messages.
            nearest = f"ORDER BY id {walk.order} LIMIT {longest}"
            either = " UNION ".join(
                f"SELECT id FROM (SELECT id FROM ({query}) AS part {nearest}) AS nearest"
                for query, _ in queries
            )
            sql = f"SELECT id FROM ({either}) AS either"
        parameters = [value for _, values in queries for value in values]
        return f"{sql} ORDER BY id {walk.order} LIMIT ?", [*parameters, size]

    def _topics_with(
        self, phrases: tuple[Phrase, ...]
    ) -> list[tuple[list[int], tuple[Phrase, ...]]]:
        """Return the topics in scope whose names have some phrases, with the phrases that they
        lack."""
        dialect, channels = self._connection.dialect, self._walk.scope.every_channel
        phrases_of: dict[int, set[Phrase]] = defaultdict(set)
        for phrase in phrases:
            if phrase not in self._topics:
                self._topics[phrase] = [
                    topic_id
                    for (topic_id,) in self._connection.query(
                        f"SELECT id FROM message_topics WHERE id IN ({dialect.topic_hits})"
                        f" AND {dialect.among('+channel_id')}",
                        (dialect.search_query((phrase,)), dialect.array(sorted(channels))),
                    )
                ]
            for topic_id in self._topics[phrase]:
                phrases_of[topic_id].add(phrase)
        alike: dict[tuple[Phrase, ...], list[int]] = defaultdict(list)
        for topic_id, topic_phrases in phrases_of.items():
            alike[tuple(phrase for phrase in phrases if phrase not in topic_phrases)].append(
                topic_id
            )
        return [(topic_ids, rest) for rest, topic_ids in alike.items()]
