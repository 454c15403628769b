"""Walking through the matches of a search, by scanning messages or with the search index."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from tertulia.model import narrow
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch
from tertulia.model.tokenizer import Phrase
from tertulia.store import queries
from tertulia.store.codec import MESSAGE_COLUMNS, NO_MESSAGE, message_of
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import (
    Clause,
    IdSubset,
    all_of,
    fits_scope,
    ids_in_scope,
    in_each_channel,
    names_one_channel,
    narrow_condition,
    nearest,
    places,
    smallest_subset,
)
from tertulia.store.search_text import (
    SAMPLE,
    ScannedSample,
    Strategy,
    matching_text,
    rare_phrases,
    says,
    share_with,
    split_terms,
)

_ids_decoder = msgspec.json.Decoder(list[int])

_FIRST_STEP = 250
"""Messages in the first step, which are enough to estimate how common a phrase is."""
_LONGEST_STEP = 100_000
"""Hits that one lookup names. They are read in steps of `_MOST_ROWS`."""
_MOST_ROWS = 2000
"""Messages read in one step, because other threads wait for it."""
_SPREAD = 100
"""Messages sampled from the whole history to estimate how common a phrase is."""
STEP_GROWTH = 8
"""The most that a step may be larger than the previous one."""
_SCAN_COST = 5.0
"""Microseconds for scanning a message. Only the proportions of the costs matter."""
_LOOKUP_COST = 1.5
"""Microseconds for reading a message that the search index has named. For naming it, see
`Dialect.search_hit_cost`."""
_LONG = 5000.0
"""Microseconds of estimated work from which the size of the narrow is worth a query."""
_REACH = 8
"""A walk along all messages covers this many times the page, or `_REACH_OF_PLACE` messages for each
channel and conversation in scope, before these are queried one by one."""
_REACH_OF_PLACE = 4
_MERGED = 512
"""Messages queried from the channels and conversations in one step."""
_WORTH = 8
"""If fewer than one of this many messages matches, the walk returns to all messages."""


class SearchWalk:
    """A walk through the matches of a search, away from its anchor."""

    def __init__(
        self,
        connection: Connection,
        search: MessageSearch,
        comparison: str,
        anchor: int,
        seen: ScannedSample | None = None,
    ) -> None:
        self._connection = connection
        self._seen = seen
        self._comparison = comparison
        self._order = "DESC" if comparison == "<" else "ASC"
        self._last_id = anchor
        """The walk has reached this ID."""
        self._texts, self._rest = split_terms(search.terms)
        self._few: IdSubset | None = None
        """Messages that hits are intersected with."""
        self._knows_hits = False
        """Whether the number of hits among all messages is known."""
        self._queried = self._phrases = search.phrases
        """The phrases that are looked up."""
        self._hits_left: list[int] = []
        """The next hits that the last lookup named, nearest first."""
        self._is_common = False
        """Whether checking messages takes less time than finding all hits in the search index."""
        self._is_last_lookup = False
        """Whether no hits follow those."""
        self._said: dict[Phrase, list[int]] = {}
        """The topics whose names have a phrase, as far as they were queried."""
        self._is_whole_topic = len(self._phrases) > 1
        """Whether the next lookup returns all of a topic whose name has some phrases. If most of
        it has the others, too, that is less than all messages with these."""
        self._scope = search.scope
        self._where = narrow_condition(connection, search.scope, self._rest)
        self._places = places(search.scope)
        self._also = in_each_channel(self._rest)
        self._is_scope = all(map(fits_scope, self._rest)) and (
            bool(self._also) or not (self._places == 1 and any(map(names_one_channel, self._rest)))
        )
        """Whether most messages in scope (or in an index by channel) match, and no index has all
        matches in order."""
        self._keep_to_extent()

    def _keep_to_extent(self) -> None:
        """Keep the walk within the scope's first and last messages."""
        after, until = self._scope.extent
        if self._comparison == "<":
            self._last_id = min(self._last_id, until + 1)
            end = ("messages.id > ?", after) if after else None
        else:
            self._last_id = max(self._last_id, after)
            end = ("messages.id <= ?", until) if until < narrow.LARGEST else None
        if end is not None:
            sql, values = self._where
            self._where = f"{sql} AND {end[0]}", [*values, end[1]]

    def found(self, limit: int) -> list[Message]:
        """Return up to `limit` matches."""
        return self._find_text(limit) if self._texts else self._next(limit, self._where)

    def _next(self, limit: int, *where: Clause) -> list[Message]:
        """Return the next messages that fit the conditions."""
        if not self._is_scope:
            return self._along(limit, self._last_id, *where)
        if self._comparison == "<" and self._last_id >= narrow.LARGEST:
            self._last_id = self._newest_of_all() + 1
        reach = max(_REACH * limit, _REACH_OF_PLACE * self._places)
        after, until = self._scope.extent
        if self._comparison == "<":
            edge = self._last_id - reach
            within, is_end = "messages.id >= ?", edge <= after + 1
        else:
            edge = self._last_id + reach
            within, is_end = "messages.id <= ?", edge >= until
        found = self._along(limit, self._last_id, *where, (within, [edge]))
        if len(found) < limit and not is_end:
            found += self._merged(limit - len(found), edge, *where)
        return found

    def _along(self, limit: int, start: int, *where: Clause) -> list[Message]:
        """Find messages beyond an ID by walking along all of them."""
        sql, values = all_of(where)
        rows = self._connection.query(
            f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {sql}"
            f" AND messages.id {self._comparison} ?"
            f" ORDER BY messages.id {self._order} LIMIT {int(limit)}",
            [*values, start],
        )
        return [message_of(row) for row in rows]

    def _merged(self, limit: int, start: int, *where: Clause) -> list[Message]:
        """Find messages beyond an ID by querying each channel and conversation in scope."""
        fits, values = all_of(where)
        found: list[Message] = []
        asked, passed = limit, 0
        while len(found) < limit:
            # Few distinct sizes, because each is a statement to prepare.
            size = min(1 << (asked - 1).bit_length(), _MERGED)
            ids = nearest(
                self._connection.dialect, self._scope, self._comparison, start, size, self._also
            )
            if ids is None:
                break
            rows = self._connection.query(
                f"SELECT {MESSAGE_COLUMNS}, {fits} FROM ({ids[0]}) AS nearest CROSS JOIN messages"
                f" WHERE messages.id = nearest.id ORDER BY messages.id {self._order}",
                [*values, *ids[1]],
            )
            found += [message_of(row) for row in rows if row[-1]]
            if len(rows) < size:
                break
            start, asked, passed = rows[-1][0], _MERGED, passed + len(rows)
            if len(found) < limit and passed > _WORTH * max(len(found), _MERGED):
                found += self._along(limit - len(found), start, *where)
                break
        return found[:limit]

    def _find_text(self, limit: int) -> list[Message]:
        """Return up to `limit` matches. The strategies take turns, each continuing where the
        other ended."""
        self._newest = self._newest_of_all()
        if self._comparison == "<":
            self._last_id = min(self._last_id, self._newest + 1)
        scan = strategy = Strategy(_SCAN_COST, _FIRST_STEP)
        lookup = None
        if (seen := self._seen) is not None and seen.passed:
            scan.passed, scan.gained, scan.span = seen.passed, seen.gained, seen.span
            lookup = self._expected_lookup(scan, seen.matched, seen.messages)
            strategy = self._cheaper(scan, lookup, limit)
        found: list[Message] = []
        while True:
            start, need = self._last_id, limit - len(found)
            if strategy is scan:
                passed, some, is_end = self._scan(strategy.size)
            else:
                passed, some, is_end = self._look_up(strategy.size, need)
                self._knows_hits = True
            new = matching_text(self._connection, some, self._texts)
            found += new
            if is_end or len(found) >= limit:
                return found[:limit]
            strategy.passed += passed
            strategy.gained += len(new)
            strategy.span += abs(start - self._last_id)
            if lookup is None:
                lookup = self._expected_lookup(scan, scan.gained, some)
            strategy = self._cheaper(scan, lookup, limit - len(found))

    def _newest_of_all(self) -> int:
        if self._seen is not None:
            return self._seen.newest
        ((newest,),) = self._connection.query("SELECT MAX(id) FROM messages")
        return newest or 0

    def _expected_lookup(self, scan: Strategy, matched: int, some: Sequence[Message]) -> Strategy:
        """Estimate what the search index will find, from the scanned messages. If its first
        lookup takes as long as all of them, messages from the whole history are sampled first."""
        self._queried = rare_phrases(self._phrases, some[:SAMPLE])
        common = (matched + 1) / (scan.passed + 1)
        is_known = self._seen is not None or self._connection.dialect.search_is_ordered
        if not is_known and self._phrases:
            said = sum(says(one, self._queried) for one in self._spread)
            if said:
                common, self._knows_hits = said / len(self._spread), True
        hits = int(scan.span * common)
        return Strategy(_LOOKUP_COST, _FIRST_STEP, hits, scan.gained, scan.span)

    @cached_property
    def _spread(self) -> list[Message]:
        """A sample of the remaining messages, including those the reader can't read."""
        first, last = (
            (1, self._last_id) if self._comparison == "<" else (self._last_id, self._newest)
        )
        step = max((last - first) // _SPREAD, 1)
        return queries.messages(self._connection, range(first, last + 1, step))

    def _cheaper(self, scan: Strategy, lookup: Strategy, need: int) -> Strategy:
        """Return the cheaper strategy for the rest, and set the size of its next step."""
        ids = self._last_id if self._comparison == "<" else self._newest - self._last_id
        hits = self._newest * lookup.density
        dialect = self._connection.dialect
        to_scan, to_look_up = scan.left(need, ids), lookup.left(need, ids)
        prepared = 0 if self._hits_left else hits * dialect.search_hit_cost
        if prepared > _LONG and not dialect.search_is_ordered:
            share = share_with(self._spread, self._queried)
            checked = min(to_look_up / share, ids) * dialect.search_hit_cost if share else prepared
            self._is_common = checked < prepared
            prepared = min(prepared, checked)
        scanning, looking_up = to_scan * scan.cost, to_look_up * lookup.cost + prepared
        if min(scanning, looking_up) > _LONG and self._queried != self._phrases:
            # The sample was misleading: reading all hits of the rarest phrases takes long.
            self._queried = self._phrases
            lookup.size = _MOST_ROWS
            return lookup
        if self._few is None and self._knows_hits and min(scanning, looking_up) > _LONG:
            few = self._fewest
            if few is not None:
                scanning = min(scanning, few.number * scan.cost)
            # The share of hits that match isn't known before some were found.
            estimates = [scanning, *([looking_up] if lookup.gained > scan.gained else [])]
            if few is not None:
                crossing = hits * dialect.search_cross_cost + few.number * dialect.search_check_cost
                if crossing < min(estimates):
                    self._few = few
        if self._few is not None:
            enough = _LONGEST_STEP if dialect.search_is_ordered else to_look_up * 5 // 4
            lookup.size = min(max(enough, _MOST_ROWS + 1), _LONGEST_STEP)
            return lookup
        if scanning <= looking_up:
            scan.size = min(max(to_scan * 5 // 4, _FIRST_STEP), scan.size * STEP_GROWTH, _MOST_ROWS)
            return scan
        # Each step finds all hits again, so take long steps if that is expensive.
        longest = _LONGEST_STEP if prepared > _LONG else lookup.size * STEP_GROWTH
        lookup.size = min(max(to_look_up * 5 // 4, _FIRST_STEP), longest, _LONGEST_STEP)
        return lookup

    @cached_property
    def _fewest(self) -> IdSubset | None:
        """The messages that hits are intersected with, by ID."""
        few = smallest_subset(self._connection, self._rest)
        if few is None and self._spread:
            channels, directs = self._scope.every_channel, self._scope.direct_ids
            inside = sum(
                one.channel_id in channels or one.direct_id in directs for one in self._spread
            )
            ids = ids_in_scope(self._connection.dialect, self._scope, self._rest)
            few = IdSubset(*ids, self._newest * (inside + 1) // len(self._spread))
        return few

    def _scan(self, size: int) -> tuple[int, list[Message], bool]:
        """Scan the next messages. Returns how many were passed, the messages, and whether these
        were the last."""
        some = self._next(size, self._where)
        if some:
            self._last_id = some[-1].id
        return len(some), some, len(some) < size

    def _look_up(self, size: int, need: int) -> tuple[int, list[Message], bool]:
        """Look up the next messages in the search index, or as many as needed if all hits match.
        Returns the same."""
        if not self._phrases:
            # All terms are negated, so the index would find the wrong messages.
            return self._scan(size)
        if size > _MOST_ROWS or self._hits_left:
            return self._read_hits(size)
        is_all = self._queried == self._phrases and not any(negated for _, negated in self._texts)
        is_all = is_all and not self._is_whole_topic
        found = self._named(size, need if is_all else size)
        self._is_whole_topic = False
        return found

    def _named(self, size: int, enough: int) -> tuple[int, list[Message], bool]:
        """Return up to `enough` of the next `size` hits, as `_scan` does, in one query."""
        where, values = self._where
        named, parameters = self._next_hits(size)
        last_of = "MIN" if self._order == "DESC" else "MAX"
        (*_, last, count), *rows = self._connection.query(
            f"WITH named AS MATERIALIZED ({named})"
            # The first row has the last hit and the number of hits.
            f" SELECT {NO_MESSAGE}, {last_of}(id) AS place, -COUNT(*) AS passed FROM named"
            f" UNION ALL SELECT {MESSAGE_COLUMNS}, messages.id, 1 FROM named CROSS JOIN messages"
            f" WHERE messages.id = named.id AND {where}"
            f" ORDER BY passed, place {self._order} LIMIT ?",
            (*parameters, *values, enough + 1),
        )
        passed = -count
        is_all = len(rows) < enough
        if not is_all:
            passed, last = len(rows), rows[-1][0]
        if passed:
            self._last_id = last
        return passed, [message_of(row) for row in rows], is_all and passed < size

    def _read_hits(self, size: int) -> tuple[int, list[Message], bool]:
        """Read the next hits, which the last lookup has named, or a lookup of `size` hits. Many
        are named at a time, because each lookup may find all hits again."""
        connection = self._connection
        is_back = self._comparison == "<"
        left = [one for one in self._hits_left if (one < self._last_id) is is_back]
        if not left and not self._is_last_lookup:
            named, parameters = self._next_hits(size)
            ids = connection.dialect.collected("id")
            ((found,),) = connection.query(f"SELECT {ids} FROM ({named}) AS named", parameters)
            left = sorted(_ids_decoder.decode(found or "[]"), reverse=is_back)
            self._is_last_lookup, self._is_whole_topic = len(left) < size, False
        some, self._hits_left = left[:_MOST_ROWS], left[_MOST_ROWS:]
        if not some:
            return 0, [], True
        where, values = self._where
        rows = connection.query(
            f"SELECT {MESSAGE_COLUMNS} FROM messages"
            f" WHERE {connection.dialect.among('messages.id')} AND {where}"
            f" ORDER BY messages.id {self._order}",
            (connection.dialect.array(some), *values),
        )
        self._last_id = some[-1]
        is_end = self._is_last_lookup and not self._hits_left
        return len(some), [message_of(row) for row in rows], is_end

    def _next_hits(self, size: int) -> Clause:
        """Return a query for the IDs (`id`) of the next `size` hits."""
        among, own = ("", []) if self._few is None else (self._few.ids, self._few.parameters)
        hits, parameters = self._hits(size, among, own)
        return f"{hits} ORDER BY id {self._order} LIMIT ?", [*parameters, size]

    def _hits(self, size: int, among: str, own: Sequence[Any]) -> Clause:
        """Return a query for the IDs (`id`) of the next `size` messages whose content or topic
        has each phrase; with `among`, only of those in that query. Some may lack a phrase
        (`_is_whole_topic`, and old messages on PostgreSQL, which were indexed with their former
        topic)."""
        dialect, comparison = self._connection.dialect, self._comparison
        queries = [dialect.search_hits(comparison, among, is_common=self._is_common)]
        parameters = [dialect.search_query(self._queried), self._last_id, *own]
        size = 1 << (size - 1).bit_length()  # Few distinct sizes, as above.
        for topic_ids, rest in self._topics_saying(self._queried):
            if self._is_whole_topic:
                rest = ()
            if rest and not among and not share_with(self._spread, rest):
                # Few messages have the other phrases, and the topics may have many.
                topic_id = "(SELECT topic_id FROM messages WHERE messages.id = hits.id)"
                hits = dialect.search_hits(comparison)
                queries.append(f"SELECT id FROM ({hits}) AS hits WHERE {dialect.among(topic_id)}")
                parameters += [
                    dialect.search_query(rest),
                    self._last_id,
                    dialect.array(topic_ids),
                ]
                continue
            if rest or among:
                where = dialect.among("topic_id") + (f" AND id IN ({among})" if among else "")
                inside = f"SELECT id FROM messages WHERE {where}"
                values = [dialect.array(topic_ids), *own]
            if rest:
                queries.append(dialect.search_hits(comparison, inside))
                parameters += [dialect.search_query(rest), self._last_id, *values]
            elif among:
                queries.append(f"{inside} AND id {comparison} ?")
                parameters += [*values, self._last_id]
            else:
                queries.append(dialect.merged("topic_id", comparison, size))
                whole = dialect.spans((topic_id, 0, narrow.LARGEST) for topic_id in topic_ids)
                parameters += [whole, self._last_id]
        if len(queries) == 1:
            return queries[0], parameters
        # The first hits of each are enough, because a topic may have any number of messages.
        nearest = f"ORDER BY id {self._order} LIMIT {size}"
        either = " UNION ".join(
            f"SELECT id FROM (SELECT id FROM ({query}) AS part {nearest}) AS nearest"
            for query in queries
        )
        return f"SELECT id FROM ({either}) AS either", parameters

    def _topics_saying(
        self, phrases: tuple[Phrase, ...]
    ) -> list[tuple[list[int], tuple[Phrase, ...]]]:
        """Return the topics in scope whose names have some phrases, with the phrases that they
        lack."""
        dialect, channels = self._connection.dialect, self._scope.every_channel
        said_by: dict[int, set[Phrase]] = defaultdict(set)
        for phrase in phrases:
            if phrase not in self._said:
                self._said[phrase] = [
                    topic_id
                    for (topic_id,) in self._connection.query(
                        f"SELECT id FROM message_topics WHERE id IN ({dialect.topic_hits})"
                        f" AND {dialect.among('+channel_id')}",
                        (dialect.search_query((phrase,)), dialect.array(sorted(channels))),
                    )
                ]
            for topic_id in self._said[phrase]:
                said_by[topic_id].add(phrase)
        alike: dict[tuple[Phrase, ...], list[int]] = defaultdict(list)
        for topic_id, said in said_by.items():
            alike[tuple(one for one in phrases if one not in said)].append(topic_id)
        return [(topic_ids, rest) for rest, topic_ids in alike.items()]
