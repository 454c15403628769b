"""The order of an export's messages across its conversations, in a file next to it.

An export has a directory for each conversation, and files of messages by day. The index reads each
file once, and stores the position of each message, so that all can be read in chronological order
in bounded memory. It also has what only all messages together show: threads, links between
messages, when people joined, and the senders that the export has no records of.
"""

import contextlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import msgspec
from msgspec import Struct

from tertulia.imports.report import ImportReport
from tertulia.imports.slack import values
from tertulia.imports.slack.conversations import SlackConversation
from tertulia.imports.slack.senders import MAX_NAME, SlackSender, sender_of
from tertulia.imports.source import BATCH_BYTES
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody
from tertulia.imports.threads import ThreadTopics

MAX_FILE: Final = 64 * 1024 * 1024
"""Largest file with messages, in bytes. Slack writes one for each day."""
MAX_ELEMENTS: Final = 8_000_000
"""The most commas in such a file, which bounds the memory for decoding it."""
MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Largest message in an export, in bytes."""
MAX_SENDERS: Final = 100_000
"""The most senders without records in the export."""
PARTS: Final = 16
"""The most messages that one Slack message may become. Keys leave room for them."""
_VERSION: Final = 1
"""The version of the index's tables."""
_OPEN_FILES: Final = 256
_GAP: Final = re.compile(rb"[\s,]*")
_ROWS: Final = 2000
_LINK: Final = re.compile(rb"archives\\?/([A-Z0-9]{2,20})\\?/p([0-9]{16})\b")

JOINS: Final = frozenset({"channel_join", "group_join"})
LEAVES: Final = frozenset({"channel_leave", "group_leave"})
_CHANGED: Final = "It's about a change of the channel, which is imported in its current state."
_APPS: Final = "It's about an app. Apps have to be set up again."
SKIPPED: Final = {
    **dict.fromkeys(
        JOINS | LEAVES, "It's about someone joining or leaving, which the subscriptions show."
    ),
    **dict.fromkeys(
        (
            *("channel_topic", "channel_purpose", "channel_name", "channel_archive"),
            *("channel_unarchive", "group_topic", "group_purpose", "group_name", "group_archive"),
            *("group_unarchive", "channel_convert_to_private", "channel_convert_to_public"),
            *("channel_posting_permissions", "channel_canvas_updated", "channel_tabs_updated"),
        ),
        _CHANGED,
    ),
    **dict.fromkeys(
        ("pinned_item", "unpinned_item"), "It's about a pinned message. Pins are imported."
    ),
    **dict.fromkeys(
        (
            *("bot_add", "bot_remove", "bot_enable", "bot_disable", "app_conversation_join"),
            *("app_conversation_leave", "slackbot_response_add"),
        ),
        _APPS,
    ),
    **dict.fromkeys(("reminder_add", "reminder_delete"), "Reminders aren't in the export."),
    "tombstone": "It was deleted in Slack.",
    "message_deleted": "It's a record of a deletion.",
    "message_changed": "It's a record of an edit. The message's current version is imported.",
    "message_replied": "It's a record of a reply.",
    "joiner_notification": "It's a tip from Slack.",
    "joiner_notification_for_inviter": "It's a tip from Slack.",
    "channel_join_request": "It's a tip from Slack.",
    "ekm_access_denied": "Its content was encrypted with a key that Slack couldn't use.",
}
"""The kinds of messages that aren't imported, and the reasons."""


class _Head(Struct):
    """The fields of a message that the index uses."""

    ts: Any = None
    thread_ts: Any = None
    subtype: Any = None
    user: Any = None
    bot_id: Any = None
    username: Any = None
    bot_profile: Any = None
    user_profile: Any = None
    room: Any = None


class IndexedMessage(NamedTuple):
    """A message in the index."""

    key: int
    at: int
    """Microseconds of UNIX time."""
    conversation: int
    file: int
    offset: int
    size: int
    topic: str | None
    """The topic of its thread."""
    in_thread: int | None
    is_linked: int


