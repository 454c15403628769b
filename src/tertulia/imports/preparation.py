"""Preparing batches of messages for writing: their files are stored, and their texts rendered."""

import asyncio
import secrets
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import names
from tertulia.imports.context import ImportContext
from tertulia.imports.progress import read_batches
from tertulia.imports.records import (
    Key,
    SourceAttachment,
    SourceEdit,
    SourceMessage,
    SourceNames,
)
from tertulia.imports.references import MessageLink, References
from tertulia.imports.rendering import Text
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, SourceError
from tertulia.imports.values import plausible, storable
from tertulia.markup.former_names import FormerNames
from tertulia.model.attachments import ADDRESS, Attachment, key_in
from tertulia.model.errors import Refused
from tertulia.model.messages import Rendered
from tertulia.state.state import State

MAX_EDITS: Final = 1000
"""The most edits of a message that are imported: the newest ones."""
TOGETHER: Final = 1000
"""Messages that are prepared together."""
BATCHES_TOGETHER: Final = 30
"""The most batches of the source that are prepared together. If messages are large, a batch of
`BATCH_BYTES` has only a few."""
FILES_TOGETHER: Final = 4
"""The most files that are stored at the same time, because each waits for the disk."""
SAME_KEY: Final = "Another file has the same key."
EMPTY: Final = "(empty message)"
"""The content of messages without content, because all messages here have some."""

T = TypeVar("T")


def newest_edits(edits: Sequence[T], key: Key, report: ImportReport) -> Sequence[T]:
    """Return the newest `MAX_EDITS` of a message's edits, which are oldest first, and report the
    others."""
    dropped = len(edits) - MAX_EDITS
    if dropped <= 0:
        return edits
    report.skip("edits", f"A message has more than {MAX_EDITS:,}.", key, dropped)
    return edits[dropped:]


class PreparedMessage(Struct, frozen=True, kw_only=True):
    """A message whose files are stored and whose texts are rendered."""

    source: SourceMessage
    content: str
    sent_at: int
    edits: tuple[SourceEdit, ...]
    rendered: Rendered
    before: tuple[Rendered | None, ...] = ()
    """The rendered previous contents, one for each edit."""
    files: tuple[Attachment, ...] = ()
    """New files that the message links, with their IDs at the source (or 0)."""
    links: tuple[MessageLink, ...] = ()
    """The links to other messages in its content."""


class PreparedBatch(Struct, kw_only=True):
    """Consecutive batches of a source."""

    sources: list[tuple[MessageBatch, ImportReport]]
    """Each with the remarks about its messages, which are stored when they're written."""
    prepared: list[PreparedMessage] = []
    """The prepared messages; empty if they're already written."""

    @property
    def messages(self) -> list[SourceMessage]:
        return [message for source, _ in self.sources for message in source.messages]

    @property
    def report(self) -> ImportReport:
        """Return the remarks about all messages."""
        result = ImportReport()
        for _, report in self.sources:
            result.add(report)
        return result

    @property
    def position(self) -> str:
        """Return the source's position after these batches."""
        return self.sources[-1][0].position

    def cut(self, most: int) -> "tuple[PreparedBatch, PreparedBatch | None]":
        """Return the first batches, with at most `most` messages but at least one batch, and the
        rest."""
        messages = number = 0
        for source, _ in self.sources:
            if number and messages + len(source.messages) > most:
                break
            messages, number = messages + len(source.messages), number + 1
        if number == len(self.sources):
            return self, None
        return (
            PreparedBatch(sources=self.sources[:number], prepared=self.prepared[:messages]),
            PreparedBatch(sources=self.sources[number:], prepared=self.prepared[messages:]),
        )


class _StoredBatch(Struct):
    """A batch whose files are stored."""

    batch: PreparedBatch
    stored: dict[str, Attachment | None] | None = None
    """The files that aren't in the organization yet, by path; None for those that aren't available.
    None for batches that are already written."""


class AttachmentStore(Protocol):
    """Stores files that messages link."""

    async def attachment(
        self, source: SourceAttachment, state: State, now: int, report: ImportReport
    ) -> Attachment | None:
        """Store a file, unless an earlier attempt did. Return its record, with its ID at the
        source, or 0. Return None if the file can't be stored, which is added to the report, or if
        it was imported before."""


class TextRenderer(Protocol):
    """Renders messages."""

    async def render(self, texts: Sequence[Text]) -> list[Rendered]:
        """Render the texts. No content raises an error."""


