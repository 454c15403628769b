"""Downloading files that messages on a running Zulip link."""

import asyncio
import re
from typing import BinaryIO, Final
from urllib.parse import quote

from tertulia.domain.messages import (
    attachments,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.zulip.live.server import ZulipServer
from tertulia.log.log import Log
from tertulia.model.attachments import Attachment, linked_paths
from tertulia.service.files.uploads import image_info
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.uploads import UploadStore

MAX_FILES: Final = 50
"""The most files that are copied for one message."""
_PATH: Final = re.compile(r"[0-9]{1,10}/[0-9a-zA-Z]{1,10}/[0-9a-zA-Z_-]{1,100}/[^/\0]{1,255}")


class LiveFiles:
    """Downloads the files and stores them."""

    def __init__(
        self, log: Log, server: ZulipServer, files: Files, disk: DiskFiles, report: ImportReport
    ) -> None:
        self._log = log
        self._server = server
        self._stored = files
        self._uploads = UploadStore(files, disk)
        self._report = report

    async def linked(self, user_id: int, content: str) -> list[Attachment]:
        """Download the files that the content links and that aren't here yet. Return their records,
        without IDs."""
        state = self._log.state
        attachments: dict[str, Attachment] = {}
        if user_id not in state.users:
            return []
        for paths in linked_paths(content):
            if any(state.uploads.at_path(path) for path in paths) or len(attachments) >= MAX_FILES:
                continue
            path = next((path for path in paths if _PATH.fullmatch(path)), None)
            if path is None or ".." in path.split("/") or path in attachments:
                continue
            file = await self._file(user_id, path)
            if file is not None:
                attachments[path] = file
        return list(attachments.values())

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
            picture = await image_info(draft.arriving.path, media_type, name)
            await self._stored.put_from(self._uploads.final_path(path), draft.arriving.path)
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


def _copy(source: BinaryIO, target: BinaryIO) -> int:
    size = 0
    with source:
        while part := source.read(1024 * 1024):
            target.write(part)
            size += len(part)
    return size
