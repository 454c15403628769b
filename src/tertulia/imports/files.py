"""Storing a source's files: avatars, emoji, logos, and files that messages link."""

import asyncio
import re
import shutil
from collections.abc import Awaitable, Sequence
from typing import BinaryIO, Final, TypeVar

from tertulia.domain.messages import attachments
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.preparation import SAME_KEY
from tertulia.imports.progress import ImportRefused, read_from
from tertulia.imports.records import SourceAttachment, SourceEmoji, SourceFile, SourceUser
from tertulia.imports.report import ImportReport
from tertulia.imports.source import FileUnavailable, Source, Survey
from tertulia.imports.values import plausible, storable
from tertulia.model.attachments import Attachment, key_in
from tertulia.model.errors import BadImage
from tertulia.pictures import BadPicture
from tertulia.service.files import pictures
from tertulia.service.files.uploads import image_info
from tertulia.state.state import State
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.uploads import UploadDraft, UploadStore

MAX_PICTURE: Final = 32 * 1024 * 1024
"""Largest avatar, emoji, or logo, in bytes."""
LEAST_FREE: Final = 512 * 1024 * 1024
"""Free disk space that an import leaves, in bytes."""
_COPIED: Final = 1024 * 1024
_PATH: Final = re.compile(r"[0-9]{1,10}/[0-9a-zA-Z]{1,10}/[0-9a-zA-Z_-]{1,100}/[^/\0]{1,255}")
T = TypeVar("T")


class SourceFiles:
    """Stores files. Files that can't be stored are added to the report."""

    def __init__(
        self,
        source: Source,
        files: Files,
        disk: DiskFiles,
        ids: Identifiers,
        report: ImportReport,
    ) -> None:
        self._source = source
        self._files = files
        self._disk = disk
        self._uploads = UploadStore(files, disk)
        self._is_last_opened = asyncio.Event()
        self._is_last_opened.set()
        self._ids = ids
        self._report = report

    def require_room(self, survey: Survey) -> None:
        """Raise ImportRefused if the disk doesn't have enough room for the files."""
        if self._files is not self._disk:
            return
        place = self._disk.root
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free
        if survey.file_bytes > free - LEAST_FREE:
            raise ImportRefused(
                f"The export's files need {survey.file_bytes >> 20:,} MiB, and {LEAST_FREE >> 20}"
                f" MiB must stay free, but the disk of the data directory has only {free >> 20:,}"
                " MiB left. Make room, or store files in S3."
            )

    async def avatars(self, users: Sequence[SourceUser]) -> dict[int, str]:
        """Store these people's avatars. Return the names of the files by user ID."""
        avatars: dict[int, str] = {}
        for user in users:
            user_id = self._ids.find("user", user.key)
            if user.avatar is None or user_id is None:
                continue
            content = await self._picture(user.avatar, "avatars")
            if content is not None:
                storing = pictures.keep_scaled_avatar(self._files, content)
                name = await self._kept(storing, "avatars", user.full_name)
                if name:
                    avatars[user_id] = name
        return avatars

    async def emoji(self, emoji: SourceEmoji) -> tuple[str, str] | None:
        """Store an emoji's picture. Return the names of the file and its still image."""
        content = await self._picture(emoji.file, "custom emoji")
        if content is None:
            return None
        storing = pictures.keep_scaled_emoji(self._files, content)
        return await self._kept(storing, "custom emoji", emoji.name)

    async def realm_picture(self, name: str, file: SourceFile) -> str | None:
        """Store a picture of the organization. Return its path."""
        content = await self._picture(file, "logos")
        if content is None:
            return None
        storing = pictures.keep_scaled_realm_picture(self._files, name, content)
        return await self._kept(storing, "logos", name)

    async def _kept(self, storing: Awaitable[T], kind: str, sample: str) -> T | None:
        try:
            return await storing
        except (BadImage, BadPicture):
            self._report.skip(kind, "The picture can't be read.", sample)
            return None

    async def _picture(self, file: SourceFile, kind: str) -> bytes | None:
        def read() -> bytes | None:
            try:
                with self._opened(file) as stream:
                    content = stream.read(MAX_PICTURE + 1)
            except FileNotFoundError as error:
                self._report.skip(kind, reason_of(error), file.place)
                return None
            if len(content) > MAX_PICTURE:
                self._report.skip(kind, "The file is too large.", file.place)
                return None
            return content

        return await asyncio.to_thread(read)

    def _opened(self, file: SourceFile) -> BinaryIO:
        return read_from(lambda: self._source.open(file.place))

    async def attachment(
        self, source: SourceAttachment, state: State, now: int, report: ImportReport
    ) -> Attachment | None:
        """Implement `AttachmentStore.attachment`."""
        user_id = owner_of(source, self._ids, state, report)
        if user_id is None:
            return None
        draft = self._uploads.begin()
        try:
            size = await self._copied(source.file, draft)
            if isinstance(size, str):
                report.skip("files", size, source.file.name)
                return None
            name = attachments.display_name(storable(source.file.name))
            media_type = attachments.media_type(source.file.media_type, name)
            picture = await image_info(draft.arriving.path, media_type, name)
            place = self._uploads.final_path(source.path)
            if self._files.is_here:  # If the import is killed, no part of a copy stays.
                await self._uploads.keep(draft.arriving, place)
            else:
                await self._files.put_from(place, draft.arriving.path)
        finally:
            draft.discard()
        return Attachment(
            id=source.key if isinstance(source.key, int) else 0,
            user_id=user_id,
            name=name,
            path=source.path,
            size=size,
            media_type=media_type,
            created_at=plausible(source.created_at, now),
            picture=picture,
        )

    async def _copied(self, file: SourceFile, draft: UploadDraft) -> int | str:
        """Copy a file. Return its size in bytes, or the reason why it isn't available."""
        loop = asyncio.get_running_loop()
        # Files are opened in the order of the calls, because sources fetch them ahead.
        previous, is_opened = self._is_last_opened, asyncio.Event()
        self._is_last_opened = is_opened

        def copy() -> int | str:
            try:
                stream = self._opened(file)
            except FileNotFoundError as error:
                return reason_of(error)
            with stream:
                loop.call_soon_threadsafe(is_opened.set)
                shutil.copyfileobj(stream, draft.file, _COPIED)
            return draft.finish()

        try:
            await previous.wait()
            return await asyncio.to_thread(copy)
        finally:
            is_opened.set()


def owner_of(
    source: SourceAttachment, ids: Identifiers, state: State, report: ImportReport
) -> int | None:
    """Return the owner of a file, or None if the file can't be imported or was imported before."""
    user_id = ids.find("user", source.owner)
    if user_id is None:
        report.skip("files", "The owner isn't in the export.", source.file.name)
        return None
    if not _PATH.fullmatch(source.path) or ".." in source.path.split("/"):
        report.skip("files", "The path isn't valid.", source.path)
        return None
    known = state.uploads.with_key(key_in(source.path))
    if known is None:
        return user_id
    if known.path != source.path:
        report.skip("files", SAME_KEY, source.path)
    return None


def reason_of(error: FileNotFoundError) -> str:
    """Return why a file of the source isn't available."""
    return str(error) if isinstance(error, FileUnavailable) else "The file is missing."
