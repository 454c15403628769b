"""Exports of people's own data, which people request and a job creates."""

from typing import Final

import msgspec

from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import AnyChange, DataExportSet, DataExportsRemoved
from tertulia.model.errors import NoSuchItem, NotPermitted, Refused, TooOften
from tertulia.model.exports import DataExport, ExportKind
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
PERIOD: Final = DAY
"""The minimum time between two export requests of one person, in seconds."""
KEPT_DAYS: Final = 7
"""The number of days for which an export's file is kept."""


def request(context: CommandContext) -> Decision[DataExport]:
    """Request an export of the actor's own data. Raise Refused if one is pending, or for bots;
    TooOften if the last one was requested less than a day ago."""
    state, actor = context.state, context.actor
    if actor.is_bot:
        raise NotPermitted("Bots can't export data. Their owners' exports list them.")
    exports = _own(state, actor.id)
    if any(export.is_pending for export in exports):
        raise Refused("Your data is already being exported. You'll get a message when it's ready.")
    last = max((export.requested_at for export in exports if not export.failed_at), default=None)
    if last is not None and last + PERIOD > context.now:
        raise TooOften(
            last + PERIOD - context.now,
            "You can export your data once a day. Use the last export, or try again tomorrow.",
        )
    export = DataExport(
        id=state.data_exports.next_id(),
        user_id=actor.id,
        kind=ExportKind.PERSON,
        requested_at=int(context.now),
    )
    return Decision(export, (DataExportSet(export=export),))


def list_own(context: CommandContext) -> Decision[list[DataExport]]:
    """Return the exports of the actor's own data, newest first."""
    return Decision(sorted(_own(context.state, context.actor.id), key=lambda export: -export.id))


def get_own(context: CommandContext, export_id: int) -> Decision[DataExport]:
    """Return one of the actor's exports. Raise NoSuchItem."""
    export = context.state.data_exports.get(export_id)
    if export is None or export.kind is not ExportKind.PERSON or export.user_id != context.actor.id:
        raise NoSuchItem("data export")
    return Decision(export)


def delete_own(context: CommandContext, export_id: int) -> Decision[None]:
    """Delete one of the actor's exports, or cancel a pending one. Raise NoSuchItem."""
    export = get_own(context, export_id).result
    return Decision(None, () if export.deleted_at else deletion_changes(context, export))


def deletion_changes(context: CommandContext, export: DataExport) -> tuple[AnyChange, ...]:
    """Return the change that deletes the export; a job then deletes its file."""
    at = int(context.now)
    gone = msgspec.structs.replace(export, deleted_at=at, path="", size=0)
    return (DataExportSet(export=gone),)


def _own(state: State, user_id: int) -> list[DataExport]:
    every = state.data_exports.of_user[user_id]
    return [export for export in every if export.kind is ExportKind.PERSON]


# As the server


def pending_export(state: State) -> DataExport | None:
    """Return the oldest pending export."""
    exports = (export for export in state.data_exports if export.is_pending)
    return min(exports, key=lambda export: export.id, default=None)


def finish(
    context: CommandContext, export_id: int, path: str, size: int, erased: int, render: Render
) -> Decision[bool]:
    """Record that the export's file is complete, and notify the person who requested it. Return
    False if the file isn't wanted: the export was canceled, or accounts have been erased since
    there were `erased` of them, the number at its start, so it has to be made again."""
    state = context.state
    export = state.data_exports.get(export_id)
    if export is None or not export.is_pending or state.users.erased_count != erased:
        return Decision(False)
    done = msgspec.structs.replace(export, finished_at=int(context.now), path=path, size=size)
    return Decision(True, _end_changes(context, done, render, "export_ready", days=KEPT_DAYS))


def fail(context: CommandContext, export_id: int, reason: str, render: Render) -> Decision[None]:
    """Record that the export failed, and notify the person who requested it. `reason` is a
    sentence."""
    export = context.state.data_exports.get(export_id)
    if export is None or not export.is_pending:
        return Decision(None)
    done = msgspec.structs.replace(export, failed_at=int(context.now), reason=reason)
    return Decision(None, _end_changes(context, done, render, "export_failed", reason=reason))


def _end_changes(
    context: CommandContext, export: DataExport, render: Render, name: str, **facts: object
) -> list[AnyChange]:
    changes: list[AnyChange] = [DataExportSet(export=export)]
    user = context.state.users[export.user_id]
    if export.kind is ExportKind.PERSON and user.is_active:
        text = bot_messages.texts_for(context.state, user.id)(name, **facts)
        changes += bot_messages.posting_changes(
            context, [bot_messages.to_user(user.id, text)], render
        )
    return changes


def expire(context: CommandContext) -> Decision[None]:
    """Delete expired exports, and the records of older ones that no longer count toward the daily
    limit."""
    changes: list[AnyChange] = []
    forgotten: list[int] = []
    for export in context.state.data_exports:
        if export.kind is not ExportKind.PERSON:
            continue
        if export.path and export.finished_at + KEPT_DAYS * DAY <= context.now:
            changes += deletion_changes(context, export)
        elif (
            export.deleted_at or export.failed_at
        ) and export.requested_at + PERIOD <= context.now:
            forgotten.append(export.id)
    if forgotten:
        changes.append(DataExportsRemoved(export_ids=tuple(sorted(forgotten))))
    return Decision(None, changes)