class SlackIndex:
    """An index file, which is built first if it isn't complete."""

    def __init__(self, path: Path, root: Path) -> None:
        self._root = root
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = self._connected(path)
        if not self.is_complete:  # The file may be damaged, because it's written without a journal.
            self._db.close()
            path.unlink()
            self._db = self._connected(path)
        self._open: OrderedDict[int, int] = OrderedDict()

    def _connected(self, path: Path) -> apsw.Connection:
        db = apsw.Connection(str(path))
        db.execute(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000;"
        ).fetchall()
        return db

    @property
    def is_complete(self) -> bool:
        try:
            return bool(self._row("PRAGMA user_version")[0] == _VERSION)
        except apsw.Error:
            return False

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        self._db.close()

    def _row(self, sql: str, *values: object) -> tuple[Any, ...]:
        row = self._db.execute(sql, values).fetchone()
        return row or ()

    # Building

    def build(
        self,
        conversations: Sequence[SlackConversation],
        known: Iterable[str],
        tell: TellStage = tell_nobody,
    ) -> None:
        """Index all messages. `known` are the keys of senders with records. Call `name_threads`
        afterwards to complete the index."""
        self._db.execute(_TABLES).fetchall()
        builder = _Builder(self._db, set(known))
        # Counting the files takes much less time than adding up their sizes.
        files = sum(len(_day_files(self._root / c.directory)) for c in conversations if c.directory)
        counter = StageCounter(tell, "reading", files)
        for conversation in conversations:
            self._db.execute(
                "INSERT INTO conversations VALUES (?, ?, ?)",
                (conversation.number, conversation.id, conversation.is_direct),
            )
            if not conversation.directory:
                continue
            for path in _day_files(self._root / conversation.directory):
                builder.read(conversation, path, path.relative_to(self._root).as_posix())
                counter.add(1)
        builder.end()
        self._db.execute(_SORTED).fetchall()

    def name_threads(self, name: Callable[[bytes], str], tell: TellStage = tell_nobody) -> None:
        """Give threads their topics, from the text that `name` returns for the first message."""
        topics = ThreadTopics()
        counter = StageCounter(tell, "sorting", self._row("SELECT count(*) FROM threads")[0])
        conversation = at = 0
        while True:
            rows: list[Any] = self._db.execute(_THREADS, (conversation, at, _ROWS)).fetchall()
            if not rows:
                break
            self._db.execute("BEGIN")
            for conversation, at, file, offset, size in rows:
                topic = topics.topic(conversation, at, name(self._content(file, offset, size)))
                self._db.execute(
                    "UPDATE threads SET name = ? WHERE conversation = ? AND at = ?",
                    (topic, conversation, at),
                )
            self._db.execute("COMMIT")
            counter.add(len(rows))
        topics.close()
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    # Reading

    @property
    def messages(self) -> int:
        return int(self._row("SELECT count(*) FROM messages WHERE kind = 0")[0])

    def senders(self) -> Iterator[SlackSender]:
        """Yield the senders that the export has no records of."""
        for key, name, is_bot, picture in self._db.execute("SELECT * FROM senders ORDER BY key"):
            yield SlackSender(key, name, bool(is_bot), picture)

    def moves(self) -> Iterator[tuple[int, str, int, bool]]:
        """Yield when people joined and left: conversation, user, the key of the message before, and
        whether they left. Sorted by conversation and user, then in chronological order."""
        cursor = self._db.execute(
            "SELECT v.conversation, v.user, m.key, v.leaves FROM moves AS v JOIN messages AS m"
            " ON m.conversation = v.conversation AND m.at = v.at"
            " ORDER BY v.conversation, v.user, v.at"
        )
        for conversation, user, key, leaves in cursor:
            yield conversation, user, key * PARTS + PARTS - 1, bool(leaves)

    def key_of(self, conversation: int, at: int) -> int | None:
        """Return the key of the message at this time, or None if it isn't imported."""
        row = self._row(
            "SELECT key FROM messages WHERE conversation = ? AND at = ? AND kind = 0",
            conversation,
            at,
        )
        return row[0] * PARTS if row else None

    def report(self, report: ImportReport) -> None:
        """Report the messages and files that are skipped."""
        for kind, reason, sample, number in self._db.execute("SELECT * FROM skipped"):
            report.skip(kind, reason, sample, number)

    def batches(self, after: int, most: int) -> Iterator[list[tuple[IndexedMessage, bytes]]]:
        """Yield messages after this key in chronological order, in lists of at most `most`."""
        while True:
            rows = self._db.execute(_READ, (after, most)).fetchall()
            if not rows:
                return
            batch: list[tuple[IndexedMessage, bytes]] = []
            size = 0
            for row in map(IndexedMessage._make, rows):
                if batch and size + row.size > BATCH_BYTES:
                    break
                size += row.size
                batch.append((row, self._content(row.file, row.offset, row.size)))
            after = batch[-1][0].key
            yield batch

    def _content(self, file: int, offset: int, size: int) -> bytes:
        descriptor = self._open.get(file)
        if descriptor is None:
            (path,) = self._row("SELECT path FROM files WHERE id = ?", file)
            descriptor = self._open[file] = os.open(self._root / path, os.O_RDONLY | os.O_NOFOLLOW)
            if len(self._open) > _OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(file)
        return os.pread(descriptor, size, offset)


