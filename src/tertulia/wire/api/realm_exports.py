"""Data exports of the organization."""

from typing import Annotated, Any, Final, Literal

from msgspec import Struct, convert

from tertulia.domain import permissions
from tertulia.domain.organization import exports
from tertulia.model import changes
from tertulia.model.exports import DataExport, ExportKind
from tertulia.service.links import REALM_EXPORT
from tertulia.state.state import State
from tertulia.store.files import EXPORTS
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call

ExportType = Literal["public", "full_with_consent", "full_without_consent"]


class ExportObject(Struct, kw_only=True):
    """A data export."""

    id: int
    acting_user_id: Annotated[int, Doc("The user who requested it.")]
    export_time: Annotated[float, Doc("When it was requested, in UNIX seconds.")]
    deleted_timestamp: Annotated[
        float | None, Doc("When it was deleted, in UNIX seconds. That happens after two weeks.")
    ]
    failed_timestamp: Annotated[float | None, Doc("When it failed, in UNIX seconds.")]
    export_url: Annotated[
        str | None,
        Doc(
            "The file, relative to the server's URL. Only administrators can open it. Null while"
            " the export is pending, and once it's deleted."
        ),
    ]
    pending: Annotated[bool, Doc("Whether it isn't done yet.")]
    export_type: ExportType


def export_objects(state: State) -> list[ExportObject]:
    """Return all exports, newest first."""
    return [_object(export) for export in reversed(exports.organization_exports(state))]


def _object(export: DataExport) -> ExportObject:
    name = export.path.removeprefix(f"{EXPORTS}/")
    return ExportObject(
        id=export.id,
        acting_user_id=export.user_id,
        export_time=export.requested_at,
        deleted_timestamp=export.deleted_at or None,
        failed_timestamp=export.failed_at or None,
        export_url=f"{REALM_EXPORT}{name}" if name else None,
        pending=export.is_pending,
        export_type=convert(export.kind.value, ExportType),
    )


class RealmExportEvent(Event, kw_only=True, tag="realm_export"):
    """An export was requested, finished, failed, or deleted. `exports` has all of them."""

    exports: list[ExportObject]


def _event(context: ProjectionContext, change: Any) -> Event:
    return RealmExportEvent(exports=export_objects(context.state))


def _is_seen(context: ProjectionContext, change: changes.DataExportSet, viewer: Viewer) -> bool:
    """Whether the export is the organization's, and the viewer administers exports."""
    is_realms = exports.is_of_organization(change.export)
    return is_realms and permissions.is_administrator(context.state, viewer.user)


PROJECTIONS: Final[Projections] = (to_everybody(changes.DataExportSet, _event, only_if=_is_seen),)


class ExportsResponse(ApiResponse, kw_only=True):
    """The data exports, newest first."""

    exports: list[ExportObject]


async def get_exports(call: Call) -> ExportsResponse:
    """Get the organization's data exports. Requires an administrator."""
    permissions.require_administrator(call.state, call.user)
    return ExportsResponse(exports=export_objects(call.state))


class RequestedExportResponse(ApiResponse, kw_only=True):
    """The new export's ID."""

    id: int


async def export_realm(
    call: Call,
    export_type: Annotated[
        ExportType,
        Doc(
            "`public` has public channels only. `full_with_consent` also has the private data of"
            " people who allow it. `full_without_consent` is refused: the server's operator can"
            " export everything with `tertulia export`."
        ),
    ] = "public",
) -> RequestedExportResponse:
    """Request a data export. Requires an administrator.

    Exports are created one at a time, and `realm_export` events say when one is done. An
    organization can create at most 5 in a week. Each is deleted after two weeks.
    """
    requested = await call.submit(exports.request, ExportKind(export_type))
    return RequestedExportResponse(id=requested.id)


async def delete_export(call: Call, export_id: IntPath) -> None:
    """Delete a data export. Requires an administrator."""
    await call.submit(exports.delete, export_id)


class Consent(Struct, kw_only=True):
    """Whether a user allows exports to include their private data."""

    user_id: int
    consented: bool
    email_address_visibility: int


class ConsentsResponse(ApiResponse, kw_only=True):
    """Each user's consent, by user ID."""

    export_consents: list[Consent]


async def get_consents(call: Call) -> ConsentsResponse:
    """Get whether each user allows exports to include their private data. Requires an
    administrator."""
    permissions.require_administrator(call.state, call.user)
    state = call.state
    people = [user for user in state.users if user.is_active and not user.is_bot]
    return ConsentsResponse(
        export_consents=[
            Consent(
                user_id=user.id,
                consented=state.settings[user.id].allow_private_data_export,
                email_address_visibility=int(state.settings[user.id].email_address_visibility),
            )
            for user in sorted(people, key=lambda user: user.id)
        ]
    )
