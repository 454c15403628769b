"""Exporting an organization from its database. Servers may run in the meantime."""

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from tertulia.exports.archive import ExportArchive
from tertulia.exports.scope import ExportScope
from tertulia.model.exports import ExportKind
from tertulia.state.state import State
from tertulia.store import log_entries, queries, transfer
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.transfer import Progress

READ: Final = frozenset(
    {
        *("realm", "users", "personal_settings", "user_groups", "channels", "subscriptions"),
        *("direct_conversations", "custom_emoji", "alert_words", "muted_users"),
        *("channel_folders", "user_topics", "user_statuses", "profile_fields", "profile_values"),
        *("snippets", "scheduled_messages", "reminders", "attachments", "attachment_messages"),
        *("drafts", "navigation_views"),
        *("domains", "linkifiers", "playgrounds", "onboarding_steps", "topics"),
    }
)
"""The tables that an export reads. Others, such as credentials, can't be in an export."""
DIRECTORY: Final = "export"
"""The archive's top directory."""


class ExportFormat(StrEnum):
    ZULIP = "zulip"
    HTML = "html"


class ExportResult(Struct, frozen=True, kw_only=True):
    """An export that was written."""

    messages: int
    files: int
    """Files in the archive."""
    missing: list[str]
    """Uploaded files that are no longer stored."""
    lost: list[str]
    """Sentences about data that the organization has but the format doesn't support."""


def export_organization(
    connection: Connection,
    files: Files,
    disk: DiskFiles,
    target: Path,
    kind: ExportKind,
    form: ExportFormat,
    *,
    host: str,
    now: float,
    progress: Progress,
) -> ExportResult:
    """Write an export of this kind, from one snapshot, to a new file. Others may use the database.
    `host` is used for the placeholders of hidden addresses; `now` is in UNIX seconds.

    Raises DatabaseError if the file exists, and FilesUnavailable.
    """
    with transfer.new_file(target) as file:
        archive = ExportArchive(file, DIRECTORY, target.parent, now)
        connection.run(connection.dialect.begin_read)
        try:
            scope = ExportScope(load_state(connection), kind)
            lost: list[str] = []
            if form is ExportFormat.ZULIP:
                from tertulia.exports import losses, zulip

                lost = losses.find(connection, scope.state)
                messages, missing = zulip.write(
                    archive, scope, connection, files, disk, host, progress
                )
            else:
                from tertulia.exports import html

                messages, missing = html.write(
                    archive, scope, connection, files, disk, now, progress
                )
        finally:
            with contextlib.suppress(Exception):
                connection.rollback()
        archive.close()
    return ExportResult(messages=messages, files=archive.files, missing=missing, lost=lost)


def load_state(connection: Connection) -> State:
    """Return the state without secrets, from the open transaction."""
    with queries.scanned(connection, READ) as tables:
        return State.load(log_entries.head(connection), tables)
