"""Uploaded files on the disk: those whose attachment was removed are deleted, and uploads that a
crash interrupted are settled or thrown away."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from tertulia.domain.messages import attachments
from tertulia.jobs.supervisor import FailedItems, Job
from tertulia.log.log import Log
from tertulia.model.changes import AttachmentRemoved, Entry
from tertulia.store.partial_uploads import Partial, Partials
from tertulia.store.uploads import Uploads

logger = logging.getLogger("tertulia.files")

PERIOD_SECONDS: Final = 3600.0
LEFTOVER_SECONDS: Final = 86400
"""What arrived so long ago and is not in its place does not arrive any more."""


class FileCleanup:
    """Makes the files on the disk those of the log. Several nodes may do it at once."""

    def __init__(self, log: Log, uploads: Uploads) -> None:
        self._log = log
        self._uploads = uploads
        self._partials = Partials(uploads)
        self._set_aside = FailedItems()

    def job(self) -> Job:
        """Cleaning up whenever an attachment was removed, and every hour."""
        job = Job("uploaded files", self._round, set_aside=self._set_aside)

        def follow(entries: Sequence[Entry]) -> None:
            if any(isinstance(entry.change, AttachmentRemoved) for entry in entries):
                job.want()

        self._log.follow(follow)
        return job

    async def _round(self) -> float:
        await self.once()
        # Another node may have deleted what could not be deleted here.
        self._set_aside.keep_only(file.path for file in self._log.state.removed_files)
        again = self._set_aside.next_attempt()
        return PERIOD_SECONDS if again is None else min(again, PERIOD_SECONDS)

    async def once(self) -> None:
        """Do it now."""
        await self._delete_removed()
        await self._end_arrivals()

    async def _delete_removed(self) -> None:
        generation = self._log.generation
        removed = [
            f for f in self._log.state.removed_files if not self._set_aside.is_resting(f.path)
        ]
        if not removed:
            return
        # What a failing commit could bring back is not deleted.
        await self._log.settled(generation)
        deleted: list[int] = []
        for file in removed:
            try:
                await asyncio.to_thread(self._uploads.delete, file.path)
            except OSError as error:
                logger.warning("an uploaded file could not be deleted: %s", error)
                self._set_aside.failed(file.path, error)
            else:
                self._set_aside.done(file.path)
                deleted.append(file.id)
        if deleted:
            await self._log.submit(None, attachments.files_deleted, deleted)

    async def _end_arrivals(self) -> None:
        now = self._log.clock()
        partials = await asyncio.to_thread(lambda: list(self._partials.all()))
        keys = {partial.key for partial in partials}
        arrived = await asyncio.to_thread(
            lambda: list(self._uploads.arrived(now - LEFTOVER_SECONDS))
        )
        expired = [partial for partial in partials if partial.expires <= now]
        left = [key for key in arrived if key not in keys]
        if not left and not expired:
            return
        await self._log.catch_up()
        paths = {attachment.key: attachment.path for attachment in self._log.state.attachments}
        await asyncio.to_thread(self._end, left, expired, paths)

    def _end(self, left: list[str], expired: list[Partial], paths: dict[str, str]) -> None:
        for key in [*left, *(partial.key for partial in expired)]:
            if key in paths:
                self._uploads.settle(paths[key])
            else:
                self._uploads.forget(key)
        for partial in expired:
            self._partials.delete(partial)
