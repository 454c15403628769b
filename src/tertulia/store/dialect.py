"""The SQL in which SQLite and PostgreSQL differ."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from tertulia.model.tokenizer import Phrase


class Dialect(ABC):
    name: str
    blob: str
    """The type of binary columns."""
    real: str
    """The type of floating-point columns."""
    counted: str
    """An auto-incremented primary key."""
    now: str
    """The database's clock in UNIX seconds with a fraction."""
    beside_others: Sequence[str] = ()
    """Run inside a migration while others serve. It shortens lock waits so that others don't queue
    up behind them, and keeps writers out. Empty if one lock covers everything."""
    hasty: Sequence[str] = ()
    """Make the connection's commits return before they are on disk."""
    begin_read: str
    """Start a transaction on one snapshot."""
    begin_write: Sequence[str]
    """Start a transaction that keeps other writers out."""
    intersects_indexes: bool
    """Whether the planner combines several indexes of a table."""
    search_is_ordered: bool
    """Whether the search index yields messages in ID order, so that the first ones are cheap."""
    search_hit_cost: float
    """Microseconds for each message that the search index names (see `search_walk`), or if the
    word is common and the index isn't ordered, for each message that is checked for it."""
    search_check_cost: float
    """Microseconds for each ID of `among` in `search_hits`."""
    search_cross_cost: float
    """Microseconds for each hit that `search_hits` intersects with `among`."""
    claim_checkpoint: Sequence[str] = ()
    """Take the lock for making a checkpoint until the connection closes. Empty if
    `Database.making_checkpoint` does."""
    tell_growth: str = ""
    """Notify other nodes when the transaction commits. One parameter: the log's sequence number, or
    a text of `store.broadcast`. Empty if `Database.tell_growth` does."""
    begin_migration: Sequence[str]
    """Start a transaction that no other migration can enter. Works before any table exists."""
    within: str
    """A condition that a message is in one of the spans in its one parameter, `spans(list)`."""
    tables: str
    """A query for the names of our tables, except those of the search indexes."""
    columns: str
    """A query for a table's columns in order: name, and whether it's binary. One parameter: the
    table."""
    first_search_schema: Sequence[str]
    """The search index of the first schema, which used the database's own tokenizer."""
    search_schema: Sequence[str]
    """Replace the search index with an empty one."""
    search_tuning: Sequence[str] = ()
    """Adapt the search index to many small commits."""
    search_patience: Sequence[str]
    """Let the search index merge in small steps only."""
    search_deletions: Sequence[str] = ()
    """Keep deletions from rewriting large parts of the search index."""
    search_tidying: Sequence[str] = ()
    """Merge the search index after many messages were added."""
    topic_search_schema: Sequence[str]
    """Create an empty index of topic names."""
    topic_search_insert: str
    """Add a topic to the index of names, unless it's there. Parameters: its words as in
    `search_row`, channel, and key."""
    topic_search_delete: str
    """Remove a topic from the index of names. Parameters: channel and key."""
    topic_hits: str
    """A query for the IDs of matching topics. One parameter: `search_query(…)`."""
    search_insert: str
    """Add a row of `search_row` to the search index."""
    search_missing: str
    """A query for the number of messages that the search index doesn't have."""

    @abstractmethod
    def among(self, column: str) -> str:
        """A condition that the column is in a list, given as one parameter: `array(list)`."""

    @abstractmethod
    def array(self, values: Iterable[int] | Iterable[str]) -> Any: ...

    @abstractmethod
    def spans(self, spans: Iterable[tuple[int, int, int]]) -> Any:
        """The parameter of `within` and `merged`: spans as channel, ID before the first message,
        and ID of the last one. Those of one channel must be ordered and disjoint."""

    @abstractmethod
    def merged(self, column: str, comparison: str, limit: int, also: str = "") -> str:
        """A query for the IDs (`id`) of the first `limit` messages beyond an ID (`<`: the newest
        before it) in spans of channels (`channel_id`) or direct conversations (`direct_id`), in any
        order and maybe with some more. It uses the index of each, whatever lies between. Two
        parameters: `spans(list)`, and the ID. `also` is a condition without parameters."""

    @abstractmethod
    def collected(self, column: str) -> str:
        """An aggregate: the column's numbers as a JSON array, which is much cheaper than a row for
        each."""

    @abstractmethod
    def search_row(self, message_id: int, words: Sequence[str]) -> tuple[Any, ...]:
        """The parameters of `search_insert` for a message and its words in order."""

    @abstractmethod
    def search_delete(self) -> str:
        """Remove messages from the search index. One parameter: `array(ids)`."""

    @abstractmethod
    def search_hits(self, comparison: str, among: str = "", *, is_common: bool = False) -> str:
        """A query for the IDs (`id`) of matching messages beyond an ID. Two parameters:
        `search_query(…)`, and the ID. With `among`, a query for IDs whose parameters follow, only
        those in both.

        If the index isn't ordered, it's read to the end, unless `is_common`: then messages are
        checked one after the other until there are enough, like those of `among`."""

    @abstractmethod
    def search_query(self, phrases: Sequence[Phrase]) -> str:
        """The search index's syntax for messages that have all phrases."""
