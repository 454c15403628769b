"""Making messages equal to those on a running Zulip. Messages keep their IDs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from tertulia.domain.channels import topics
from tertulia.domain.messages import (
    deleting,
    editing,
    move_effects,
)
from tertulia.imports.preparation import newest_edits
from tertulia.imports.rendering import RenderPool, Text
from tertulia.imports.report import ImportReport
from tertulia.imports.target import ImportTarget
from tertulia.imports.zulip.live.arriving import Arrivals, ArrivingMessage, mentions, numbered
from tertulia.imports.zulip.live.events import Touched
from tertulia.imports.zulip.live.files import LiveFiles
from tertulia.imports.zulip.live.previous_state import PreviousState
from tertulia.imports.zulip.live.rows import FLAGS, MessageRows
from tertulia.imports.zulip.live.server import ZulipServer
from tertulia.imports.zulip.rows import Row, number, seconds
from tertulia.model import changes
from tertulia.model.attachments import Attachment, linked_paths
from tertulia.model.changes import AnyChange
from tertulia.model.channels import topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import (
    Flag,
    Message,
    Propagation,
    Rendered,
    place_of,
)
from tertulia.service.messages import preconditions
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import message_details, queries
from tertulia.store.database import Connection
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.notes import MessageHistoryImported, Note

TOLERANCE: Final = 300
"""Allowed difference between the two servers' clocks, in seconds."""
MOVE_BATCH: Final = 50
Progress = Callable[[], Sequence[Note]]
"""Returns the notes that a commit stores."""


class LiveMessages:
    """Applies pages of messages."""

    def __init__(
        self,
        target: ImportTarget,
        server: ZulipServer,
        report: ImportReport,
        processes: int | None = None,
    ) -> None:
        self._target = target
        self._log = log = target.log
        self._files = LiveFiles(log, server, target.files, target.disk, report)
        self._rows = MessageRows(log, server.host, report)
        self._report = report
        self._processes = processes
        self._pool: RenderPool | None = None

    def close(self) -> None:
        """End the rendering processes."""
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
        """Make these messages, which ascend by ID, equal to those there. Return how many differed.

        `is_history` is for messages from before the move, which everyone counts as having read. New
        messages are written in one commit, with the progress.
        """
        ids = [int(row["id"]) for row in rows]
        stored, details = await self._log.store.read(lambda c: _look(c, ids))
        last_id = self._log.state.last_message_id
        fresh = [row for row in rows if row["id"] > last_id]
        late = [row for row in rows if row["id"] not in stored and row["id"] <= last_id]
        if late:
            self._report.skip(
                "messages",
                "They are missing here, but newer ones exist, so they can't keep their IDs.",
                late[0]["id"],
                len(late),
            )
        differing = 0
        moved: dict[tuple[int, str, int, str], list[int]] = defaultdict(list)
        for row in rows:
            message = stored.get(row["id"])
            if message is None:
                continue
            result = details.get(message.id, NO_DETAILS)
            small = list(self._small_changes(there, row, message, result))
            if message.id in touched.flagged:
                small += self._own_flags(there, row, message)
            if small:
                await self._submit(small)
            place = self._rows.place(row)
            is_moved = message.channel_id is not None and place not in {
                None,
                (message.channel_id, message.topic),
            }
            if is_moved and place is not None and message.channel_id is not None:
                moved[message.channel_id, message.topic, *place].append(message.id)
            is_edited = self._is_edited(row, message, result, message.id in touched.edited)
            if is_edited:
                await self._edit(row, message.id)
            differing += bool(small) + is_moved + is_edited
        for (channel_id, topic, new_channel_id, new_topic), some in moved.items():
            for begin in range(0, len(some), MOVE_BATCH):
                part = some[begin:][:MOVE_BATCH]
                await self._move(there, channel_id, topic, new_channel_id, new_topic, part)
        if fresh:
            await self._add(there, fresh, progress, is_history=is_history)
        return differing + len(fresh) + len(late)

    async def delete(self, message_ids: Iterable[int]) -> int:
        """Delete the messages that exist here. Return their number."""
        ids = list(message_ids)
        messages = await self._log.store.read(lambda c: queries.messages(c, ids, texts=False))
        of_place: dict[Any, list[int]] = defaultdict(list)
        for message in messages:
            of_place[message.conversation].append(message.id)
        for some in of_place.values():
            for begin in range(0, len(some), deleting.BATCH):
                doomed = await preconditions.to_delete(self._log, some[begin:][: deleting.BATCH])
                if doomed.messages:
                    await self._log.submit(None, _delete, doomed)
        return len(messages)

    # Messages that are here

    def _is_edited(
        self, row: Row, message: Message, details: MessageDetails, is_touched: bool
    ) -> bool:
        if self._rows.content(row.get("content")) == message.content:
            return False
        # Otherwise, the import changed the text.
        edited_at = max((edit.at for edit in details.edits if edit.changed_content), default=0)
        there = seconds(row, "last_edit_timestamp")
        return is_touched or (there > 0 and there > edited_at - TOLERANCE)

    def _small_changes(
        self, there: PreviousState, row: Row, message: Message, details: MessageDetails
    ) -> Iterable[AnyChange]:
        place = place_of(message)
        known = {
            (reaction.user_id, reaction.kind, reaction.code): reaction
            for reaction in details.reactions
        }
        wanted = {
            (reaction.user_id, reaction.kind, reaction.code): reaction
            for reaction in self._rows.reactions(there, row, message.id)
        }
        for key in known.keys() - wanted.keys():
            yield changes.ReactionRemoved(reaction=known[key], place=place)
        for key, reaction in wanted.items():
            if key not in known:
                yield changes.ReactionAdded(reaction=reaction, place=place)
        parts = self._rows.parts(there, row, message.id)
        have = [(submessage.sender_id, submessage.content) for submessage in details.submessages]
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
                user_id=owner_id, message_ids=ids, flag=FLAGS[name], added=name in flags
            )

    async def _submit(self, some: Sequence[AnyChange]) -> None:
        def verb(context: CommandContext) -> Decision[None]:
            return Decision(None, numbered(context.state, some))

        await self._log.submit(None, verb)

    async def _edit(self, row: Row, message_id: int) -> None:
        loaded = await preconditions.to_edit(self._log, message_id)
        content = self._rows.content(row.get("content"))
        files = await self._files.linked(loaded.message.sender_id, content)
        (rendered,) = await self._rendered([(loaded.message.sender_id, content, None)])
        sender = self._log.state.users[loaded.message.sender_id]

        def verb(context: CommandContext) -> Decision[None]:
            return Decision(None, _edited(context, loaded, content, rendered, files))

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
            loaded, excerpt = await preconditions.rows_to_move(self._log, ids[0], ids, away=away)
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
            change = move_effects.move_change(context, move, loaded, excerpt, lines)
            return Decision(
                None, [change, *topics.moving_visibility_changes(context, change, joins=joins)]
            )

        await self._log.submit(None, verb)

    # New messages

    async def _add(
        self, there: PreviousState, rows: Sequence[Row], progress: Progress, *, is_history: bool
    ) -> None:
        arriving = await self._prepared(there, rows)
        notes: list[Note] = []

        def verb(context: CommandContext) -> Decision[int]:
            adding = Arrivals(self._rows, there, context, is_history=is_history)
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

    async def _prepared(self, there: PreviousState, rows: Sequence[Row]) -> list[ArrivingMessage]:
        texts: list[Text] = []
        contents, histories = [], []
        for row in rows:
            sender_id = there.user(number(row, "sender_id")) or 0
            contents.append(self._rows.content(row.get("content")))
            given = row.get("edit_history")
            listed = [value for value in given if isinstance(value, dict)] if given else []
            listed.reverse()  # The newest is first.
            history = [
                (
                    fields,
                    self._rows.content(fields["prev_content"])
                    if "prev_content" in fields
                    else None,
                )
                for fields in newest_edits(listed, row["id"], self._report)
            ]
            histories.append(history)
            texts.append((sender_id, contents[-1], None))
            texts += [(sender_id, before, None) for _, before in history if before is not None]
        rendered = iter(await self._rendered(texts))
        arriving_messages = []
        for row, content, history in zip(rows, contents, histories, strict=True):
            html = next(rendered)
            before = [next(rendered) for _, text in history if text is not None]
            sender_id = there.user(number(row, "sender_id")) or 0
            files = await self._files.linked(sender_id, content)
            arriving_messages.append(
                ArrivingMessage(
                    row=row,
                    content=content,
                    rendered=html,
                    edits=history,
                    before=before,
                    files=files,
                )
            )
        return arriving_messages

    async def _rendered(self, texts: Sequence[Text]) -> list[Rendered]:
        if self._pool is None:
            target = self._target
            self._pool = RenderPool(self._log.state, target.site, self._processes, target.media)
        return await self._pool.render(texts)


