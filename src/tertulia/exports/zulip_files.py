"""Uploaded files and pictures in Zulip's format: each directory with a `records.json`."""

import mimetypes
from typing import Any

from tertulia.exports.archive import ExportArchive, TableFile
from tertulia.exports.files import IncludedFile, UploadedFiles
from tertulia.exports.scope import ExportScope
from tertulia.exports.zulip_names import REALM
from tertulia.service.files import pictures
from tertulia.store.transfer import Progress


class FileDirectories:
    """Writes the directories."""

    def __init__(self, scope: ExportScope, archive: ExportArchive, uploaded: UploadedFiles) -> None:
        self._state = scope.state
        self._scope = scope
        self._archive = archive
        self._uploaded = uploaded
        self.counts: dict[str, int] = {}
        """Records by directory."""

    def write_attachments(self, tables: TableFile) -> None:
        channels = {None, *self._scope.channel_ids}
        # Zulip deletes files that nothing links.
        scheduled: dict[int, list[int]] = {}
        for message in sorted(self._state.scheduled_messages, key=lambda message: message.id):
            if self._scope.shares(message.user_id) and message.channel_id in channels:
                for attachment in self._state.uploads.linked_files(message.content):
                    scheduled.setdefault(attachment.id, []).append(message.id)
        included = self._uploaded.included
        tables.table(
            "zerver_attachment",
            (self._attachment(file, scheduled.get(file.attachment.id, [])) for file in included),
        )

    def _attachment(self, included: IncludedFile, scheduled: list[int]) -> dict[str, Any]:
        attachment = included.attachment
        channels = [self._state.channels[channel_id] for channel_id in included.channel_ids]
        return {
            "id": attachment.id,
            "file_name": attachment.name,
            "path_id": attachment.path,
            "owner": attachment.user_id,
            "realm": REALM,
            "create_time": float(attachment.created_at),
            "size": attachment.size,
            "content_type": attachment.media_type or None,
            "is_realm_public": any(not channel.is_private for channel in channels),
            "is_web_public": any(channel.is_web_public for channel in channels),
            "messages": included.message_ids,
            "scheduled_messages": scheduled,
        }

    async def write(self, progress: Progress) -> None:
        """Write all files. Raises FilesUnavailable."""
        stored = await self._uploaded.write("uploads", progress)
        self._write_records(
            "uploads",
            [
                self._record(
                    attachment.path, attachment.user_id, attachment.size, attachment.created_at
                )
                for attachment in stored
            ],
        )
        await self._write_avatars()
        await self._write_emoji()
        await self._write_realm_pictures()

    async def _write_avatars(self) -> None:
        records = []
        for user in sorted(self._state.users, key=lambda user: user.id):
            if user.avatar_source != "U" or not user.avatar_file:
                continue
            places = pictures.avatar_paths(user.avatar_file)
            for place, ending in zip(places, ("png", "original"), strict=True):
                path = f"{REALM}/{user.avatar_file}.{ending}"
                size = await self._uploaded.add_picture(f"avatars/{path}", place)
                if size is not None:
                    records.append(
                        {
                            **self._record(path, user.id, size, user.joined_at),
                            "avatar_version": user.avatar_version,
                        }
                    )
        self._write_records("avatars", records)

    async def _write_emoji(self) -> None:
        records = []
        for emoji in sorted(self._state.custom_emoji, key=lambda emoji: emoji.id):
            place = pictures.emoji_path(emoji.file)
            for ending in ("", ".original"):
                path = f"{REALM}/emoji/images/{emoji.file}{ending}"
                if await self._uploaded.add_picture(f"emoji/{path}", place) is not None:
                    records.append(
                        {
                            "realm_id": REALM,
                            "author": emoji.author_id,
                            "path": path,
                            "s3_path": path,
                            "file_name": emoji.file,
                            "name": emoji.name,
                            "deactivated": emoji.deactivated,
                        }
                    )
        self._write_records("emoji", records)

    async def _write_realm_pictures(self) -> None:
        records = []
        for name in ("icon", "logo", "night_logo"):
            place = getattr(self._state.realm, name).file
            for ending in ("original", "png") if place else ():
                path = f"{REALM}/{name}.{ending}"
                if await self._uploaded.add_picture(f"realm_icons/{path}", place) is not None:
                    records.append({"realm_id": REALM, "path": path, "s3_path": path})
        self._write_records("realm_icons", records)

    def _record(self, path: str, user_id: int, size: int, modified: int) -> dict[str, Any]:
        return {
            "realm_id": REALM,
            "user_profile_id": user_id,
            # Their addresses are in the accounts.
            "user_profile_email": "",
            "s3_path": path,
            "path": path,
            "size": size,
            "last_modified": float(modified),
            "content_type": mimetypes.guess_type(path)[0],
        }

    def _write_records(self, directory: str, records: list[dict[str, Any]]) -> None:
        self._archive.add_json(f"{directory}/records.json", records)
        self.counts[f"{directory}_records"] = len(records)
