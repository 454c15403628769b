"""Importing the messages of a source, the longest part of an import."""

import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final

from tertulia.imports.channels import ChannelChanges, memberships
from tertulia.imports.commits import CHANGES_AT_ONCE, ImportCommits
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.messages import MessageWriter, Written
from tertulia.imports.preparation import Preparation, PreparedBatch
from tertulia.imports.progress import Expired, Progress
from tertulia.imports.read_state import ImportedReads, ids_in, runs_of
from tertulia.imports.records import SourceMessage, SourceOrganization
from tertulia.log.log import Log
from tertulia.store.notes import Note

MESSAGES_AT_ONCE: Final = 500
READ_CHANGES_AT_ONCE: Final = 20
READ_AT_ONCE: Final = 20_000
"""Messages whose read state is written together."""


class MessageImport:
    """Writes the messages, or what is left of them."""

    def __init__(
        self,
        log: Log,
        commits: ImportCommits,
        progress: Progress,
        ids: Identifiers,
        channels: ChannelChanges,
        organization: SourceOrganization,
        linked: dict[str, str],
    ) -> None:
        """`linked` are the URLs of messages that may be linked, as for `MessageWriter`."""
        self._commits = commits
        self._progress = progress
        self._ids = ids
        _, self._plan = memberships(organization.subscriptions)
        self._writer = MessageWriter(
            ids,
            channels,
            self._plan,
            progress.report,
            Expired(organization, log.clock(), progress.report),
            linked,
            keep_ids=progress.keep_ids,
        )
        self._read = ImportedReads()

    async def run(self, preparation: Preparation) -> None:
        """Write everything that is prepared. Raises SourceError."""
        progress = self._progress
        progress.resumed_at, progress.resumed_messages = time.time(), progress.messages
        known = ids_in(progress.unread_ids)
        batches = preparation.batches(progress.read_position, progress.position)
        async with aclosing(batches):
            async for batch in batches:
                if batch.prepared:
                    await self._write(batch)
                else:  # Only its read state is missing.
                    messages = batch.messages
                    self._add_read(messages, islice(known, len(messages)))
        await self._write_read_state()
        await self._apply(len(self._plan))

    async def _apply(self, until: int) -> None:
        """Apply the memberships up to that number, after the newest message."""
        progress = self._progress
        while progress.applied < until:
            most = min(until - progress.applied, self._commits.pace.most(CHANGES_AT_ONCE))
            notes: list[Note] = []

            def noted(applied: int, notes: list[Note] = notes) -> None:
                progress.applied = applied
                notes[:] = self._commits.noted()

            await self._commits.commit(
                self._writer.rest, progress.applied, most, noted, notes=notes
            )

    async def _write(self, batch: PreparedBatch) -> None:
        """Write the batch, in as many commits as others need to use the database in between."""
        rest: PreparedBatch | None = batch
        while rest is not None:
            piece, rest = rest.cut(self._commits.pace.most(MESSAGES_AT_ONCE))
            await self._write_piece(piece)
        if self._read.size >= READ_AT_ONCE:
            await self._write_read_state()

    async def _write_piece(self, piece: PreparedBatch) -> None:
        """Write messages in one commit, with the position after them."""
        progress = self._progress
        notes: list[Note] = []
        due = self._writer.due(progress.applied, piece.messages)
        if due - progress.applied > CHANGES_AT_ONCE:
            await self._apply(due)

        def noted(written: Written) -> list[Note]:
            progress.applied = written.applied
            progress.messages += len(piece.prepared)
            progress.position = piece.position
            progress.unread_ids += runs_of(written.ids)
            progress.report.add(piece.report)
            progress.report.count("messages", len(written.ids) - written.ids.count(0))
            return self._commits.noted()

        written = await self._commits.commit(
            self._writer.write, piece.prepared, progress.applied, notes, noted, notes=notes
        )
        self._add_read(piece.messages, written.ids)

    def _add_read(self, messages: Sequence[SourceMessage], ids: Iterable[int]) -> None:
        for one, message_id in zip(messages, ids, strict=True):
            if message_id:
                self._read.add(message_id, self._ids.several("user", one.unread_by))

    async def _write_read_state(self) -> None:
        changes = self._read.changes(self._ids.all("user"))
        written = 0
        for some in self._commits.chunks(changes, READ_CHANGES_AT_ONCE):
            written += len(some)
            if written == len(changes):
                self._progress.read_position = self._progress.position
                self._progress.unread_ids = []
            await self._commits.submit(some)
        self._read.clear()
