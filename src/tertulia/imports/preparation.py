"""Preparing batches of messages for writing: their files are stored, and their texts rendered."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import names
from tertulia.imports.files import SourceFiles
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.progress import read_batches
from tertulia.imports.records import SourceEdit, SourceMessage, SourceNames
from tertulia.imports.references import MessageLink, References
from tertulia.imports.rendering import RenderPool, Text
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, SourceError
from tertulia.imports.values import plausible, storable
from tertulia.log.log import Log
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.former_names import FormerNames
from tertulia.model.attachments import ADDRESS, Attachment
from tertulia.model.errors import Refused
from tertulia.model.messages import Rendered

MAX_EDITS: Final = 1000
"""Of a message: newer ones don't come along."""
TOGETHER: Final = 500
"""Messages that are prepared together."""
EMPTY: Final = "(empty message)"
"""The content of messages that had none: all messages here have some."""

T = TypeVar("T")


class PreparedMessage(Struct, frozen=True, kw_only=True):
    """A message whose files are stored and whose texts are rendered."""

    source: SourceMessage
    content: str
    sent_at: int
    edits: tuple[SourceEdit, ...]
    rendered: Rendered
    before: tuple[Rendered | None, ...] = ()
    """The rendered previous content of each edit."""
    files: tuple[Attachment, ...] = ()
    """Files that it brings along, with their IDs at the source (or 0), unless an earlier message
    does."""
    links: tuple[MessageLink, ...] = ()
    """Links in its content to other messages."""


class PreparedBatch(Struct, kw_only=True):
    """Consecutive batches of a source."""

    sources: list[MessageBatch]
    report: ImportReport
    """What was noticed about them."""
    prepared: list[PreparedMessage] = []
    """Empty if they're written already."""

    @property
    def messages(self) -> list[SourceMessage]:
        return [message for one in self.sources for message in one.messages]

    @property
    def position(self) -> str:
        """Where the source continues after them."""
        return self.sources[-1].position

    def cut(self, most: int) -> "tuple[PreparedBatch, PreparedBatch | None]":
        """Return the first batches, with up to that many messages but at least one batch, and the
        rest."""
        messages = number = 0
        for one in self.sources:
            if number and messages + len(one.messages) > most:
                break
            messages, number = messages + len(one.messages), number + 1
        if number == len(self.sources):
            return self, None
        first, prepared = self.sources[:number], self.prepared[:messages]
        return (
            PreparedBatch(sources=first, report=self.report, prepared=prepared),
            PreparedBatch(
                sources=self.sources[number:],
                report=ImportReport(),
                prepared=self.prepared[messages:],
            ),
        )