def _look(
    connection: Connection, ids: Sequence[int]
) -> tuple[dict[int, Message], dict[int, MessageDetails]]:
    stored = {message.id: message for message in queries.messages(connection, ids)}
    return stored, message_details.details_of(connection, list(stored))


def _edited(
    context: CommandContext,
    loaded: editing.LoadedMessage,
    content: str,
    rendered: Rendered,
    files: Sequence[Attachment],
) -> list[AnyChange]:
    state, message = context.state, loaded.message
    first = state.tables["attachments"].next_id()
    added = [replace(file, id=first + n) for n, file in enumerate(files)]
    file_ids = {file.path: file.id for file in added}
    linked = set()
    for paths in linked_paths(content):
        for path in paths:
            known = state.uploads.at_path(path)
            if path in file_ids or known is not None:
                linked.add(file_ids.get(path) or (known.id if known else 0))
                break
    before = set(state.uploads.linked_by([message.id]))
    received = frozenset(editing.receivers(state, message))
    sender = CommandContext(state, context.now, message.sender_id)
    flags = mentions(sender, rendered, received, direct=message.channel_id is None)
    for user_id in state.alerts.alerted_by(content) & received:
        flags[user_id] = flags.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD
    change = editing.edit_change(
        state,
        loaded,
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
    return [*(changes.AttachmentAdded(attachment=attachment) for attachment in added), change]


def _delete(context: CommandContext, doomed: deleting.MessagesToDelete) -> Decision[None]:
    return Decision(None, deleting.deletion_changes(context.state, doomed))