class _Builder:
    def __init__(self, db: apsw.Connection, known: set[str]) -> None:
        self._db = db
        self._known = known
        self._senders: dict[str, SlackSender] = {}
        self._seen: set[tuple[str | None, str | None, str | None]] = set()
        """The fields that decide on a message's sender, of senders that are already known."""
        self._found: list[tuple[object, ...]] = []
        self._moves: list[tuple[object, ...]] = []
        self._skipped: dict[tuple[str, str], list[Any]] = {}
        self._decoder = msgspec.json.Decoder(list[msgspec.Raw])
        self._head = msgspec.json.Decoder(_Head)
        self._files = 0

    def skip(self, kind: str, reason: str, sample: str) -> None:
        self._skipped.setdefault((kind, reason), [sample[:200], 0])[1] += 1

    def read(self, conversation: SlackConversation, path: Path, name: str) -> None:
        """Index one file."""
        if path.is_symlink() or path.stat().st_size > MAX_FILE:
            self.skip("files of messages", f"It's larger than {MAX_FILE >> 20} MiB.", name)
            return
        content = path.read_bytes()
        if content.count(b",") > MAX_ELEMENTS:
            self.skip("files of messages", "It has too many elements.", name)
            return
        try:
            elements = values.decoded(content, self._decoder)
        except ValueError:
            self.skip("files of messages", "It isn't a list of messages in JSON.", name)
            return
        self._files += 1
        self._db.execute("INSERT INTO files (id, path) VALUES (?, ?)", (self._files, name))
        at = content.index(b"[") + 1 if elements else 0
        for item in elements:
            raw = bytes(item)
            gap = _GAP.match(content, at)
            at = gap.end() if gap is not None else at
            self._message(conversation, raw, at, name)
            at += len(raw)
        links = {(match[1].decode(), int(match[2])) for match in _LINK.finditer(content)}
        self._db.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", sorted(links))
        self._write()

    def _message(self, conversation: SlackConversation, raw: bytes, offset: int, name: str) -> None:
        try:
            head = values.decoded(raw, self._head)
        except ValueError:
            self.skip("messages", "It isn't a valid JSON object.", name)
            return
        at = values.microseconds(head.ts)
        if not at:
            self.skip("messages", "It has no valid time.", name)
            return
        if len(raw) > MAX_MESSAGE:
            self.skip("messages", f"It's larger than {MAX_MESSAGE >> 20} MiB.", name)
            return
        subtype = head.subtype if isinstance(head.subtype, str) else ""
        reason = SKIPPED.get(subtype)
        if reason is not None:
            self.skip("messages", reason, f"{conversation.name}: {subtype}")
        is_move = subtype in JOINS | LEAVES
        if is_move and isinstance(head.user, str):
            self._moves.append((conversation.number, head.user, at, subtype in LEAVES))
        if reason is not None and not is_move:
            return
        thread = values.microseconds(head.thread_ts) or None
        kind = 1 if is_move else 0
        place = (self._files, offset, len(raw))
        self._found.append((conversation.number, at, kind, thread, *place))
        if kind == 0:
            self._add_sender(head)

    def _add_sender(self, head: _Head) -> None:
        """Keep the message's sender if the export has no record of them."""
        names = (head.user, head.bot_id, head.username)
        is_usual = head.room is None and all(
            name is None or (isinstance(name, str) and len(name) <= MAX_NAME) for name in names
        )
        if is_usual and names in self._seen:
            return
        sender = sender_of(msgspec.structs.asdict(head))
        if sender.key not in self._known and len(self._senders) < MAX_SENDERS:
            self._senders.setdefault(sender.key, sender)
        if is_usual and len(self._seen) < MAX_SENDERS:
            self._seen.add(names)

    def _write(self) -> None:
        before = self._db.total_changes()
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT OR IGNORE INTO found VALUES (?, ?, ?, ?, ?, ?, ?)", self._found
        )
        twice = len(self._found) - (self._db.total_changes() - before)
        self._db.executemany("INSERT INTO moves VALUES (?, ?, ?, ?)", self._moves)
        self._db.execute("COMMIT")
        if twice:
            key = ("messages", "The export has it twice.")
            self._skipped.setdefault(key, ["", 0])[1] += twice
        self._found.clear()
        self._moves.clear()

    def end(self) -> None:
        self._db.executemany(
            "INSERT INTO senders VALUES (?, ?, ?, ?)",
            [
                (sender.key, sender.name, sender.is_bot, sender.picture)
                for sender in self._senders.values()
            ],
        )
        self._db.executemany(
            "INSERT INTO skipped VALUES (?, ?, ?, ?)",
            [(*key, *results) for key, results in self._skipped.items()],
        )