class Preparation:
    """Reads batches from a source, and prepares them: the next one while one is written."""

    def __init__(
        self,
        log: Log,
        source: Source,
        ids: Identifiers,
        files: SourceFiles,
        site: str,
        processes: int | None,
        media: ExternalMedia | None = None,
    ) -> None:
        self._state = log.state
        self._source = source
        self._ids = ids
        self._files = files
        self._now = int(log.clock())
        self._references = References(log.state, ids, secrets.token_hex(8))
        self._pool = RenderPool(log.state, site, processes, media)
        self._files_before: dict[str, Attachment] = {}
        self._files_now: dict[str, Attachment] = {}
        """Files of the previous batch, which may not be written yet, and of this one, by path."""

    def close(self) -> None:
        """End the processes that render."""
        self._pool.close()

    async def batches(self, after: str, written: str) -> AsyncGenerator[PreparedBatch]:
        """Yield the batches after the position. Those up to `written`, a later position, are
        unprepared. Raises SourceError."""
        async with (
            aclosing(_ahead(self._read(after, written))) as read,
            aclosing(_ahead(self._prepared(read, after != written, written))) as prepared,
        ):
            async for batch in prepared:
                yield batch

    async def _read(self, after: str, written: str) -> AsyncIterator[PreparedBatch]:
        report = ImportReport()
        batches = read_batches(self._source, after, report)
        failed: list[SourceError] = []

        def following() -> list[MessageBatch]:
            if failed:
                raise failed[0]
            found: list[MessageBatch] = []
            while sum(len(one.messages) for one in found) < TOGETHER:
                try:
                    one = next(batches, None)
                except SourceError as error:
                    if not found:
                        raise
                    failed.append(error)  # What was read before is written first.
                    break
                if one is None:
                    break
                found.append(one)
                if one.position == written:
                    break
            return found

        while True:
            reading = asyncio.ensure_future(asyncio.to_thread(following))
            try:
                found = await asyncio.shield(reading)
            except asyncio.CancelledError:
                await asyncio.wait([reading])  # The source must not be closed in the meantime.
                raise
            if not found:
                return
            yield PreparedBatch(sources=found, report=report.taken())

    async def _prepared(
        self, batches: AsyncIterator[PreparedBatch], is_written: bool, written: str
    ) -> AsyncIterator[PreparedBatch]:
        async for batch in batches:
            if is_written:
                is_written = batch.position != written
            else:
                await self._prepare(batch)
            yield batch

    async def _prepare(self, batch: PreparedBatch) -> None:
        """Render the texts and store the files."""
        self._files_before, self._files_now = self._files_now, {}
        texts: list[Text] = []
        contents: list[str] = []
        edits: list[tuple[SourceEdit, ...]] = []
        files: list[tuple[Attachment, ...]] = []
        links: list[list[MessageLink]] = []
        messages = batch.messages
        for one in messages:
            user_id = self._ids.find("user", one.sender) or 0
            original, stored = await self._attachments(one, batch.report)
            files.append(stored)
            links.append([])
            text = self._references.replaced(original, links[-1])
            contents.append(self._content(one, text, batch.report))
            edits.append(self._edits(one, batch.report))
            texts.append((user_id, contents[-1], self._names(one.names)))
            texts += [
                (user_id, edit.was_content, self._names(edit.was_names))
                for edit in edits[-1]
                if edit.was_content is not None
            ]
        rendered = iter(await self._pool.render(texts))
        for n, one in enumerate(messages):
            html = next(rendered)
            before = [None if edit.was_content is None else next(rendered) for edit in edits[n]]
            batch.prepared.append(
                PreparedMessage(
                    source=one,
                    content=contents[n],
                    sent_at=self._sent_at(one, batch.report),
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

    def _content(self, one: SourceMessage, text: str, report: ImportReport) -> str:
        try:
            content = names.message_content(storable(text))
        except Refused:
            report.change("messages", "The message was empty.", one.key)
            return EMPTY
        if len(content) < len(text.strip()):
            report.change(
                "messages", f"It was shortened to {names.MAX_MESSAGE:,} characters.", one.key
            )
        return content

    def _edits(self, one: SourceMessage, report: ImportReport) -> tuple[SourceEdit, ...]:
        if len(one.edits) > MAX_EDITS:
            report.skip("edits", f"The message has more than {MAX_EDITS:,}.", one.key)
        found = []
        for edit in one.edits[:MAX_EDITS]:
            content = edit.was_content
            if content is not None:
                # Links to messages in what it was before aren't worth looking up.
                links: list[MessageLink] = []
                content = self._references.replaced(content, links)
                for link in links:
                    content = link.replaced(content, None)
                content = storable(content)[: names.MAX_MESSAGE] or EMPTY
            found.append(replace(edit, at=plausible(edit.at, self._now), was_content=content))
        return tuple(found)

    def _sent_at(self, one: SourceMessage, report: ImportReport) -> int:
        at = plausible(one.sent_at, self._now)
        if at != one.sent_at:
            report.change("messages", "The time isn't possible, so it's the import's.", one.key)
        return at

    async def _attachments(
        self, one: SourceMessage, report: ImportReport
    ) -> tuple[str, tuple[Attachment, ...]]:
        """Store a message's files, unless an earlier attempt did. Return its content, which links
        the original URLs of files that aren't available, and what describes the files."""
        content, found = one.content, []
        for source in one.attachments:
            if self._state.uploads.at_path(source.path) is not None:
                continue
            recent = self._files_before.get(source.path) or self._files_now.get(source.path)
            if recent is not None:
                found.append(recent)
                continue
            file = await self._files.attachment(source, self._state, self._now, report)
            if file is not None:
                found.append(file)
                self._files_now[file.path] = file
            elif source.otherwise:
                content = content.replace(f"{ADDRESS}{source.path}", source.otherwise)
        return content, tuple(found)


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield the items. The next one is made while the consumer uses one."""

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
