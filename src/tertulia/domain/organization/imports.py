"""Imports of uploaded exports: requesting, starting, canceling, and finishing them. For owners. A
job runs one import at a time (`jobs/imports.py`)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import permissions
from tertulia.model.changes import (
    AnyChange,
    DataImportSet,
    DataImportsRemoved,
    QueuesEnded,
)
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.imports import DataImport, ImportKind, ImportState, ImportSummary
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
KEPT_DAYS: Final = 7
"""The number of days for which the uploaded file is kept, unless the import finishes sooner."""
MAX_RECORDS: Final = 20
"""The number of imports whose records are kept. Older ones are deleted."""

_BUSY: Final = "Another import is running. Wait until it's finished, or cancel it."


class NewImport(Struct, frozen=True, kw_only=True):
    """An import to request."""

    kind: ImportKind
    path: str
    name: str
    size: int
    team: str
    token_sealed: str
    is_dry_run: bool
    """Whether to only check the file at first."""
    new_accounts: bool = False
    """Whether to create new accounts even for email addresses that already have one."""


def request(context: CommandContext, new: NewImport) -> Decision[DataImport]:
    """Request an import. Raise Refused if another one is running, or uses the same file."""
    state = context.state
    permissions.require_owner(state, context.actor)
    _require_none_running(state)
    if any(data_import.path == new.path for data_import in state.data_imports):
        raise Refused("This file is already used by another import.")
    if new.team and new.kind is not ImportKind.MATTERMOST:
        raise Refused("Only Mattermost exports have teams.")
    if new.token_sealed and new.kind is not ImportKind.SLACK:
        raise Refused("Only Slack exports need a token.")
    now = int(context.now)
    made = DataImport(
        id=state.data_imports.next_id(),
        started_by=context.actor.id,
        kind=new.kind,
        state=ImportState.CHECKING if new.is_dry_run else ImportState.IMPORTING,
        path=new.path,
        name=new.name,
        size=new.size,
        requested_at=now,
        team=new.team,
        token_sealed=new.token_sealed,
        new_accounts=new.new_accounts,
        started_at=0 if new.is_dry_run else now,
    )
    return Decision(made, (DataImportSet(data_import=made),))


def start(
    context: CommandContext, import_id: int, new_accounts: bool | None = None
) -> Decision[None]:
    """Start an import that was checked, or continue one that failed or was canceled. `new_accounts`
    is as in `NewImport`, and None keeps it. It can't change once records have been imported."""
    state = context.state
    permissions.require_owner(state, context.actor)
    data_import = existing_import(state, import_id)
    _require_none_running(state)
    if data_import.state is ImportState.FINISHED:
        raise Refused("This import is already finished.")
    if not data_import.path:
        raise Refused("The uploaded file has been deleted. Upload it again.")
    if new_accounts is None:
        new_accounts = data_import.new_accounts
    if new_accounts is not data_import.new_accounts and data_import.started_at:
        raise Refused(
            "This import has already started, so you can't change who gets a new account."
        )
    return _set(
        replace(
            data_import,
            state=ImportState.IMPORTING,
            new_accounts=new_accounts,
            started_by=context.actor.id,
            started_at=int(context.now),
            ended_at=0,
            reason="",
        )
    )


def remove(context: CommandContext, import_id: int) -> Decision[None]:
    """Cancel a running import, or delete the record of one that isn't running. Imported records
    stay."""
    permissions.require_owner(context.state, context.actor)
    data_import = existing_import(context.state, import_id)
    if not data_import.is_running:
        return Decision(None, (DataImportsRemoved(import_ids=(data_import.id,)),))
    return Decision(None, _end_changes(context, data_import, ImportState.CANCELED))


def existing_import(state: State, import_id: int) -> DataImport:
    """Return the import. Raise NoSuchItem."""
    data_import = state.data_imports.get(import_id)
    if data_import is None:
        raise NoSuchItem("import")
    return data_import


def _require_none_running(state: State) -> None:
    if running_import(state) is not None:
        raise Refused(_BUSY)


def _set(data_import: DataImport) -> Decision[None]:
    return Decision(None, (DataImportSet(data_import=data_import),))


def sample_removal_changes(state: State) -> list[AnyChange]:
    """Return the changes that remove the samples, which contain names and addresses, from all
    reports."""
    changes: list[AnyChange] = []
    for data_import in state.data_imports:
        bare = replace(
            data_import,
            plan=_without_samples(data_import.plan),
            summary=_without_samples(data_import.summary),
        )
        if bare != data_import:
            changes.append(DataImportSet(data_import=bare))
    return changes


