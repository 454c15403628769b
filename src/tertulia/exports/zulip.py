"""Exports in Zulip's format, which Zulip servers of the same version and Tertulia can import.

An export has `realm.json` with everything except messages, `messages-000001.json`, … with 1,000
messages each, `attachment.json`, the directories `uploads`, `avatars`, `emoji`, and `realm_icons`,
and `stats.json` with the number of rows. `migration_status.json` names the version.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from tertulia import __version__
from tertulia.exports.archive import ExportArchive
from tertulia.exports.files import UploadedFiles
from tertulia.exports.scope import ExportScope
from tertulia.exports.zulip_files import FileDirectories
from tertulia.exports.zulip_messages import MessageFiles
from tertulia.exports.zulip_names import Clients, Recipients
from tertulia.exports.zulip_people import PeopleTables
from tertulia.exports.zulip_realm import RealmTables
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.transfer import Progress

LEVEL: Final = 496
"""The Zulip feature level of this format."""


def write(
    archive: ExportArchive,
    scope: ExportScope,
    connection: Connection,
    files: Files,
    disk: DiskFiles,
    host: str,
    progress: Progress,
) -> tuple[int, list[str]]:
    """Write everything in scope. Return the number of messages, and the names of missing files."""
    clients, recipients = Clients(), Recipients(scope)
    stats: dict[str, Any] = {}
    with archive.temporary_file() as reactions, archive.temporary_file() as submessages:
        messages = MessageFiles(
            scope, recipients, clients, connection, archive, reactions, submessages
        )
        messages.write(progress)
        stats |= messages.counts
        uploaded = UploadedFiles(scope, connection, archive, files, disk)
        directories = FileDirectories(scope, archive, uploaded)
        with archive.tables("attachment.json") as tables:
            directories.write_attachments(tables)
        stats["attachment"] = tables.counts
        asyncio.run(_written(directories, files, progress))
        people = PeopleTables(scope, recipients, clients, connection, host)
        with archive.tables("realm.json") as tables:
            for part in (RealmTables(scope, recipients), people):
                for name, rows in part.tables():
                    tables.table(name, rows)
            tables.encoded("zerver_reaction", _lines(reactions))
            # Zulip has these rows, but neither exports nor imports them. Tertulia imports them.
            tables.encoded("zerver_submessage", _lines(submessages))
            tables.table("zerver_client", clients.rows())
        stats["realm"] = tables.counts
    archive.add_json("stats.json", {**stats, **directories.counts})
    archive.add_json(
        "migration_status.json",
        {
            "migrations_by_app": {},
            "zulip_version": f"Tertulia {__version__}",
            "zulip_feature_level": LEVEL,
            "export_type": scope.kind.value,
        },
    )
    return messages.messages, uploaded.missing


async def _written(directories: FileDirectories, files: Files, progress: Progress) -> None:
    try:
        await directories.write(progress)
    finally:
        await files.close()


def _lines(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    return (line.rstrip(b"\n") for line in file)
