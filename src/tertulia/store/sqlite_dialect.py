"""SQLite's dialect."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from tertulia.model.narrow import LARGEST
from tertulia.model.tokenizer import Phrase, separated_words
from tertulia.store.dialect import Dialect, Lookup

_encoder: Final = msgspec.json.Encoder()
"""Several times as fast as `json` for thousands of numbers."""


class SqliteDialect(Dialect):
    name = "sqlite"
    blob = "BLOB"
    real = "REAL"
    counted = "INTEGER PRIMARY KEY"
    now = "unixepoch('subsec')"
    hasty = ("PRAGMA synchronous = NORMAL",)
    begin_read = "BEGIN"
    intersects_indexes = False
    begin_write = ("BEGIN IMMEDIATE",)
    begin_migration = begin_write
    within = (
        "EXISTS (WITH spans (channel, after, until) AS MATERIALIZED"
        " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
        " SELECT 1 FROM spans WHERE channel = +messages.channel_id"
        " AND messages.id > after AND messages.id <= until)"
    )
    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE 'message_search%' AND name NOT LIKE 'topic_search%' ORDER BY name"
    )
    columns = "SELECT name, type = 'BLOB' FROM pragma_table_info(?) ORDER BY cid"
    first_search_schema = (
        "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
        " contentless_delete=1, tokenize='unicode61 remove_diacritics 2')",
        "INSERT INTO message_search (rowid, content, topic)"
        " SELECT id, content, COALESCE(topic, '') FROM messages",
    )
    # `ascii` treats all characters beyond ASCII as letters (see `separated_words`).
    search_schema = (
        "DROP TABLE message_search",
        "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
        " contentless_delete=1, tokenize='ascii')",
    )
    # Every 64 commits, a part of the index is merged. With a quarter of the default size, half as
    # often, the person who sends at that moment hardly notices.
    search_tuning = (
        "INSERT INTO message_search (message_search, rank) VALUES ('pgsz', 1000)",
        "INSERT INTO message_search (message_search, rank) VALUES ('automerge', 8)",
    )
    # Every commit adds a segment. If a level had 16 of them, the next commit would merge them all,
    # however large they are, because merging in small steps begins only after 64 written pages.
    search_patience = (
        "INSERT INTO message_search (message_search, rank) VALUES ('crisismerge', 256)",
    )
    # Otherwise, the commit with which a segment's deleted share reaches a tenth would merge all of
    # it, however large it is. `forget_deleted_words` does that in steps.
    search_deletions = (
        "INSERT INTO message_search (message_search, rank) VALUES ('deletemerge', 0)",
    )
    # More pages than any database has.
    search_tidying = (
        "INSERT INTO message_search (message_search, rank) VALUES ('merge', 100000000)",
    )
    search_missing = (
        "SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT id FROM message_search_docsize)"
    )
    topic_search_schema = (
        "CREATE VIRTUAL TABLE topic_search USING fts5(content, content='',"
        " contentless_delete=1, tokenize='ascii')",
    )
    topic_search_insert = (
        "INSERT INTO topic_search (rowid, content) SELECT id, ? FROM message_topics"
        " WHERE channel_id = ? AND key = ?"
        " AND NOT EXISTS (SELECT 1 FROM topic_search WHERE rowid = message_topics.id)"
    )
    topic_search_delete = (
        "DELETE FROM topic_search WHERE rowid ="
        " (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?)"
    )
    topic_hits = "SELECT rowid FROM topic_search WHERE topic_search MATCH ?"
    search_insert = "INSERT INTO message_search (rowid, content) VALUES (?, ?)"

    def among(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    def array(self, values: Iterable[int] | Iterable[str]) -> str:
        results: list[Any] = list(values)
        if results and isinstance(results[0], str):
            return json.dumps(results)  # ASCII only.
        return _encoder.encode(results).decode()

    def spans(self, spans: Iterable[tuple[int, int, int]]) -> str:
        return _encoder.encode(list(spans)).decode()

    def merged(self, column: str, comparison: str, limit: int, also: str = "") -> str:
        # One bound on each side, because SQLite would start at any of several.
        if comparison == "<":
            first, end, order = "MAX", 0, "DESC"
            begin, go_on = "id > after AND id <= MIN(until, start - 1)", "id > after AND id < found"
        else:
            first, end, order = "MIN", LARGEST, "ASC"
            begin, go_on = "id > MAX(after, start) AND id <= until", "id > found AND id <= until"
        fits = f"{also} AND " if also else ""
        nearest = f"SELECT {first}(id) FROM messages WHERE {fits}{column} = place AND"
        # The recursion's queue has this order, so the span with the next message always advances.
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

    def search_row(self, message_id: int, text: str, place: int) -> tuple[Any, ...]:
        return message_id, separated_words(text)

    def search_delete(self) -> str:
        return f"DELETE FROM message_search WHERE {self.among('rowid')}"

    def search_hits(self, lookup: Lookup) -> tuple[str, list[Any]]:
        sql = (
            "SELECT rowid AS id FROM message_search"
            f" WHERE message_search MATCH ? AND rowid {lookup.comparison} ?"
        )
        parameters = [self.search_query(lookup.phrases), lookup.start]
        if lookup.among is None:
            return sql, parameters
        among, values = lookup.among
        return f"SELECT id FROM ({sql} INTERSECT SELECT * FROM ({among}))", [*parameters, *values]

    def search_query(self, phrases: Sequence[Phrase]) -> str:
        # Messages from before the index of topics have a second column.
        both = " AND ".join(
            f'"{" ".join(phrase.words)}"' + ("*" if phrase.is_open else "") for phrase in phrases
        )
        return f"content : ({both})"


DIALECT = SqliteDialect()
