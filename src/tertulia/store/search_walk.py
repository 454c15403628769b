"""Walking through the matches of a search, by scanning messages or with the search index."""

from collections.abc import Sequence
from functools import cached_property

from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch
from tertulia.store import queries, search_hits
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import IdSubset, ids_in_scope, smallest_subset
from tertulia.store.scope_walk import ScopeWalk
from tertulia.store.search_hits import SearchHits
from tertulia.store.search_text import (
    SAMPLE,
    ScannedSample,
    Strategy,
    counts_of,
    matching_text,
    rare_phrases,
    split_terms,
)

_FIRST_STEP = 250
"""Messages in the first step, which are enough to estimate how common a phrase is."""
_SPREAD = 100
"""Messages sampled from the whole history to estimate how many are in scope."""
STEP_GROWTH = 8
"""The most that a step may be larger than the previous one."""
_SCAN_COST = 15.0
"""Microseconds for scanning a message. Only the proportions of the costs matter."""
_LOOKUP_COST = 1.5
"""Microseconds for reading a message that the search index has named."""
_HIT_COST = 0.08
"""Microseconds for each hit that a lookup may find in the search index."""
_CROSS_COST = 0.35
"""Microseconds for each hit that is intersected with IDs, and for each of these."""
_LONG = 5000.0
"""Microseconds of estimated work from which the size of the narrow is worth a query."""


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
        self._texts, rest = split_terms(search.terms)
        newest = None if seen is None else seen.newest
        self._walk = ScopeWalk(connection, search, rest, comparison, anchor, newest)
        self._phrases = search.phrases
        self._is_by_place = bool(connection.dialect.search_chunk)
        """Whether the search index returns only hits in scope."""
        self._common = 1.0
        """The share of the scanned messages that have the text."""
        self._of_each = 0.0
        """The number of hits of each phrase, added up, per message. The search index passes them
        all to find messages with all phrases, unless it's divided by place."""
        self._hits = SearchHits(connection, self._walk, search.phrases)

    def found(self, limit: int) -> list[Message]:
        """Return up to `limit` matches."""
        return self._find_text(limit) if self._texts else self._walk.next(limit)

    def _find_text(self, limit: int) -> list[Message]:
        """Return up to `limit` matches. The strategies take turns, each continuing where the
        other ended."""
        walk = self._walk
        walk.begin_at_newest()
        scan = strategy = Strategy(_SCAN_COST, _FIRST_STEP)
        lookup = None
        if (seen := self._seen) is not None and seen.passed:
            scan.passed, scan.gained, scan.span = seen.passed, seen.gained, seen.span
            lookup = self._expected_lookup(scan, seen.matched, seen.messages)
            strategy = self._cheaper(scan, lookup, limit)
        messages: list[Message] = []
        while True:
            start, need = walk.last_id, limit - len(messages)
            if strategy is scan or not self._phrases:
                # If all terms are negated, the index would find the wrong messages.
                some = walk.next(strategy.size)
                passed, is_end = len(some), len(some) < strategy.size
            else:
                passed, some, is_end = self._look_up(strategy.size, need)
            new = matching_text(self._connection, some, self._texts)
            messages += new
            if is_end or len(messages) >= limit:
                return messages[:limit]
            strategy.passed += passed
            strategy.gained += len(new)
            strategy.span += abs(start - walk.last_id)
            if lookup is None:
                lookup = self._expected_lookup(scan, scan.gained, some)
            strategy = self._cheaper(scan, lookup, limit - len(messages))

    def _expected_lookup(self, scan: Strategy, matched: int, some: Sequence[Message]) -> Strategy:
        """Estimate what the search index will find, from the scanned messages."""
        sample = some[:SAMPLE]
        if len(self._phrases) > 1:
            counts = counts_of(self._phrases, sample)
            self._hits.phrases = rare_phrases(self._phrases, counts)
            if not self._is_by_place:
                self._of_each = sum(counts) / max(len(sample), 1)
        self._common = (matched + 1) / (scan.passed + 1)
        hits = scan.gained if self._is_by_place else int(scan.span * self._common)
        return Strategy(_LOOKUP_COST, _FIRST_STEP, hits, scan.gained, scan.span)

    def _cheaper(self, scan: Strategy, lookup: Strategy, need: int) -> Strategy:
        """Return the cheaper strategy for the rest, and set the size of its next step."""
        most_rows, longest_step = search_hits.MOST_ROWS, search_hits.LONGEST_STEP
        common = self._common if self._is_by_place else lookup.density
        hits, ids = self._walk.newest * common, self._walk.ids_left
        to_scan, to_look_up = scan.left(need, ids), lookup.left(need, ids)
        is_all = self._hits.phrases == self._phrases
        prepare_all = max(hits, self._walk.newest * self._of_each) * _HIT_COST
        prepared = 0 if self._hits.is_named else prepare_all if is_all else hits * _HIT_COST
        scanning, looking_up = to_scan * scan.cost, to_look_up * lookup.cost + prepared
        if not is_all and min(scanning, looking_up) > max(_LONG, prepare_all):
            # The sample was misleading: reading all hits of the rarest phrases takes long.
            self._hits.phrases = self._phrases
            lookup.size = most_rows
            return lookup
        if (
            self._hits.among is None
            and self._hits.is_begun
            and min(scanning, looking_up) > _LONG
            and (few := self._fewest) is not None
        ):
            scanning = min(scanning, few.number * scan.cost)
            # The share of hits that match isn't known until some are found.
            estimates = [scanning, *([looking_up] if lookup.gained > scan.gained else [])]
            if (hits + few.number) * _CROSS_COST < min(estimates):
                self._hits.among = few
        if self._hits.among is not None:
            lookup.size = longest_step
            return lookup
        if scanning <= looking_up:
            scan.size = min(max(to_scan * 5 // 4, _FIRST_STEP), scan.size * STEP_GROWTH, most_rows)
            return scan
        # Each step finds all hits again, so take long steps if that is expensive.
        longest = longest_step if prepared > _LONG else lookup.size * STEP_GROWTH
        lookup.size = min(max(to_look_up * 5 // 4, _FIRST_STEP), longest, longest_step)
        return lookup

    @cached_property
    def _fewest(self) -> IdSubset | None:
        """The messages that hits are intersected with, by ID, unless the search index is divided
        by place."""
        connection, walk = self._connection, self._walk
        if self._is_by_place:
            return None
        few = smallest_subset(connection, walk.terms)
        spread = range(1, walk.newest + 1, max(walk.newest // _SPREAD, 1))
        if few is None and (sample := queries.messages(connection, spread)):
            channels, directs = walk.scope.every_channel, walk.scope.direct_ids
            inside = sum(
                message.channel_id in channels or message.direct_id in directs for message in sample
            )
            ids = ids_in_scope(connection.dialect, walk.scope, walk.terms)
            few = IdSubset(*ids, walk.newest * (inside + 1) // len(sample))
        return few

    def _look_up(self, size: int, need: int) -> tuple[int, list[Message], bool]:
        """Read the next hits of the search index, or as many as needed if all match."""
        hits = self._hits
        is_all = hits.phrases == self._phrases and not any(negated for _, negated in self._texts)
        return hits.read(size, need if is_all and not hits.is_whole_topic else size)
