"""The commits of an import, each with the import's progress."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tertulia.domain.organization import imports
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.pace import Pace
from tertulia.imports.progress import FACT, IDS_FACT, ImportCanceled, Progress, Step, Tell
from tertulia.log.health import not_done_error
from tertulia.log.log import Log
from tertulia.model.changes import AnyChange
from tertulia.model.errors import Unavailable
from tertulia.service.credentials import Vault
from tertulia.state.decision import CommandContext, Decision, Verb
from tertulia.state.state import State
from tertulia.store import installation
from tertulia.store.notes import FactSet, Note

CHANGE_BATCH: Final = 500
T = TypeVar("T")


class ImportCommits:
    """Commits changes with the progress, which the next start continues from."""

    def __init__(
        self, log: Log, vault: Vault, ids: Identifiers, progress: Progress, tell: Tell
    ) -> None:
        self._log = log
        self._vault = vault
        self._ids = ids
        self._progress = progress
        self._tell = tell
        self.pace = Pace(log)

    @property
    def state(self) -> State:
        """The organization's state, which is another object after the log has reloaded it."""
        return self._log.state

    async def submit_all(self, changes: Iterable[AnyChange], size: int = CHANGE_BATCH) -> None:
        """Commit the changes, up to `size` in one commit."""
        for some in self.chunks(changes, size):
            await self.submit(some)

    def chunks(self, items: Iterable[T], size: int) -> Iterator[list[T]]:
        """Yield the items in lists that are small enough for one commit."""
        iterator = iter(items)
        while some := list(islice(iterator, self.pace.most(size))):
            yield some

    async def submit(
        self, changes: Sequence[AnyChange], step: Step | None = None, *notes: Note
    ) -> None:
        """Commit the changes with the progress. `step` is the next step if the import enters
        one."""
        if step is not None:
            self._progress.step = step
        await self.commit_with_progress(lambda _: Decision(None, changes), *notes)
        self._ids.is_changed = False

    async def commit_with_progress(self, verb: Verb[None], *more: Note) -> None:
        """Commit the verb with the progress."""
        notes: list[Note] = []

        def noted(context: CommandContext) -> Decision[None]:
            decision = verb(context)
            notes[:] = [*self.progress_notes(), *more]
            return decision

        await self.commit(noted, notes=notes)

    async def commit(
        self,
        verb: Verb[T],
        *arguments: Any,
        notes: Sequence[Note],
        on_folded: Callable[[], None] | None = None,
    ) -> T:
        """Submit the verb, which may add to `notes`. `on_folded` is as for `Log.submit`. Raise
        ImportCanceled if an owner canceled the import, and Unavailable with the reason as a note if
        the database couldn't be written to."""
        request_id = self._progress.request_id
        is_decided = False

        def checked(context: CommandContext, *given: Any) -> Decision[T]:
            nonlocal is_decided
            if is_decided:  # It has already changed the progress, which the next start loads.
                raise not_done_error()
            is_decided = True
            if request_id and not imports.is_started(context.state, request_id):
                raise ImportCanceled
            return verb(context, *given)

        try:
            result = await self._log.submit(
                None, checked, *arguments, notes=notes, on_folded=on_folded
            )
        except Unavailable as error:
            # Until the import has stopped, another write may succeed, which clears the reason.
            if trouble := self._log.freshness.write_trouble:
                error.add_note(trouble)
            raise
        self._tell(self._progress)
        await self.pace.pause()
        return result

    def progress_notes(self) -> list[Note]:
        """Return the notes that each commit stores. A verb must call it, so that it sees which
        accounts others have erased."""
        if self._log.state.users.erased_count != self._progress.erased:
            self._progress.report.forget_samples()
        notes: list[Note] = [FactSet(FACT, msgspec.json.encode(self._progress).decode())]
        if self._ids.is_changed:
            stored = {} if self._progress.step == "done" else self._ids.stored()
            notes.append(FactSet(IDS_FACT, msgspec.json.encode(stored).decode()))
            notes.append(FactSet(installation.SECRET, self._vault.fingerprint))
        return notes
