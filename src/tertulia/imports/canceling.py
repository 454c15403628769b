"""Canceling an import. Imported data stays, and the rest is forgotten."""

import msgspec

from tertulia.domain.organization import imports
from tertulia.imports.progress import FACT, IDS_FACT, ImportRefused, Progress
from tertulia.log.log import Log
from tertulia.model.changes import AnyChange, QueuesEnded
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation
from tertulia.store.notes import FactSet, FactsForgotten, Note, QueuesForgotten
from tertulia.store.store import READ_SECONDS


async def newest(log: Log) -> Progress | None:
    """Return the progress of the newest import into this organization."""
    stored = await log.store.read_log(lambda c: installation.value(c, FACT), READ_SECONDS)
    return None if stored is None else msgspec.json.decode(stored, type=Progress)


async def cancel(log: Log) -> Progress:
    """Cancel the unfinished import for good, and return its progress. The caller must hold the
    import lock. Raise ImportRefused if no import is unfinished, or if one that an owner started is
    running."""
    progress = await newest(log)
    if progress is None or progress.step == "done":
        raise ImportRefused("No import is unfinished, so there's nothing to cancel.")
    if imports.is_started(log.state, progress.request_id):
        raise ImportRefused(
            "An owner started this import in the browser. Cancel it there, on the page Data"
            " imports."
        )
    await _end(log, progress, is_final=True)
    return progress


async def tidy(log: Log) -> None:
    """Clean up after an owner's canceled import: mark its last messages as read, and forget it once
    it can't be continued. The caller must hold the import lock."""
    progress = await newest(log)
    if progress is None or progress.step == "done" or not progress.request_id:
        return
    data_import = log.state.data_imports.get(progress.request_id)
    is_final = data_import is None or not data_import.path
    is_running = data_import is not None and data_import.is_running
    if not is_running and (is_final or not progress.is_paused):
        await _end(log, progress, is_final=is_final)


async def _end(log: Log, progress: Progress, *, is_final: bool) -> None:
    # The importer is loaded only if there is something to cancel.
    from tertulia.imports.identifiers import Identifiers
    from tertulia.imports.messages import LINK_FACT
    from tertulia.imports.read_state import ImportedReads

    ids = await log.store.read_log(lambda c: installation.value(c, IDS_FACT), READ_SECONDS)
    people = Identifiers(msgspec.json.decode(ids or "{}")).all("user")
    last = ImportedReads()
    for first, number in progress.unread_ids:
        for message_id in range(first, first + number) if first else ():
            last.add(message_id, ())
    read: list[AnyChange] = [*last.changes(people)]
    progress.is_paused = True
    notes: list[Note] = [QueuesForgotten()]
    if is_final:
        progress.step, progress.is_canceled, progress.unread_ids = "done", True, []
        notes += [FactsForgotten(LINK_FACT), FactsForgotten(IDS_FACT)]
    notes.append(FactSet(FACT, msgspec.json.encode(progress).decode()))

    def verb(_: CommandContext) -> Decision[None]:
        return Decision(None, [*read, QueuesEnded()])

    await log.submit(None, verb, notes=notes)