def _without_samples(summary: ImportSummary | None) -> ImportSummary | None:
    if summary is None:
        return None
    return replace(
        summary,
        skipped=tuple(replace(remark, samples=()) for remark in summary.skipped),
        changed=tuple(replace(remark, samples=()) for remark in summary.changed),
    )


# As the server


def running_import(state: State) -> DataImport | None:
    """Return the import to check or import next."""
    return next((data_import for data_import in state.data_imports if data_import.is_running), None)


def is_started(state: State, import_id: int) -> bool:
    """Whether the import was started and hasn't finished, failed, or been canceled."""
    data_import = state.data_imports.get(import_id)
    return data_import is not None and data_import.state is ImportState.IMPORTING


def is_allowed(state: State, data_import: DataImport) -> bool:
    """Whether the person who started the import is still an owner."""
    user = state.users.get(data_import.started_by)
    return user is not None and user.is_active and permissions.is_owner(state, user)


def finish_check(
    context: CommandContext, import_id: int, plan: ImportSummary, erased: int
) -> Decision[None]:
    """Record the result of the dry run, unless it was canceled. Its samples are left out if more
    accounts are erased by now than `erased`, the number at its start."""
    data_import = context.state.data_imports.get(import_id)
    if data_import is None or data_import.state is not ImportState.CHECKING:
        return Decision(None)
    current = _current(context.state, plan, erased)
    return _set(replace(data_import, state=ImportState.CHECKED, plan=current))


def finish(
    context: CommandContext, import_id: int, summary: ImportSummary, erased: int
) -> Decision[None]:
    """Record that the import finished, with its result. The file isn't needed anymore. `erased` is
    as in `finish_check`."""
    data_import = context.state.data_imports.get(import_id)
    if data_import is None or data_import.state is not ImportState.IMPORTING:
        return Decision(None)
    return _set(
        replace(
            _without_file(data_import),
            state=ImportState.FINISHED,
            ended_at=int(context.now),
            summary=_current(context.state, summary, erased),
        )
    )


def _current(state: State, summary: ImportSummary, erased: int) -> ImportSummary | None:
    return summary if state.users.erased_count == erased else _without_samples(summary)


def fail(context: CommandContext, import_id: int, reason: str) -> Decision[None]:
    """Record that the check or the import failed. `reason` is a sentence."""
    data_import = context.state.data_imports.get(import_id)
    if data_import is None or not data_import.is_running:
        return Decision(None)
    return Decision(
        None, _end_changes(context, replace(data_import, reason=reason), ImportState.FAILED)
    )


def expire(context: CommandContext) -> Decision[None]:
    """Delete the files of imports that were never started, and the records of the oldest
    imports."""
    until = context.now - KEPT_DAYS * DAY
    ended = sorted(
        (data_import for data_import in context.state.data_imports if not data_import.is_running),
        key=_age,
    )
    changes: list[AnyChange] = [
        DataImportSet(data_import=_without_file(data_import))
        for data_import in ended[-MAX_RECORDS:]
        if data_import.path and _age(data_import)[0] <= until
    ]
    if len(ended) > MAX_RECORDS:
        old = tuple(sorted(data_import.id for data_import in ended[:-MAX_RECORDS]))
        changes.append(DataImportsRemoved(import_ids=old))
    return Decision(None, changes)


def _age(data_import: DataImport) -> tuple[int, int]:
    return max(
        data_import.requested_at, data_import.started_at, data_import.ended_at
    ), data_import.id


def _end_changes(
    context: CommandContext, data_import: DataImport, state: ImportState
) -> list[AnyChange]:
    """Return the changes that end an import early. Clients reload, because imported records sent no
    events."""
    ended = replace(data_import, state=state, ended_at=int(context.now))
    changes: list[AnyChange] = [DataImportSet(data_import=ended)]
    if data_import.state is ImportState.IMPORTING:
        changes.append(QueuesEnded())
    return changes


def _without_file(data_import: DataImport) -> DataImport:
    return replace(data_import, path="", token_sealed="")


def require_moved(state: State) -> None:
    """Raise Refused while the organization is being moved here, because new messages and accounts
    would have the same IDs as imported ones."""
    if not state.is_empty and state.realm.moving_from:
        raise Refused(
            f"This organization is still moving here from {state.realm.moving_from}. Post"
            " messages there until the move is finished."
        )