def _day_files(directory: Path) -> list[Path]:
    with contextlib.suppress(NotADirectoryError, FileNotFoundError):
        return sorted(
            path
            for path in directory.iterdir()
            if path.suffix == ".json" and path.name != "canvas_in_the_conversation.json"
        )
    return []


_TABLES: Final = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT);
CREATE TABLE found (
    conversation INTEGER, at INTEGER, kind INTEGER, thread INTEGER,
    file INTEGER, offset INTEGER, size INTEGER, PRIMARY KEY (conversation, at)
) WITHOUT ROWID;
CREATE TABLE moves (conversation INTEGER, user TEXT, at INTEGER, leaves INTEGER);
CREATE TABLE links (conversation TEXT, at INTEGER, PRIMARY KEY (conversation, at)) WITHOUT ROWID;
CREATE TABLE conversations (number INTEGER PRIMARY KEY, id TEXT, is_direct INTEGER);
CREATE TABLE senders (key TEXT PRIMARY KEY, name TEXT, is_bot INTEGER, picture TEXT);
CREATE TABLE skipped (kind TEXT, reason TEXT, sample TEXT, number INTEGER);
CREATE TABLE threads (
    conversation INTEGER, at INTEGER, first INTEGER, name TEXT, PRIMARY KEY (conversation, at)
) WITHOUT ROWID;
CREATE TABLE messages (
    key INTEGER PRIMARY KEY, conversation INTEGER, at INTEGER, kind INTEGER, thread INTEGER,
    file INTEGER, offset INTEGER, size INTEGER
);
"""
_SORTED: Final = """
INSERT INTO messages (conversation, at, kind, thread, file, offset, size)
    SELECT conversation, at, kind, thread, file, offset, size FROM found
    ORDER BY at, conversation;
DROP TABLE found;
CREATE INDEX messages_by_place ON messages (conversation, at);
INSERT INTO threads (conversation, at, first)
    SELECT conversation, thread, min(at) FROM messages
    WHERE thread IS NOT NULL AND thread <> at AND kind = 0
        AND conversation IN (SELECT number FROM conversations WHERE NOT is_direct)
    GROUP BY conversation, thread;
UPDATE threads SET first = at WHERE EXISTS (
    SELECT 1 FROM messages AS m
    WHERE m.conversation = threads.conversation AND m.at = threads.at AND m.kind = 0
);
"""
_THREADS: Final = """
SELECT t.conversation, t.at, m.file, m.offset, m.size
FROM threads AS t JOIN messages AS m ON m.conversation = t.conversation AND m.at = t.first
WHERE (t.conversation, t.at) > (?, ?) ORDER BY t.conversation, t.at LIMIT ?
"""
_READ: Final = """
SELECT m.key, m.at, m.conversation, m.file, m.offset, m.size, t.name, t.at,
    EXISTS (
        SELECT 1 FROM links AS l JOIN conversations AS c ON c.id = l.conversation
        WHERE c.number = m.conversation AND l.at = m.at
    )
FROM messages AS m LEFT JOIN threads AS t
    ON t.conversation = m.conversation AND t.at = coalesce(m.thread, m.at)
WHERE m.key > ? AND m.kind = 0 ORDER BY m.key LIMIT ?
"""
