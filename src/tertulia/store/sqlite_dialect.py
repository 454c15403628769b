"""SQLite's SQL, where it differs from PostgreSQL's."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from tertulia.model.narrow import LARGEST
from tertulia.model.tokenizer import Phrase
from tertulia.store.database import Dialect

_encoder: Final = msgspec.json.Encoder()
"""For numbers, of which there may be thousands: several times as fast as the other one."""


class SqliteDialect(Dialect):
    name = "sqlite"
    blob = "BLOB"
    real = "REAL"
    counted = "INTEGER PRIMARY KEY"
    now = "unixepoch('subsec')"
    hasty = ("PRAGMA synchronous = NORMAL",)
    begin_read = "BEGIN"
    intersects_indexes = False
    search_is_ordered = True
    search_hit_cost = 0.04
    begin_write = ("BEGIN IMMEDIATE",)

    def begin_migration(self) -> Sequence[str]:
        return self.begin_write

    def among(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    def array(self, values: Iterable[int] | Iterable[str]) -> str:
        found: list[Any] = list(values)
        if found and isinstance(found[0], str):
            return json.dumps(found)  # In ASCII, whatever is in them.
        return _encoder.encode(found).decode()

    def within(self) -> str:
        return (
            "EXISTS (WITH spans (channel, after, until) AS MATERIALIZED"
            " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
            " SELECT 1 FROM spans WHERE channel = +messages.channel_id"
            " AND messages.id > after AND messages.id <= until)"
        )

    def spans(self, spans: Iterable[tuple[int, int, int]]) -> str:
        return _encoder.encode(list(spans)).decode()

    def merged(self, column: str, comparison: str, limit: int, also: str = "") -> str:
        # One bound on either side: of several, an index begins at any.
        if comparison == "<":
            first, end, order = "MAX", 0, "DESC"
            begin, go_on = "id > after AND id <= MIN(until, start - 1)", "id > after AND id < found"
        else:
            first, end, order = "MIN", LARGEST, "ASC"
            begin, go_on = "id > MAX(after, start) AND id <= until", "id > found AND id <= until"
        fits = f"{also} AND " if also else ""
        nearest = f"SELECT {first}(id) FROM messages WHERE {fits}{column} = place AND"
        # What a recursion is still to follow is a queue in this order: it is always the stretch
        # with the next message that goes one message on.
        return (
            "WITH RECURSIVE spans (place, after, until) AS"
            " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)),"
            " anchor (start) AS MATERIALIZED (SELECT ?), merged (found, place, after, until) AS ("
            f"SELECT COALESCE(({nearest} {begin}), {end}), place, after, until"
            " FROM anchor CROSS JOIN spans"
            f" UNION ALL SELECT COALESCE(({nearest} {go_on}), {end}), place, after, until"
            f" FROM merged WHERE found <> {end} ORDER BY 1 {order} LIMIT {int(limit)})"
            f" SELECT found AS id FROM merged WHERE found <> {end}"
        )

    def collected(self, column: str) -> str:
        return f"json_group_array({column})"

    def tables(self) -> str:
        return (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND name NOT LIKE 'message_search%' AND name NOT LIKE 'topic_search%' ORDER BY name"
        )

    def columns(self) -> str:
        return "SELECT name, type = 'BLOB' FROM pragma_table_info(?) ORDER BY cid"

    def first_search_schema(self) -> Sequence[str]:
        return (
            "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
            " contentless_delete=1, tokenize='unicode61 remove_diacritics 2')",
            "INSERT INTO message_search (rowid, content, topic)"
            " SELECT id, content, COALESCE(topic, '') FROM messages",
        )

    def search_schema(self) -> Sequence[str]:
        # To `ascii`, everything beyond ASCII is of a word: the words come apart at spaces alone.
        return (
            "DROP TABLE message_search",
            "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
            " contentless_delete=1, tokenize='ascii')",
        )

    def search_tuning(self) -> Sequence[str]:
        # Every 64 commits the index is merged for a while: a quarter of it at a time, and half as
        # often, is hardly felt by the one who sends just then.
        return (
            "INSERT INTO message_search (message_search, rank) VALUES ('pgsz', 1000)",
            "INSERT INTO message_search (message_search, rank) VALUES ('automerge', 8)",
        )

    def search_patience(self) -> Sequence[str]:
        # Every commit leaves a segment. With 16 of them at one level all of these are merged in the
        # next commit, however large they are, and the merging in small steps is not there yet: it
        # comes when 64 pages were written.
        return ("INSERT INTO message_search (message_search, rank) VALUES ('crisismerge', 256)",)

    def search_deletions(self) -> Sequence[str]:
        # Else the commit by which a tenth of a segment is deleted merges all of it, however large
        # it is. `forget_deleted_words` does that, by steps.
        return ("INSERT INTO message_search (message_search, rank) VALUES ('deletemerge', 0)",)

    def search_tidying(self) -> Sequence[str]:
        # (So many pages as there never are.)
        return ("INSERT INTO message_search (message_search, rank) VALUES ('merge', 100000000)",)

    def search_missing(self) -> str:
        return (
            "SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT id FROM message_search_docsize)"
        )

    def topic_search_schema(self) -> Sequence[str]:
        return (
            "CREATE VIRTUAL TABLE topic_search USING fts5(content, content='',"
            " contentless_delete=1, tokenize='ascii')",
        )

    def topic_search_insert(self) -> str:
        return (
            "INSERT INTO topic_search (rowid, content) SELECT id, ? FROM message_topics"
            " WHERE channel_id = ? AND key = ?"
            " AND NOT EXISTS (SELECT 1 FROM topic_search WHERE rowid = message_topics.id)"
        )

    def topic_search_delete(self) -> str:
        return (
            "DELETE FROM topic_search WHERE rowid ="
            " (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?)"
        )

    def topic_hits(self) -> str:
        return "SELECT rowid FROM topic_search WHERE topic_search MATCH ?"

    def search_insert(self) -> str:
        return "INSERT INTO message_search (rowid, content) VALUES (?, ?)"

    def search_row(self, message_id: int, words: Sequence[str]) -> tuple[Any, ...]:
        return message_id, " ".join(words)

    def search_delete(self) -> str:
        return f"DELETE FROM message_search WHERE {self.among('rowid')}"

    def search_hits(self, comparison: str, among: str = "") -> str:
        named = (
            "SELECT rowid AS id FROM message_search"
            f" WHERE message_search MATCH ? AND rowid {comparison} ?"
        )
        return f"SELECT id FROM ({named} INTERSECT SELECT * FROM ({among}))" if among else named

    def search_query(self, phrases: Sequence[Phrase]) -> str:
        # Messages from before topics had an index of their own have a second column.
        both = " AND ".join(
            f'"{" ".join(phrase.words)}"' + ("*" if phrase.is_open else "") for phrase in phrases
        )
        return f"content : ({both})"


DIALECT = SqliteDialect()
