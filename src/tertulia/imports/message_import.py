"""Importing the messages of a source, the longest part of an import."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final

from tertulia.imports.channels import memberships
from tertulia.imports.commits import CHANGE_BATCH, ImportCommits
from tertulia.imports.context import ImportContext
from tertulia.imports.messages import MessageWriter, Written
from tertulia.imports.preparation import Preparation, PreparedBatch
from tertulia.imports.progress import Progress
from tertulia.imports.read_state import ImportedReads, ids_in, runs_of
from tertulia.imports.records import SourceMessage
from tertulia.imports.report import ImportReport
from tertulia.log.health import described
from tertulia.store.notes import Note

logger = logging.getLogger("tertulia.imports")

MESSAGE_BATCH: Final = 500
"""The most messages in a commit, if the organization existed before the import."""
FOUNDING_FACTOR: Final = 2
"""How many times as many messages a commit has while the import founds the organization, where it
rarely makes others wait. Messages of one commit share the pages that it writes."""
READ_CHANGE_BATCH: Final = 20
READ_STATE_BATCH: Final = 20_000
"""Messages whose read state is written together."""


class MessageImport:
    """Writes the messages that aren't written yet."""

    def __init__(
        self,
        commits: ImportCommits,
        progress: Progress,
        context: ImportContext,
        linked: dict[str, str],
    ) -> None:
        """`linked` are the URLs of messages that may be linked, as for `MessageWriter`."""
        self._commits = commits
        self._progress = progress
        self._ids = context.ids
        _, self._plan = memberships(context.source.subscriptions)
        self._writer = MessageWriter(context, self._plan, linked, keep_ids=progress.keep_ids)
        self._read = ImportedReads()
        self._commit: asyncio.Task[Written] | None = None
        """The commit of messages that may not be on disk yet."""

    async def run(self, preparation: Preparation) -> None:
        """Write all prepared messages. The source's remarks after the last one are added to the
        progress, but not committed: that would count them again if the import is interrupted before
        its next step. Raises SourceError."""
        progress = self._progress
        progress.resume(time.time())
        known = ids_in(progress.unread_ids)
        batches = preparation.batches(progress.read_position, progress.position)
        try:
            async with aclosing(batches):
                async for batch in batches:
                    if batch.prepared:
                        await self._write(batch)
                    else:  # Only the read state is missing.
                        messages = batch.messages
                        self._add_read(messages, islice(known, len(messages)))
            await self._settle()
        except Exception as error:
            await self._settle_after(error)
            raise
        finally:
            if self._commit is not None:
                self._commit.cancel()
                await asyncio.gather(self._commit, return_exceptions=True)
        await self._write_read_state()
        await self._apply(len(self._plan))
        progress.report.add(preparation.noticed)

    async def _settle(self) -> None:
        """Wait until all messages so far are on disk."""
        commit, self._commit = self._commit, None
        if commit is not None:
            await commit

    async def _settle_after(self, error: Exception) -> None:
        """Finish the commit in progress after an error. If that fails, too, raise its error, which
        may be the cause, such as a full disk. If it isn't, the next attempt has this one again."""
        try:
            await self._settle()
        except Exception:  # Raised again below. Only one error can be, so the other is logged.
            logger.warning("the import also stopped for another reason: %s", described(error))
            raise

    async def _apply(self, until: int) -> None:
        """Apply the first `until` memberships, after the newest message."""
        progress = self._progress
        while progress.applied < until:
            most = min(until - progress.applied, self._commits.pace.most(CHANGE_BATCH))
            notes: list[Note] = []

            def noted(applied: int, report: ImportReport, notes: list[Note] = notes) -> None:
                progress.applied = applied
                progress.report.add(report)
                notes[:] = self._commits.progress_notes()

            await self._commits.commit(
                self._writer.rest, progress.applied, most, noted, notes=notes
            )

    async def _write(self, batch: PreparedBatch) -> None:
        """Write the batch in one or more commits, so that other writers get their turn."""
        alone = MESSAGE_BATCH * FOUNDING_FACTOR if self._progress.is_new else MESSAGE_BATCH
        rest: PreparedBatch | None = batch
        while rest is not None:
            piece, rest = rest.cut(self._commits.pace.most(alone))
            await self._write_piece(piece)
        if self._read.size >= READ_STATE_BATCH:
            await self._settle()
            await self._write_read_state()

    async def _write_piece(self, piece: PreparedBatch) -> None:
        """Begin to write messages in one commit, with the position after them. The changes of the
        next messages are made while these are written to disk."""
        progress = self._progress
        notes: list[Note] = []
        due = self._writer.due(progress.applied, piece.messages)
        if due - progress.applied > CHANGE_BATCH:
            await self._settle()
            await self._apply(due)
        changes = self._writer.changes(self._commits.state, piece.prepared, progress.applied)
        await self._settle()
        ids: list[int] = []

        def noted(written: Written) -> list[Note]:
            progress.applied = written.applied
            progress.wrote(len(piece.prepared), time.time())
            progress.position = piece.position
            progress.unread_ids += runs_of(written.ids)
            progress.report.add(piece.report)
            progress.report.add(written.report)
            progress.report.count("messages", len(written.ids) - written.ids.count(0))
            ids[:] = written.ids
            return self._commits.progress_notes()

        is_folded = asyncio.Event()
        self._commit = asyncio.create_task(
            self._commits.commit(
                self._writer.write, changes, notes, noted, notes=notes, on_folded=is_folded.set
            )
        )
        self._commit.add_done_callback(lambda _: is_folded.set())
        await is_folded.wait()
        if self._commit.done():
            await self._settle()
        self._add_read(piece.messages, ids)

    def _add_read(self, messages: Sequence[SourceMessage], ids: Iterable[int]) -> None:
        for message, message_id in zip(messages, ids, strict=True):
            if message_id:
                self._read.add(message_id, self._ids.several("user", message.unread_by))

    async def _write_read_state(self) -> None:
        changes = self._read.changes(self._ids.all("user"))
        written = 0
        for some in self._commits.chunks(changes, READ_CHANGE_BATCH):
            written += len(some)
            if written == len(changes):
                self._progress.read_position = self._progress.position
                self._progress.unread_ids = []
            await self._commits.submit(some)
        self._read.clear()
