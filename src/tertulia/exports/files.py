"""The uploaded files that an export includes."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from msgspec import Struct

from tertulia.exports.archive import ExportArchive
from tertulia.exports.scope import ExportScope
from tertulia.model.attachments import Attachment
from tertulia.store import queries
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import INCOMING, Files
from tertulia.store.transfer import Progress
from tertulia.store.uploads import UploadStore

_BATCH_SIZE: Final = 500


class IncludedFile(Struct, frozen=True, kw_only=True):
    """An uploaded file, with its metadata in an export."""

    attachment: Attachment
    message_ids: Sequence[int]
    """The included messages that link the file."""
    channel_ids: frozenset[int]
    """The channels of these messages."""


def included_files(scope: ExportScope, connection: Connection) -> list[IncludedFile]:
    """Return the uploaded files that included messages link, and those of people who share their
    private data."""
    included_files = []
    attachments = sorted(scope.state.attachments, key=lambda attachment: attachment.id)
    for first in range(0, len(attachments), _BATCH_SIZE):
        some = attachments[first : first + _BATCH_SIZE]
        links = {
            attachment.id: scope.state.uploads.message_ids(attachment.id) for attachment in some
        }
        ids = sorted({message_id for linked in links.values() for message_id in linked})
        places = {
            message.id: message
            for message in queries.messages(connection, ids, texts=False)
            if scope.includes(message.id, message.channel_id, message.direct_id)
        }
        for attachment in some:
            messages = [places[number] for number in links[attachment.id] if number in places]
            if messages or scope.shares(attachment.user_id):
                channels = frozenset(message.channel_id or 0 for message in messages) - {0}
                included_files.append(
                    IncludedFile(
                        attachment=attachment,
                        message_ids=[message.id for message in messages],
                        channel_ids=channels,
                    )
                )
    return included_files


class UploadedFiles:
    """Writes uploaded files, and collects the missing ones."""

    def __init__(
        self,
        scope: ExportScope,
        connection: Connection,
        archive: ExportArchive,
        files: Files,
        disk: DiskFiles,
    ) -> None:
        self._archive = archive
        self._files = files
        self._disk = disk
        self.included = included_files(scope, connection)
        self.missing: list[str] = []
        """Files that the organization has records of, but that aren't stored."""

    async def write(
        self, directory: str, progress: Progress, *, closing: bool = False
    ) -> list[Attachment]:
        """Write the files below a directory. Return those that exist. Raises FilesUnavailable."""
        try:
            return [attachment async for attachment in self._written(directory, progress)]
        finally:
            if closing:
                await self._files.close()

    async def _written(self, directory: str, progress: Progress) -> AsyncIterator[Attachment]:
        uploads = UploadStore(self._files, self._disk)
        progress("files", 0, len(self.included))
        for number, included in enumerate(self.included, 1):
            attachment = included.attachment
            place = uploads.final_path(attachment.path)
            # A file that has just been uploaded may be moved to its place in the meantime.
            sources = ((self._files, place), (self._disk, f"{INCOMING}/{attachment.key}"))
            chunks = (files.chunks(path) for files, path in (*sources, sources[0]))
            if await self.add(f"{directory}/{attachment.path}", chunks) is None:
                self.missing.append(attachment.path)
            else:
                yield attachment
            progress("files", number, len(self.included))

    async def add_picture(self, name: str, place: str) -> int | None:
        """Add a stored picture, and return its size, or None if it's missing."""
        size = await self.add(name, (self._files.chunks(place),))
        if size is None:
            self.missing.append(place)
        return size

    async def add(self, name: str, sources: Iterable[AsyncIterator[bytes]]) -> int | None:
        """Add the file from the first source that has it, and return its size."""
        for chunks in sources:
            try:
                return await self._archive.add_stored(name, chunks)
            except FileNotFoundError:
                continue
        return None
