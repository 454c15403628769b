"""The SQL in which the two databases differ."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from tertulia.model.tokenizer import Phrase


class Dialect(ABC):
    """Where the two kinds of database do not agree."""

    name: str
    blob: str
    """The type of binary columns."""
    real: str
    """The type of floating-point columns."""
    counted: str
    """The type of a primary key that is given out by the database, ascending."""
    now: str
    """The database's clock, as an expression: UNIX seconds with a fraction."""
    beside_others: Sequence[str] = ()
    """Inside a migration, while others serve: from then on it waits for locks for a moment only, so
    that what others do with the same tables does not queue up behind it; and it keeps writers out,
    who take their locks in the same order. Empty where there is one lock for all."""
    hasty: Sequence[str] = ()
    """From then on, the connection's commits do not wait for the disk."""
    begin_read: str
    """Starts a transaction that sees one moment throughout."""
    begin_write: Sequence[str]
    """Starts a transaction that no other writer can enter before it ends."""
    intersects_indexes: bool
    """Whether a query looks at several indexes of a table for the rows that it reads."""
    search_is_ordered: bool
    """Whether the search index names messages in the order of their IDs. If not, it finds all of
    them before the first one is known."""
    search_hit_cost: float
    """Microseconds that the search index takes for each message that it names: see the costs in
    `message_search`."""
    claim_checkpoint: Sequence[str] = ()
    """Waits until no other connection makes a checkpoint, and keeps others from it until this one
    is closed. Empty where `Database.making_checkpoint` does."""
    tell_growth: str = ""
    """Inside such a transaction: tells other nodes, if it commits and not before, how far the log
    has grown (one parameter: the sequence number as text, or a text of `store.broadcast`). Empty
    where `Database.tell_growth` does."""
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
        """A condition that the column is one of a list, which is one parameter: `array(list)`."""

    @abstractmethod
    def array(self, values: Iterable[int] | Iterable[str]) -> Any:
        """The parameter that `among` takes."""

    @abstractmethod
    def spans(self, spans: Iterable[tuple[int, int, int]]) -> Any:
        """The parameter that `within` takes: stretches of channels, each as the channel, the ID
        that it comes after, and its last one. Those of one channel are apart, and in order."""

    @abstractmethod
    def merged(self, column: str, comparison: str, limit: int, also: str = "") -> str:
        """A query for the first so many messages beyond one (`<`: the newest before it), of
        stretches of channels (`channel_id`) or direct conversations (`direct_id`): their IDs, as
        `id`, in any order, and maybe some more. They are taken from the index of each, whatever
        others lie between. Two parameters: `spans(list)`, and that one's ID. `also` is a condition
        without parameters that holds for all of them."""

    @abstractmethod
    def collected(self, column: str) -> str:
        """An aggregate of a group: the column's numbers, as a JSON array, which costs a fraction of
        a row for each."""

    @abstractmethod
    def search_row(self, message_id: int, words: Sequence[str]) -> tuple[Any, ...]:
        """The parameters of `search_insert`: a message, and its words in order."""

    @abstractmethod
    def search_delete(self) -> str:
        """Takes messages out of the search (one parameter: `array(ids)`)."""

    @abstractmethod
    def search_hits(self, comparison: str, among: str = "") -> str:
        """A query for the messages that the search names, beyond one: their IDs, as `id`. Two
        parameters: `search_query(…)`, and that one's ID. With `among`, a query for IDs whose
        parameters follow, only those that both name: both are gone through to the end."""

    @abstractmethod
    def search_query(self, phrases: Sequence[Phrase]) -> str:
        """What the search is asked for: all phrases must occur."""
