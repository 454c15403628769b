"""Exports of people's data.

Changes to them don't create events. Those of the organization's exports are in `realm_exports`.
"""

from datetime import UTC, datetime
from typing import Annotated, Final

from msgspec import Struct

from tertulia.domain.accounts import data_exports
from tertulia.domain.accounts.data_exports import DAY, KEPT_DAYS
from tertulia.model import changes
from tertulia.model.errors import Refused
from tertulia.model.exports import DataExport
from tertulia.service import links
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http import sign_in
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call

URL_SECONDS: Final = 300
"""How long the URL of a person's export is valid."""
TICKET: Final = "export"
"""The purpose of a ticket that opens an export."""


class DataExportObject(Struct, kw_only=True):
    """An export of your data. Times are in UNIX seconds."""

    id: int
    requested_at: int
    pending: Annotated[bool, Doc("Whether the server is still creating it.")]
    finished_at: Annotated[int | None, Doc("When the file was completed.")]
    failed_at: int | None
    failure_reason: Annotated[str, Doc("A sentence; empty unless it failed.")]
    deleted_at: int | None
    size: Annotated[int, Doc("The size of its file in bytes; 0 without a file.")]
    expires_at: Annotated[int | None, Doc("When its file is deleted; null without a file.")]


def _object(export: DataExport) -> DataExportObject:
    return DataExportObject(
        id=export.id,
        requested_at=export.requested_at,
        pending=export.is_pending,
        finished_at=export.finished_at or None,
        failed_at=export.failed_at or None,
        failure_reason=export.reason,
        deleted_at=export.deleted_at or None,
        size=export.size,
        expires_at=export.finished_at + KEPT_DAYS * DAY if export.path else None,
    )


class DataExportResponse(ApiResponse, kw_only=True):
    """The new export."""

    data_export: DataExportObject


async def request_data_export(call: Call) -> DataExportResponse:
    """Export all your data as a ZIP file, at most once a day.

    The server creates it in the background, and the notification bot messages you when it's ready.
    This endpoint is a Tertulia extension.
    """
    sign_in.require_confirmed(call)
    return DataExportResponse(data_export=_object(await call.submit(data_exports.request)))


class DataExportsResponse(ApiResponse, kw_only=True):
    """Your exports, newest first."""

    data_exports: list[DataExportObject]


async def get_data_exports(call: Call) -> DataExportsResponse:
    """Get the exports of your data. This endpoint is a Tertulia extension."""
    exports = call.consider(data_exports.list_own)
    return DataExportsResponse(data_exports=[_object(export) for export in exports])


class DataExportUrlResponse(ApiResponse, kw_only=True):
    """A URL that downloads the file without further authentication, for 5 minutes. It's relative to
    the organization's URL."""

    url: str


async def get_data_export_url(call: Call, export_id: IntPath) -> DataExportUrlResponse:
    """Get a URL for downloading an export of your data. This endpoint is a Tertulia extension."""
    sign_in.require_confirmed(call)
    export = call.consider(data_exports.get_own, export_id)
    if not export.path:
        raise Refused("This export has no file. It isn't finished, or it was deleted.")
    return DataExportUrlResponse(url=export_url(call.node, export, URL_SECONDS))


def export_url(node: HttpNode, export: DataExport, seconds: int) -> str:
    """Return a relative URL that downloads the export for this number of seconds."""
    ticket = node.vault.ticket(TICKET, str(export.id), int(node.clock()) + seconds)
    return f"{links.EXPORT}{ticket}/{file_name(export)}"


def file_name(export: DataExport) -> str:
    day = datetime.fromtimestamp(export.requested_at, UTC).date().isoformat()
    return f"tertulia-data-{day}.zip"


async def delete_data_export(call: Call, export_id: IntPath) -> None:
    """Delete an export of your data, or cancel a pending one. This endpoint is a Tertulia
    extension."""
    await call.submit(data_exports.delete_own, export_id)


PROJECTIONS: Final[Projections] = (unseen(changes.DataExportsRemoved),)
