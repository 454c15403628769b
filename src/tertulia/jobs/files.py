"""Jobs for files: deleting removed files and unused pictures, finishing interrupted uploads, and
checking the bucket."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from tertulia.domain.messages import attachments
from tertulia.jobs.supervisor import FailedItems, Job
from tertulia.log.log import Log
from tertulia.model.changes import AttachmentRemoved
from tertulia.service.files import pictures
from tertulia.service.node import Node
from tertulia.store.files import Files
from tertulia.store.partial_uploads import DiskPartialUploads, PartialUpload, PartialUploads
from tertulia.store.uploads import UploadStore

logger = logging.getLogger("tertulia.files")

PERIOD_SECONDS: Final = 3600.0
PROBE_SECONDS: Final = 60.0
LEFTOVER_SECONDS: Final = 86400
"""The number of seconds after which interrupted uploads are deleted."""


def file_store(files: Files) -> Job:
    """Return the job that checks that the bucket responds. If it doesn't, the job fails, and the
    server works without files."""

    async def look() -> float:
        await files.probe()
        return PROBE_SECONDS

    return Job("file store", look)


class FileCleanup:
    """Makes the stored files match the log. Several nodes can do this at the same time."""

    def __init__(self, log: Log, uploads: UploadStore, partials: PartialUploads) -> None:
        self._log = log
        self._uploads = uploads
        # Local uploads may be from before files were in a bucket.
        self._partials = [partials]
        if not isinstance(partials, DiskPartialUploads):
            self._partials.append(DiskPartialUploads(uploads))
        self._set_aside = FailedItems()

    def job(self) -> Job:
        """Return the job that cleans up whenever an attachment is removed, and every hour."""
        job = Job("uploaded files", self._round, set_aside=self._set_aside)
        job.wake_on(self._log, AttachmentRemoved)
        return job

    async def _round(self) -> float:
        await self.once()
        # Another node may have deleted it.
        self._set_aside.keep_only(file.path for file in self._log.state.removed_files)
        again = self._set_aside.next_attempt()
        return PERIOD_SECONDS if again is None else min(again, PERIOD_SECONDS)

    async def once(self) -> None:
        """Clean up now."""
        await self._delete_removed()
        await self._end_arrivals()

    async def _delete_removed(self) -> None:
        generation = self._log.durability.generation
        removed = [
            f for f in self._log.state.removed_files if not self._set_aside.is_resting(f.path)
        ]
        if not removed:
            return
        # A failing commit could bring back the attachment.
        await self._log.durability.settled(generation)
        deleted: list[int] = []
        for file in removed:
            try:
                await self._uploads.delete(file.path)
            except OSError as error:
                logger.warning("could not delete an uploaded file: %s", error)
                self._set_aside.failed(file.path, error)
            else:
                self._set_aside.done(file.path)
                deleted.append(file.id)
        if deleted:
            await self._log.submit(None, attachments.record_deleted_files, deleted)

    async def _end_arrivals(self) -> None:
        now = self._log.clock()
        begun = [(partial, key) for partial in self._partials for key in await partial.begun()]
        await self._finish(begun)
        keys: set[str] = set()
        expired: list[tuple[PartialUploads, PartialUpload]] = []
        for partials in self._partials:
            keys |= await partials.keys()
            expired += [
                (partials, partial_upload) for partial_upload in await partials.expired(now)
            ]
        left = await self._uploads.arrived(now - LEFTOVER_SECONDS) - keys
        if not left and not expired:
            return
        await self._log.catch_up()
        for key in [*sorted(left), *(partial_upload.key for _, partial_upload in expired)]:
            attachment = self._log.state.uploads.with_key(key)
            if attachment is not None:
                await self._uploads.settle(attachment.path)
            else:
                await self._uploads.forget(key)
        for partials, partial_upload in expired:
            await partials.delete(partial_upload)

    async def _finish(self, begun: Sequence[tuple[PartialUploads, tuple[int, str]]]) -> None:
        """Mark resumable uploads that are attachments as complete, in case the node was killed in
        between."""
        for partials, (user_id, key) in begun:
            attachment = self._log.state.uploads.with_key(key)
            if attachment is None:
                continue
            partial = await partials.load(user_id, key)
            if partial is not None and partial.path is None:
                await self._uploads.settle(attachment.path)
                whole = msgspec.structs.replace(partial, path=attachment.path, doubtful=None)
                await partials.finish(whole)


PICTURES_PERIOD_SECONDS: Final = 6 * 3600.0
YOUNG_SECONDS: Final = 3600.0
"""Pictures that are newer than this many seconds may not be in the log yet."""
_BATCH_SIZE: Final = 2000
"""The number of people per step of the event loop."""


class PictureCleanup:
    """Deletes unused pictures. Several nodes can do this at the same time."""

    def __init__(self, node: Node) -> None:
        self._log = node.log
        self._files = node.files

    def job(self) -> Job:
        """Return the job that cleans up every few hours."""

        async def look() -> float:
            await self.once()
            return PICTURES_PERIOD_SECONDS

        return Job("unused pictures", look)

    async def once(self) -> None:
        """Clean up now. Raise as `Files` and `Log.catch_up`."""
        before = self._log.clock() - YOUNG_SECONDS
        old = [
            stored.path
            for directory in (
                pictures.AVATAR_DIRECTORY,
                pictures.EMOJI_DIRECTORY,
                pictures.REALM_DIRECTORY,
            )
            async for stored in self._files.below(directory)
            if stored.modified < before
        ]
        if not old:
            return
        await self._log.catch_up()
        used = await self._used()
        unused = [path for path in old if path not in used]
        for path in unused:
            await self._files.delete(path)
        if unused:
            logger.info("deleted unused pictures", extra={"fields": {"count": len(unused)}})

    async def _used(self) -> set[str]:
        """Return the paths of all pictures in use."""
        state = self._log.state
        used = {picture.file for picture in pictures.realm_pictures_of(state.realm)}
        for emoji in state.custom_emoji:
            used.update(map(pictures.emoji_path, filter(None, (emoji.file, emoji.still))))
        for number, user in enumerate(list(state.users)):
            used.update(pictures.avatar_paths(user.avatar_file))
            if number % _BATCH_SIZE == 0:
                await asyncio.sleep(0)
        return used
