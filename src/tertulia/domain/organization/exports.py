"""Requesting and deleting exports of the organization. `domain.accounts.data_exports` has the part
that is shared with people's own exports."""

from typing import Final

from tertulia.domain import permissions
from tertulia.domain.accounts import data_exports
from tertulia.model.changes import DataExportSet
from tertulia.model.errors import Refused
from tertulia.model.exports import DataExport, ExportKind
from tertulia.model.users import AddressVisibility, PersonalSettings, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

WEEK_SECONDS: Final = 7 * data_exports.DAY
MAX_PER_WEEK: Final = 5
KEPT_DAYS: Final = 14
"""The number of days for which an export's file is kept."""


def is_of_organization(export: DataExport) -> bool:
    """Whether the export contains the organization, not only one person's data."""
    return export.kind is not ExportKind.PERSON


def organization_exports(state: State) -> list[DataExport]:
    """Return the organization's exports, oldest first."""
    return sorted(filter(is_of_organization, state.data_exports), key=lambda export: export.id)


def request(context: CommandContext, kind: ExportKind) -> Decision[DataExport]:
    """Request an export of the organization. For administrators. Raise Refused if it isn't
    possible, or after `MAX_PER_WEEK`."""
    state, actor = context.state, context.actor
    permissions.require_administrator(state, actor)
    if kind is ExportKind.FULL:
        raise Refused(
            "Only the server's operator can export everyone's private data, with `tertulia export`."
        )
    since = context.now - WEEK_SECONDS
    if sum(export.requested_at > since for export in organization_exports(state)) >= MAX_PER_WEEK:
        raise Refused(f"An organization can make at most {MAX_PER_WEEK} exports per week.")
    if not any(_is_usable(state, user, kind) for user in state.users):
        raise Refused(_NO_OWNER[kind])
    export = DataExport(
        id=state.data_exports.next_id(),
        kind=kind,
        user_id=actor.id,
        requested_at=int(context.now),
    )
    return Decision(export, (DataExportSet(export=export),))


_NO_OWNER: Final = {
    ExportKind.PUBLIC: (
        "At least one organization owner must let administrators see their email address. Otherwise"
        " nobody could administer the organization that's made from the export."
    ),
    ExportKind.CONSENT: (
        "At least one organization owner must allow exports to include their private data."
        " Otherwise, no one could administer the imported organization."
    ),
}


def _is_usable(state: State, user: User, kind: ExportKind) -> bool:
    """Whether the user could administer an organization that is imported from the export."""
    if not permissions.is_owner(state, user) or not user.is_active or user.is_bot:
        return False
    settings = state.settings.get(user.id) or PersonalSettings(user_id=user.id)
    if kind is ExportKind.CONSENT:
        return settings.allow_private_data_export
    return settings.email_address_visibility is not AddressVisibility.NOBODY


def delete(context: CommandContext, export_id: int) -> Decision[None]:
    """Delete an export. For administrators. A job deletes its file."""
    permissions.require_administrator(context.state, context.actor)
    export = context.state.data_exports.get(export_id)
    if export is None or not is_of_organization(export):
        raise Refused("This export doesn't exist.")
    if export.is_pending:
        raise Refused("This export isn't finished yet. You can delete it when it is.")
    if export.failed_at:
        raise Refused("This export failed, so there is nothing to delete.")
    if export.deleted_at:
        raise Refused("This export has already been deleted.")
    return Decision(None, data_exports.deletion_changes(context, export))


def expire(context: CommandContext) -> Decision[None]:
    """Delete the files of expired exports. Their records stay."""
    until = context.now - KEPT_DAYS * data_exports.DAY
    over = [
        export
        for export in organization_exports(context.state)
        if export.path and export.finished_at <= until
    ]
    return Decision(
        None,
        [change for export in over for change in data_exports.deletion_changes(context, export)],
    )
