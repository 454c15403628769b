"""Making messages equal to those on a running Zulip. They keep their IDs."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.domain import names
from tertulia.domain.channels import topics
from tertulia.domain.messages import (
    attachments,
    deleting,
    editing,
    move_effects,
    reactions,
    sending,
)
from tertulia.imports.rendering import RenderPool, Text
from tertulia.imports.report import ImportReport
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.live_organization import PreviousState
from tertulia.imports.zulip.rows import Row, clean, number, seconds, text
from tertulia.imports.zulip.server import ZulipServer
from tertulia.log.log import Log
from tertulia.markup.external_media import ExternalMedia
from tertulia.model import changes
from tertulia.model.attachments import Attachment, linked_paths
from tertulia.model.changes import AnyChange
from tertulia.model.channels import topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import (
    DirectConversation,
    Flag,
    Message,
    MessageEdit,
    Propagation,
    Rendered,
    Submessage,
    place_of,
)
from tertulia.model.ranges import ranges_of
from tertulia.model.reactions import EmojiKind, Reaction
from tertulia.service.files.uploads import image_info
from tertulia.service.messages import preconditions
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store import message_details, queries
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.notes import MessageHistoryImported, Note
from tertulia.store.uploads import UploadStore

EMPTY: Final = "(empty message)"
"""The content of messages that have none there: all messages here have some."""
MAX_EDITS: Final = 100
"""Of a new message: the newest ones."""
MAX_REACTIONS: Final = 10_000
"""Of one message."""
MAX_FILES: Final = 50
"""Of one message."""
TOLERANCE: Final = 300
"""Seconds that the two servers' clocks may differ."""
MOVED_AT_ONCE: Final = 50
_PATH: Final = re.compile(r"[0-9]{1,10}/[0-9a-zA-Z]{1,10}/[0-9a-zA-Z_-]{1,100}/[^/\0]{1,255}")
_FLAGS: Final = {
    "starred": Flag.STARRED,
    "collapsed": Flag.COLLAPSED,
    "mentioned": Flag.MENTIONED,
    "stream_wildcard_mentioned": Flag.CHANNEL_WILDCARD_MENTIONED,
    "topic_wildcard_mentioned": Flag.TOPIC_WILDCARD_MENTIONED,
    "has_alert_word": Flag.HAS_ALERT_WORD,
}
_KINDS: Final = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
}
Progress = Callable[[], Sequence[Note]]
"""Returns what is stored with a commit."""


class Touched(Struct, frozen=True, kw_only=True):
    """Messages that changed there, by their IDs."""

    edited: Collection[int] = frozenset()
    flagged: Collection[int] = frozenset()
    """Those whose flags the owner changed."""


class _Arriving(Struct, frozen=True, kw_only=True):
    """A message that isn't here yet."""

    row: Row
    content: str
    rendered: Rendered
    edits: Sequence[tuple[Row, str | None]]
    """Oldest first, with the content before."""
    before: Sequence[Rendered]
    """The rendered contents before, of the edits that have one."""
    files: Sequence[Attachment]


