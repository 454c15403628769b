"""The SQL that differs between SQLite and PostgreSQL."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from tertulia.model.tokenizer import Phrase


class Lookup(Struct, frozen=True):
    """A lookup of messages in the search index, beyond an ID (`comparison` and `start`)."""

    phrases: tuple[Phrase, ...]
    comparison: str
    start: int
    chunks: range | None = None
    """Limits the lookup to these chunks of IDs."""
    places: Sequence[int] = ()
    """Limits the lookup to these channels and, as negative numbers, direct conversations, if the
    search index contains them."""
    among: tuple[str, list[Any]] | None = None
    """Limits the lookup to the IDs of this query, which is read to the end like the hits."""


class Dialect(ABC):
    name: str
    blob: str
    """The type of binary columns."""
    real: str
    """The type of floating-point columns."""
    counted: str
    """The type of an auto-incremented primary key."""
    now: str
    """An expression for the database's clock in UNIX seconds with a fraction."""
    beside_others: Sequence[str] = ()
    """Statements for a migration while others serve. They shorten lock waits, so that others don't
    queue up behind them, and keep writers out. Empty if one lock covers everything."""
    hasty: Sequence[str] = ()
    """Statements that make the connection's commits return before they are on disk."""
    begin_read: str
    """A statement that starts a transaction on one snapshot."""
    begin_write: Sequence[str]
    """Statements that start a transaction that keeps other writers out."""
    intersects_indexes: bool
    """Whether the planner combines several indexes of a table."""
    search_chunk: int = 0
    """If the search index isn't ordered by ID, it's divided by place (see `Lookup`) and into chunks
    of this many IDs."""
    claim_checkpoint: Sequence[str] = ()
    """Statements that take the lock for making a checkpoint until the connection closes. Empty if
    `Database.making_checkpoint` does."""
    tell_growth: str = ""
    """A statement that notifies other nodes when the transaction commits. One parameter: the log's
    sequence number, or a text of `store.broadcast`. Empty if `Database.tell_growth` does."""
    begin_migration: Sequence[str]
    """Statements that start a transaction that no other migration can enter. They work before any
    table exists."""
    within: str
    """A condition that a message is in one of the spans in its one parameter, `spans(list)`."""
    tables: str
    """A query for the names of Tertulia's tables, except those of the search indexes."""
    columns: str
    """A query for a table's columns in order: name, and whether it's binary. One parameter: the
    table."""
    first_search_schema: Sequence[str]
    """The search index of the first schema, which used the database's own tokenizer."""
    search_schema: Sequence[str]
    """Statements that replace the search index with an empty one."""
    search_tuning: Sequence[str] = ()
    """Statements that adapt the search index to many small commits."""
    search_patience: Sequence[str]
    """Statements that make the search index merge in small steps only."""
    search_deletions: Sequence[str] = ()
    """Statements that keep deletions from rewriting large parts of the search index."""
    search_tidying: Sequence[str] = ()
    """Statements that merge the search index after many messages were added."""
    search_places: Sequence[str] = ()
    """Statements that divide the search index by place."""
    search_move: str = ""
    """A statement that changes the place of messages in the search index. Parameters: the place,
    and `array(ids)`. Empty if the index has no places."""
    topic_search_schema: Sequence[str]
    """Statements that create an empty index of topic names."""
    topic_search_insert: str
    """A statement that adds a topic to the index of names, unless it's there. Parameters: its words
    as in `search_row`, channel, and key."""
    topic_search_delete: str
    """A statement that removes a topic from the index of names. Parameters: channel and key."""
    topic_hits: str
    """A query for the IDs of matching topics. One parameter: `search_query(…)`."""
    search_insert: str
    """A statement that adds a row of `search_row` to the search index."""
    search_missing: str
    """A query for the number of messages that the search index doesn't have."""

    @abstractmethod
    def among(self, column: str) -> str:
        """Return a condition that the column is in a list, given as one parameter:
        `array(list)`."""

    @abstractmethod
    def array(self, values: Iterable[int] | Iterable[str]) -> Any: ...

    @abstractmethod
    def spans(self, spans: Iterable[tuple[int, int, int]]) -> Any:
        """Return the parameter of `within` and `merged`: spans as channel, ID before the first
        message, and ID of the last one. The spans of one channel must be ordered and disjoint."""

    @abstractmethod
    def merged(self, column: str, comparison: str, limit: int, also: str = "") -> str:
        """Return a query for the IDs (`id`) of the first `limit` messages beyond an ID (`<`: the
        newest before it) in spans of channels (`channel_id`) or direct conversations (`direct_id`),
        in any order, and possibly with some more. It uses the index of each, regardless of messages
        in between. Two parameters: `spans(list)`, and the ID. `also` is a condition without
        parameters."""

    @abstractmethod
    def collected(self, column: str) -> str:
        """Return an aggregate of the column's numbers as a JSON array, which costs much less than a
        row for each."""

    @abstractmethod
    def search_row(self, message_id: int, text: str, place: int) -> tuple[Any, ...]:
        """Return the parameters of `search_insert` for a message, its text, and its place (see
        `Lookup`)."""

    @abstractmethod
    def search_delete(self) -> str:
        """Return a statement that removes messages from the search index. One parameter:
        `array(ids)`."""

    @abstractmethod
    def search_hits(self, lookup: Lookup) -> tuple[str, list[Any]]:
        """Return a query for the IDs (`id`) of hits, with its parameters."""

    @abstractmethod
    def search_query(self, phrases: Sequence[Phrase]) -> str:
        """Return the search index's syntax for messages that have all phrases."""