class Preparation:
    """Reads batches from a source, stores their files, and renders their texts. While one batch is
    written, the next one is rendered, and files of the one after that are stored."""

    def __init__(
        self, context: ImportContext, source: Source, files: AttachmentStore, renderer: TextRenderer
    ) -> None:
        self._current_state = context.current_state
        self._source = source
        self._ids = context.ids
        self._files = files
        self._now = context.now
        self._references = References(context.current_state, context.ids, secrets.token_hex(8))
        self._renderer = renderer
        self._recent: deque[dict[str, Attachment]] = deque(maxlen=2)
        """Files of the previous batches, which may not be written yet, by path."""
        self.noticed = ImportReport()
        """The source's remarks that don't belong to a batch yet. When `batches` has ended, these
        are the remarks after the last message. They have no position, so the source makes them
        again if an interrupted import continues at its end."""

    async def batches(self, after: str, written: str) -> AsyncGenerator[PreparedBatch]:
        """Yield the batches after the position. Batches up to the later position `written` aren't
        prepared. Raises SourceError."""
        async with (
            aclosing(_ahead(self._read(after, written))) as read,
            aclosing(_ahead(self._with_files(read, after != written, written))) as stored,
            aclosing(_ahead(self._prepared(stored))) as prepared,
        ):
            async for batch in prepared:
                yield batch

    async def _read(self, after: str, written: str) -> AsyncIterator[PreparedBatch]:
        batches = read_batches(self._source, after, self.noticed)
        failed: list[SourceError] = []

        def following() -> list[tuple[MessageBatch, ImportReport]]:
            if failed:
                raise failed[0]
            read: list[tuple[MessageBatch, ImportReport]] = []
            while (
                sum(len(batch.messages) for batch, _ in read) < TOGETHER
                and len(read) < BATCHES_TOGETHER
            ):
                try:
                    batch = next(batches, None)
                except SourceError as error:
                    if not read:
                        raise
                    failed.append(error)  # Earlier batches are written first.
                    break
                if batch is None:
                    break
                read.append((batch, self.noticed.taken()))
                if batch.position == written:
                    break
            return read

        while True:
            reading = asyncio.ensure_future(asyncio.to_thread(following))
            try:
                sources = await asyncio.shield(reading)
            except asyncio.CancelledError:
                await asyncio.wait([reading])  # The source must not be closed in the meantime.
                raise
            if not sources:
                return
            yield PreparedBatch(sources=sources)

    async def _with_files(
        self, batches: AsyncIterator[PreparedBatch], is_written: bool, written: str
    ) -> AsyncIterator[_StoredBatch]:
        async for batch in batches:
            if is_written:
                is_written = batch.position != written
                yield _StoredBatch(batch)
            else:
                yield _StoredBatch(batch, await self._stored(batch))

    async def _prepared(self, batches: AsyncIterator[_StoredBatch]) -> AsyncIterator[PreparedBatch]:
        async for some in batches:
            if some.stored is not None:
                await self._prepare(some.batch, some.stored)
            yield some.batch

    async def _stored(self, batch: PreparedBatch) -> dict[str, Attachment | None]:
        """Store the batch's files, unless an earlier attempt did."""
        # Remarks are added in the order of the messages, although files take different times.
        tries = [
            (source, ImportReport(), report)
            for batch_read, report in batch.sources
            for message in batch_read.messages
            for source in message.attachments
            if self._current_state().uploads.at_path(source.path) is None
        ]
        wanted: dict[str, list[tuple[SourceAttachment, ImportReport]]] = defaultdict(list)
        for source, noted, _ in tries:
            wanted[source.path].append((source, noted))
        stored: dict[str, Attachment | None] = {}
        for files in self._recent:
            stored |= {path: file for path, file in files.items() if path in wanted}
        paths = {key_in(path): path for files in self._recent for path in files}
        for path, sources in wanted.items():
            key = key_in(path)
            if key and paths.setdefault(key, path) != path:
                sources[0][1].skip("files", SAME_KEY, path)
                stored[path] = None
        waiting = deque(path for path in wanted if path not in stored)

        async def store() -> None:
            while waiting:
                path = waiting.popleft()
                try:
                    stored[path] = await self._first_of(wanted[path])
                except BaseException:
                    waiting.clear()  # The import ends, so the others aren't needed.
                    raise

        # An error is raised only when nothing is being stored anymore.
        results = await asyncio.gather(
            *(store() for _ in range(FILES_TOGETHER)), return_exceptions=True
        )
        for error in filter(None, results):
            raise error
        for _, noted, report in tries:
            report.add(noted)
        self._recent.append({path: file for path, file in stored.items() if file is not None})
        return stored

    async def _first_of(
        self, sources: Sequence[tuple[SourceAttachment, ImportReport]]
    ) -> Attachment | None:
        """Store the first file that is available. Each has its report."""
        for source, report in sources:
            file = await self._files.attachment(source, self._current_state(), self._now, report)
            if file is not None:
                return file
        return None

    async def _prepare(self, batch: PreparedBatch, stored: dict[str, Attachment | None]) -> None:
        """Render the texts."""
        texts: list[Text] = []
        contents: list[str] = []
        edits: list[tuple[SourceEdit, ...]] = []
        files: list[tuple[Attachment, ...]] = []
        links: list[list[MessageLink]] = []
        messages = batch.messages
        reports = [report for source, report in batch.sources for _ in source.messages]
        for message, report in zip(messages, reports, strict=True):
            user_id = self._ids.find("user", message.sender) or 0
            original, linked = self._attachments(message, stored)
            files.append(linked)
            links.append([])
            text = self._references.replaced(original, links[-1])
            contents.append(self._content(message, text, report))
            edits.append(self._edits(message, report))
            texts.append((user_id, contents[-1], self._names(message.names)))
            texts += [
                (user_id, edit.was_content, self._names(edit.was_names))
                for edit in edits[-1]
                if edit.was_content is not None
            ]
        rendered = iter(await self._renderer.render(texts))
        for n, message in enumerate(messages):
            html = next(rendered)
            before = [None if edit.was_content is None else next(rendered) for edit in edits[n]]
            batch.prepared.append(
                PreparedMessage(
                    source=message,
                    content=contents[n],
                    sent_at=self._sent_at(message, reports[n]),
                    edits=edits[n],
                    rendered=html,
                    before=tuple(before),
                    files=files[n],
                    links=tuple(links[n]),
                )
            )

    def _names(self, source: SourceNames | None) -> FormerNames | None:
        if source is None:
            return None
        users: dict[str, tuple[int, ...]] = {}
        for name, key in source.users:
            user_id = self._ids.find("user", key)
            if user_id is not None:
                users[name] = (*users.get(name, ()), user_id)
        groups = ((name, self._ids.find("group", key) or 0) for name, key in source.groups)
        channels = ((name, self._ids.find("channel", key)) for name, key in source.channels)
        return FormerNames(
            users=users,
            groups={name.casefold(): (number, name) for name, number in groups},
            channels={
                name.casefold(): (number, name) for name, number in channels if number is not None
            },
            emoji=frozenset(source.emoji),
        )

    def _content(self, message: SourceMessage, text: str, report: ImportReport) -> str:
        try:
            content = names.message_content(storable(text))
        except Refused:
            report.change("messages", "The message was empty.", message.key)
            return EMPTY
        if len(content) < len(text.strip()):
            report.change(
                "messages", f"It was shortened to {names.MAX_MESSAGE:,} characters.", message.key
            )
        return content

    def _edits(self, message: SourceMessage, report: ImportReport) -> tuple[SourceEdit, ...]:
        edits = []
        for edit in newest_edits(message.edits, message.key, report):
            content = edit.was_content
            if content is not None:
                # Links to messages in previous contents aren't worth resolving.
                links: list[MessageLink] = []
                content = self._references.replaced(content, links)
                for link in links:
                    content = link.replaced(content, None)
                content = storable(content)[: names.MAX_MESSAGE] or EMPTY
            edits.append(replace(edit, at=plausible(edit.at, self._now), was_content=content))
        return tuple(edits)

    def _sent_at(self, message: SourceMessage, report: ImportReport) -> int:
        at = plausible(message.sent_at, self._now)
        if at != message.sent_at:
            report.change(
                "messages", "The time is invalid, so the time of the import is used.", message.key
            )
        return at

    def _attachments(
        self, message: SourceMessage, stored: dict[str, Attachment | None]
    ) -> tuple[str, tuple[Attachment, ...]]:
        """Return a message's content, where files that aren't available are linked by their
        original URLs, and the records of its new files."""
        content, attachments = message.content, []
        for source in message.attachments:
            if source.path not in stored:
                continue
            file = stored[source.path]
            if file is not None:
                attachments.append(file)
            elif source.otherwise:
                content = content.replace(f"{ADDRESS}{source.path}", source.otherwise)
        return content, tuple(attachments)


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield the items, preparing the next one while the consumer uses one."""

    async def following() -> T | None:
        return await anext(items, None)

    task = asyncio.create_task(following())
    try:
        while (item := await task) is not None:
            task = asyncio.create_task(following())
            yield item
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
