"""Canceling an import: what has come along stays, and nothing of the rest is remembered."""

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
    """Cancel the import that isn't finished, for good. Return how far it was. The caller is the
    only import. Raise ImportRefused if all are finished, or if an owner's one is running."""
    progress = await newest(log)
    if progress is None or progress.step == "done":
        raise ImportRefused("No import is unfinished, so there's nothing to cancel.")
    if imports.is_to_be_imported(log.state, progress.request_id):
        raise ImportRefused(
            "An owner started this import in the browser. Cancel it there, on the page Move in."
        )
    await _end(log, progress, is_final=True)
    return progress


async def tidy(log: Log) -> None:
    """Complete what a canceled import of an owner left: mark its last messages as read, and forget
    it once it can't be continued. The caller is the only import."""
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