class LiveMessages:
    """Applies pages of messages."""

    def __init__(
        self,
        log: Log,
        server: ZulipServer,
        files: Files,
        disk: DiskFiles,
        site: str,
        report: ImportReport,
        processes: int | None = None,
        media: ExternalMedia | None = None,
    ) -> None:
        self._log = log
        self._server = server
        self._stored = files
        self._uploads = UploadStore(files, disk)
        self._site = site
        self._media = media
        self._report = report
        self._processes = processes
        self._links = LocalLinks(server.host)
        self._pool: RenderPool | None = None

    def close(self) -> None:
        """End the processes that render."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    async def equalize(
        self,
        there: PreviousState,
        rows: Sequence[Row],
        progress: Progress,
        touched: Touched = Touched(),  # noqa: B008 (immutable)
        *,
        is_history: bool = False,
    ) -> int:
        """Make these messages equal, ascending by ID. Return how many differed.

        `is_history` is for messages from before the move, which everyone counts as having read. The
        new ones are written in one commit, with the progress.
        """
        ids = [int(row["id"]) for row in rows]
        stored, details = await self._log.store.read(lambda c: _look(c, ids))
        last_id = self._log.state.last_message_id
        fresh = [row for row in rows if row["id"] > last_id]
        late = [row for row in rows if row["id"] not in stored and row["id"] <= last_id]
        if late:
            self._report.skip(
                "messages",
                "They aren't here, but newer ones are, so they can't keep their IDs.",
                late[0]["id"],
                len(late),
            )
        differing = 0
        moved: dict[tuple[int, str, int, str], list[int]] = defaultdict(list)
        for row in rows:
            message = stored.get(row["id"])
            if message is None:
                continue
            found = details.get(message.id, NO_DETAILS)
            small = list(self._small_changes(there, row, message, found))
            if message.id in touched.flagged:
                small += self._own_flags(there, row, message)
            if small:
                await self._submit(small)
            place = self._place_there(row)
            is_moved = message.channel_id is not None and place not in {
                None,
                (message.channel_id, message.topic),
            }
            if is_moved and place is not None and message.channel_id is not None:
                moved[message.channel_id, message.topic, *place].append(message.id)
            is_edited = self._is_edited(row, message, found, message.id in touched.edited)
            if is_edited:
                await self._edit(row, message.id)
            differing += bool(small) + is_moved + is_edited
        for (channel_id, topic, new_channel_id, new_topic), some in moved.items():
            for begin in range(0, len(some), MOVED_AT_ONCE):
                part = some[begin:][:MOVED_AT_ONCE]
                await self._move(there, channel_id, topic, new_channel_id, new_topic, part)
        if fresh:
            await self._add(there, fresh, progress, is_history=is_history)
        return differing + len(fresh) + len(late)

    async def delete(self, message_ids: Iterable[int]) -> int:
        """Delete those messages that are here. Return how many."""
        ids = list(message_ids)
        found = await self._log.store.read(lambda c: queries.messages(c, ids, texts=False))
        of_place: dict[Any, list[int]] = defaultdict(list)
        for message in found:
            of_place[message.conversation].append(message.id)
        for some in of_place.values():
            for begin in range(0, len(some), deleting.BATCH):
                doomed = await preconditions.to_delete(self._log, some[begin:][: deleting.BATCH])
                if doomed.messages:
                    await self._log.submit(None, _delete, doomed)
        return len(found)

    # Messages that are here

    def _place_there(self, row: Row) -> tuple[int, str] | None:
        channel_id = number(row, "stream_id")
        if channel_id is None or channel_id not in self._log.state.channels:
            return None
        return channel_id, self._topic(text(row, "subject"))

    def _topic(self, given: str) -> str:
        if given == "(no topic)":
            return ""
        try:
            return names.topic_name(given)
        except Refused:
            visible = "".join(one for one in given if one.isprintable() and names.is_visible(one))
            return names.topic_name(visible)

    def _content(self, given: Any) -> str:
        content = self._links.local(clean(given)) if isinstance(given, str) else ""
        try:
            return names.message_content(content)
        except Refused:
            return EMPTY

    def _is_edited(
        self, row: Row, message: Message, found: MessageDetails, is_touched: bool
    ) -> bool:
        if self._content(row.get("content")) == message.content:
            return False
        # Otherwise the import changed the text.
        here = max((edit.at for edit in found.edits if edit.changed_content), default=0)
        there = seconds(row, "last_edit_timestamp")
        return is_touched or (there > 0 and there > here - TOLERANCE)

    def _small_changes(
        self, there: PreviousState, row: Row, message: Message, found: MessageDetails
    ) -> Iterable[AnyChange]:
        place = place_of(message)
        known = {(one.user_id, one.kind, one.code): one for one in found.reactions}
        wanted = {
            (one.user_id, one.kind, one.code): one
            for one in self._reactions(there, row, message.id)
        }
        for key in known.keys() - wanted.keys():
            yield changes.ReactionRemoved(reaction=known[key], place=place)
        for key, reaction in wanted.items():
            if key not in known:
                yield changes.ReactionAdded(reaction=reaction, place=place)
        parts = self._parts(there, row, message.id)
        have = [(one.sender_id, one.content) for one in found.submessages]
        for part in parts:
            if (part.sender_id, part.content) in have:
                have.remove((part.sender_id, part.content))
            else:
                yield changes.SubmessageAdded(submessage=part, place=place)

    def _own_flags(self, there: PreviousState, row: Row, message: Message) -> Iterable[AnyChange]:
        given = row.get("flags")
        flags = set(given) if isinstance(given, list) else set()
        owner_id, ids = there.owner_id, (message.id,)
        if owner_id not in self._log.state.users:
            return
        if "read" in flags:
            yield changes.MessagesRead(user_id=owner_id, message_ids=ids)
        for name in ("starred", "collapsed"):
            yield changes.FlagsChanged(
                user_id=owner_id, message_ids=ids, flag=_FLAGS[name], added=name in flags
            )

    def _reactions(self, there: PreviousState, row: Row, message_id: int) -> Iterable[Reaction]:
        given = row.get("reactions")
        state = self._log.state
        for one in (given if isinstance(given, list) else ())[:MAX_REACTIONS]:
            if not isinstance(one, dict):
                continue
            user_id = there.user(number(one, "user_id"))
            kind, code = _KINDS.get(text(one, "reaction_type")), text(one, "emoji_code")[:100]
            if kind is None or user_id not in state.users or user_id is None:
                continue
            if kind is EmojiKind.CUSTOM and not (
                code.isdecimal() and len(code) < 16 and int(code) in state.custom_emoji
            ):
                self._report.skip(
                    "reactions", "The custom emoji isn't here.", text(one, "emoji_name")
                )
                continue
            yield Reaction(
                message_id=message_id,
                user_id=user_id,
                kind=kind,
                code=code,
                name=text(one, "emoji_name")[:100],
            )

    def _parts(self, there: PreviousState, row: Row, message_id: int) -> list[Submessage]:
        given = row.get("submessages")
        found = []
        for one in given if isinstance(given, list) else ():
            if not isinstance(one, dict):
                continue
            sender_id = there.user(number(one, "sender_id"))
            if sender_id in self._log.state.users and sender_id is not None:
                found.append(
                    Submessage(
                        id=0,
                        message_id=message_id,
                        sender_id=sender_id,
                        kind=text(one, "msg_type")[:100],
                        content=text(one, "content")[:100_000],
                    )
                )
        return found

    async def _submit(self, some: Sequence[AnyChange]) -> None:
        def verb(context: CommandContext) -> Decision[None]:
            return Decision(None, _numbered(context.state, some))

        await self._log.submit(None, verb)

    async def _edit(self, row: Row, message_id: int) -> None:
        found = await preconditions.to_edit(self._log, message_id)
        content = self._content(row.get("content"))
        files = await self._files(found.message.sender_id, content)
        (rendered,) = await self._rendered([(found.message.sender_id, content, None)])
        sender = self._log.state.users[found.message.sender_id]

        def verb(context: CommandContext) -> Decision[None]:
            return Decision(None, _edited(context, found, content, rendered, files))

        await self._log.submit(sender.id if sender.is_active else None, verb)

    async def _move(
        self,
        there: PreviousState,
        channel_id: int,
        topic: str,
        new_channel_id: int,
        new_topic: str,
        ids: Sequence[int],
    ) -> None:
        away = channel_id != new_channel_id
        try:
            found, excerpt = await preconditions.rows_to_move(self._log, ids[0], ids, away=away)
        except NoSuchMessage:
            return
        whole = frozenset(ids)

        def verb(context: CommandContext) -> Decision[None]:
            state = context.state
            move = TopicMove(
                id=0,
                user_id=there.owner_id,
                anchor_id=ids[0],
                channel_id=channel_id,
                topic=topic,
                new_channel_id=new_channel_id,
                new_topic=new_topic,
                propagation=Propagation.ONE,
                ranges=(),
                count=len(ids),
                is_whole=len(ids) == state.topics[channel_id, topic_key(topic)].message_count,
            )
            joins = (new_channel_id, topic_key(new_topic)) in state.topics
            lines = [line for line in excerpt.lines if line.id in whole]
            change = move_effects.moved_change(context, move, found, excerpt, lines)
            return Decision(None, [change, *topics.after_moving(context, change, joins=joins)])

        await self._log.submit(None, verb)

    # New messages

    async def _add(
        self, there: PreviousState, rows: Sequence[Row], progress: Progress, *, is_history: bool
    ) -> None:
        arriving = await self._prepared(there, rows)
        notes: list[Note] = []

        def verb(context: CommandContext) -> Decision[int]:
            adding = _Adding(self, there, context, is_history=is_history)
            made = adding.changes(arriving)
            notes[:] = [
                MessageHistoryImported(tuple(adding.edits), tuple(adding.reactions)),
                *progress(),
            ]
            return Decision(adding.count, made)

        count = await self._log.submit(None, verb, notes=notes)
        self._report.count("messages", count)
        if count < len(rows):
            self._report.skip(
                "messages",
                "Their sender or conversation isn't here.",
                rows[0]["id"],
                len(rows) - count,
            )

    async def _prepared(self, there: PreviousState, rows: Sequence[Row]) -> list[_Arriving]:
        texts: list[Text] = []
        contents, histories = [], []
        for row in rows:
            sender_id = there.user(number(row, "sender_id")) or 0
            contents.append(self._content(row.get("content")))
            given = row.get("edit_history")
            listed = [one for one in given if isinstance(one, dict)] if given else []
            history = [
                (one, self._content(one["prev_content"]) if "prev_content" in one else None)
                for one in reversed(listed[:MAX_EDITS])
            ]
            histories.append(history)
            texts.append((sender_id, contents[-1], None))
            texts += [(sender_id, before, None) for _, before in history if before is not None]
        rendered = iter(await self._rendered(texts))
        found = []
        for row, content, history in zip(rows, contents, histories, strict=True):
            html = next(rendered)
            before = [next(rendered) for _, one in history if one is not None]
            sender_id = there.user(number(row, "sender_id")) or 0
            files = await self._files(sender_id, content)
            found.append(
                _Arriving(
                    row=row,
                    content=content,
                    rendered=html,
                    edits=history,
                    before=before,
                    files=files,
                )
            )
        return found

    async def _rendered(self, texts: Sequence[Text]) -> list[Rendered]:
        if self._pool is None:
            self._pool = RenderPool(self._log.state, self._site, self._processes, self._media)
        return await self._pool.render(texts)

    async def _files(self, user_id: int, content: str) -> list[Attachment]:
        """Download the files that the content links and that aren't here. Return what describes
        them, without IDs."""
        state = self._log.state
        found: dict[str, Attachment] = {}
        if user_id not in state.users:
            return []
        for paths in linked_paths(content):
            if any(state.uploads.at_path(path) for path in paths) or len(found) >= MAX_FILES:
                continue
            path = next((one for one in paths if _PATH.fullmatch(one)), None)
            if path is None or ".." in path.split("/") or path in found:
                continue
            file = await self._file(user_id, path)
            if file is not None:
                found[path] = file
        return list(found.values())

    async def _file(self, user_id: int, path: str) -> Attachment | None:
        draft = self._uploads.begin()
        try:
            try:
                stream = await asyncio.to_thread(
                    self._server.file, f"/user_uploads/{quote(path, safe='/')}"
                )
            except FileNotFoundError:
                self._report.skip("files", "The file can't be downloaded.", path)
                return None
            size = await asyncio.to_thread(_copy, stream, draft.file)
            await asyncio.to_thread(draft.finish)
            name = attachments.display_name(path.rpartition("/")[2])
            media_type = attachments.media_type("", name)
            picture = await image_info(draft.arriving.place, media_type, name)
            await self._stored.put_from(self._uploads.place_of(path), draft.arriving.place)
        finally:
            draft.discard()
        self._report.count("files")
        return Attachment(
            id=0,
            user_id=user_id,
            name=name,
            path=path,
            size=size,
            media_type=media_type,
            created_at=int(self._log.clock()),
            picture=picture,
        )


class _Adding:
    """Makes the changes that write a page of new messages."""

    def __init__(
        self, live: LiveMessages, there: PreviousState, context: CommandContext, *, is_history: bool
    ) -> None:
        self._live = live
        self._there = there
        self._context = context
        self._state = context.state
        self._is_history = is_history
        self._begun: dict[tuple[int, ...], DirectConversation] = {}
        self._known_files: dict[str, int] = {}
        self._next_file = context.state.tables["attachments"].next_id()
        self.count = 0
        self.edits: list[MessageEdit] = []
        self.reactions: list[Reaction] = []

    def changes(self, arriving: Sequence[_Arriving]) -> list[AnyChange]:
        made: list[AnyChange] = []
        read, own_unread = BitMap(), BitMap()
        for one in arriving:
            sender_id = self._there.user(number(one.row, "sender_id"))
            place = self._place(one.row)
            if sender_id is None or sender_id not in self._state.users or place is None:
                continue
            made += self._sent(one, sender_id, *place)
            self.count += 1
            message_id = int(one.row["id"])
            read.add(message_id)
            if not self._is_read(one.row):
                own_unread.add(message_id)
        if self._is_history and read:
            made += self._all_read(read, own_unread)
        return _numbered(self._state, made)

    def _is_read(self, row: Row) -> bool:
        flags = row.get("flags")
        return isinstance(flags, list) and "read" in flags

    def _all_read(self, read: BitMap, own_unread: BitMap) -> Iterable[AnyChange]:
        first, last = read.min(), read.max()
        whole = BitMap(range(first, last + 1))
        owner_id = self._there.owner_id
        others = [one.id for one in self._state.users if one.id != owner_id]
        groups = [(whole, others[n : n + 500]) for n in range(0, len(others), 500)]
        if owner_id in self._state.users:
            groups.append((whole - own_unread, [owner_id]))
        for ids, users in groups:
            yield changes.ReadStateImported(
                first_id=first, last_id=last, groups=((ranges_of(ids, whole), tuple(users)),)
            )

    def _place(
        self, row: Row
    ) -> tuple[int | None, str, int | None, DirectConversation | None] | None:
        if row.get("type") in {"stream", "channel"}:
            found = self._live._place_there(row)
            return None if found is None else (*found, None, None)
        people = row.get("display_recipient")
        ids = {
            self._there.user(number(one, "id"))
            for one in (people if isinstance(people, list) else ())
            if isinstance(one, dict)
        }
        members = tuple(sorted(one for one in ids if one is not None))
        if not members or any(one not in self._state.users for one in members):
            return None
        known = self._state.directs.by_members.get(members)
        if known is not None:
            return None, "", known, None
        if members in self._begun:
            return None, "", self._begun[members].id, None
        begun = DirectConversation(
            id=self._state.directs.next_id() + len(self._begun), members=members
        )
        self._begun[members] = begun
        return None, "", begun.id, begun

    def _sent(
        self,
        one: _Arriving,
        sender_id: int,
        channel_id: int | None,
        topic: str,
        direct_id: int | None,
        begun: DirectConversation | None,
    ) -> Iterable[AnyChange]:
        row, rendered = one.row, one.rendered
        message_id = int(row["id"])
        linked = []
        for file in one.files:
            if file.path not in self._known_files:
                added = replace(file, id=self._next_file)
                self._known_files[file.path] = self._next_file
                self._next_file += 1
                yield changes.AttachmentAdded(attachment=added)
        for paths in linked_paths(one.content):
            for path in paths:
                known = self._state.uploads.at_path(path)
                file_id = self._known_files.get(path) or (known.id if known else None)
                if file_id is not None:
                    linked.append(file_id)
                    break
        message = Message(
            id=message_id,
            sender_id=sender_id,
            sent_at=seconds(row, "timestamp") or int(self._context.now),
            channel_id=channel_id,
            topic=topic,
            direct_id=direct_id,
            content=one.content,
            rendered=rendered.html,
            client=text(row, "client")[:100],
            has_link=rendered.has_link or bool(linked),
            has_image=rendered.has_image,
            has_attachment=bool(linked),
            is_me=rendered.is_me,
            mentions_all=rendered.mentions_all and channel_id is not None,
        )
        parts = self._live._parts(self._there, row, message_id)
        owner_id = self._there.owner_id
        is_live_read = not self._is_history and self._is_read(row) and owner_id in self._state.users
        yield changes.MessageSent(
            message=message,
            flags=self._flags(row, message, rendered, begun),
            read_by_sender=not self._is_history,
            read_by=(owner_id,) if is_live_read and owner_id != sender_id else (),
            widget=parts[0] if parts else None,
            new_conversation=begun,
            attachment_ids=tuple(dict.fromkeys(linked)),
            imported=True,
        )
        for part in parts[1:]:
            yield changes.SubmessageAdded(submessage=part, place=place_of(message))
        self._history(one, message_id)

    def _flags(
        self,
        row: Row,
        message: Message,
        rendered: Rendered,
        begun: DirectConversation | None,
    ) -> dict[int, Flag]:
        state = self._state
        if message.channel_id is not None:
            received = frozenset(state.subscribers(message.channel_id))
        else:
            conversation = begun or state.directs.get(message.direct_id)
            if conversation is None:  # It begins in this commit.
                conversation = next(
                    one for one in self._begun.values() if one.id == message.direct_id
                )
            received = frozenset(conversation.members)
        context = CommandContext(state, self._context.now, message.sender_id)
        direct = message.channel_id is None
        found = _mentions(context, rendered, received, direct=direct)
        for user_id in state.alerts.alerted_by(message.content) & received:
            found[user_id] = found.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD
        given = row.get("flags")
        own = Flag(0)
        for name in given if isinstance(given, list) else ():
            own |= _FLAGS.get(name, Flag(0)) if isinstance(name, str) else Flag(0)
        owner_id = self._there.owner_id
        if own and owner_id in state.users:
            found[owner_id] = found.get(owner_id, Flag(0)) | own
        return dict(sorted(found.items()))

    def _history(self, one: _Arriving, message_id: int) -> None:
        before = iter(one.before)
        for n, (edit, was) in enumerate(one.edits, 1):
            has_topic = "prev_topic" in edit
            self.edits.append(
                MessageEdit(
                    message_id=message_id,
                    seq=n,
                    at=seconds(edit, "timestamp"),
                    user_id=self._there.user(number(edit, "user_id")),
                    was_content=was,
                    was_rendered=None if was is None else next(before).html,
                    was_topic=self._live._topic(text(edit, "prev_topic")) if has_topic else None,
                    topic=self._live._topic(text(edit, "topic")) if has_topic else None,
                    was_channel_id=number(edit, "prev_stream"),
                    channel_id=number(edit, "stream"),
                )
            )
        self.reactions += self._live._reactions(self._there, one.row, message_id)


def _look(
    connection: Connection, ids: Sequence[int]
) -> tuple[dict[int, Message], dict[int, MessageDetails]]:
    stored = {one.id: one for one in queries.messages(connection, ids)}
    return stored, message_details.details_of(connection, list(stored))


def _numbered(state: State, made: Iterable[AnyChange]) -> list[AnyChange]:
    """Give the parts of widgets their IDs."""
    next_id = reactions.next_id(state)
    found: list[AnyChange] = []
    for one in made:
        if isinstance(one, changes.SubmessageAdded):
            one = replace(one, submessage=replace(one.submessage, id=next_id))
            next_id += 1
        elif isinstance(one, changes.MessageSent) and one.widget is not None:
            one = replace(one, widget=replace(one.widget, id=next_id))
            next_id += 1
        found.append(one)
    return found


def _mentions(
    context: CommandContext, rendered: Rendered, received: Collection[int], *, direct: bool
) -> dict[int, Flag]:
    try:
        return sending.mentions(context, rendered, frozenset(), received, direct=direct)
    except Refused:  # It was allowed when it was sent.
        return {one: Flag.MENTIONED for one in rendered.mentions if one in received}


def _edited(
    context: CommandContext,
    found: editing.LoadedMessage,
    content: str,
    rendered: Rendered,
    files: Sequence[Attachment],
) -> list[AnyChange]:
    state, message = context.state, found.message
    first = state.tables["attachments"].next_id()
    added = [replace(file, id=first + n) for n, file in enumerate(files)]
    own = {file.path: file.id for file in added}
    linked = set()
    for paths in linked_paths(content):
        for path in paths:
            known = state.uploads.at_path(path)
            if path in own or known is not None:
                linked.add(own.get(path) or (known.id if known else 0))
                break
    before = set(state.uploads.linked_by([message.id]))
    received = frozenset(editing.receivers(state, message))
    sender = CommandContext(state, context.now, message.sender_id)
    flags = _mentions(sender, rendered, received, direct=message.channel_id is None)
    for user_id in state.alerts.alerted_by(content) & received:
        flags[user_id] = flags.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD
    change = editing.edited(
        state,
        found,
        replace(
            message,
            content=content,
            rendered=rendered.html,
            has_link=rendered.has_link or bool(linked),
            has_image=rendered.has_image,
            has_attachment=bool(linked),
            is_me=rendered.is_me,
            mentions_all=rendered.mentions_all and message.channel_id is not None,
        ),
        flags,
    )
    change = replace(
        change,
        attached=tuple(sorted(linked - before)),
        detached=tuple(sorted(before - linked)),
    )
    return [*(changes.AttachmentAdded(attachment=one) for one in added), change]


def _delete(context: CommandContext, doomed: deleting.MessagesToDelete) -> Decision[None]:
    return Decision(None, deleting.deleted(context.state, doomed))


def _copy(source: BinaryIO, target: BinaryIO) -> int:
    size = 0
    with source:
        while part := source.read(1024 * 1024):
            target.write(part)
            size += len(part)
    return size
