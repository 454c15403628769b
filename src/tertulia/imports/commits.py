"""The commits of an import, each with how far it is."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from tertulia.domain.organization import imports
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.pace import Pace
from tertulia.imports.progress import FACT, IDS_FACT, ImportCanceled, Progress, Step, Tell
from tertulia.log.log import Log
from tertulia.model.changes import AnyChange
from tertulia.service.credentials import Vault
from tertulia.state.decision import CommandContext, Decision, Verb
from tertulia.store import installation
from tertulia.store.notes import FactSet, Note

CHANGES_AT_ONCE: Final = 500
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

    async def submit_all(
        self, changes: Iterable[AnyChange], at_once: int = CHANGES_AT_ONCE
    ) -> None:
        """Commit the changes, up to that many in one."""
        for some in self.chunks(changes, at_once):
            await self.submit(some)

    def chunks(self, items: Iterable[T], at_once: int) -> Iterator[list[T]]:
        """Yield the items in lists of what may be in one commit."""
        iterator = iter(items)
        while some := list(islice(iterator, self.pace.most(at_once))):
            yield some

    async def submit(
        self, changes: Sequence[AnyChange], step: Step | None = None, *notes: Note
    ) -> None:
        """Commit the changes with the progress. `step` is the next one, if it changes."""
        if step is not None:
            self._progress.step = step
        await self.commit_noted(lambda _: Decision(None, changes), *notes)
        self._ids.is_changed = False

    async def commit_noted(self, verb: Verb[None], *more: Note) -> None:
        """Commit the verb with the progress."""
        notes: list[Note] = []

        def noted(context: CommandContext) -> Decision[None]:
            decision = verb(context)
            notes[:] = [*self.noted(), *more]
            return decision

        await self.commit(noted, notes=notes)

    async def commit(self, verb: Verb[T], *arguments: Any, notes: Sequence[Note]) -> T:
        """Submit the verb, which may fill the notes. Raise ImportCanceled if an owner canceled the
        import."""
        request_id = self._progress.request_id

        def checked(context: CommandContext, *given: Any) -> Decision[T]:
            if request_id and not imports.is_to_be_imported(context.state, request_id):
                raise ImportCanceled
            return verb(context, *given)

        result = await self._log.submit(None, checked, *arguments, notes=notes)
        self._tell(self._progress)
        await self.pace.pause()
        return result

    def noted(self) -> list[Note]:
        """Return what is stored with each commit. A verb calls it, so that it sees whom others have
        erased."""
        if imports.erased_accounts(self._log.state) != self._progress.erased:
            self._progress.report.forget_samples()
        notes: list[Note] = [FactSet(FACT, msgspec.json.encode(self._progress).decode())]
        if self._ids.is_changed:
            stored = {} if self._progress.step == "done" else self._ids.stored()
            notes.append(FactSet(IDS_FACT, msgspec.json.encode(stored).decode()))
            notes.append(FactSet(installation.SECRET, self._vault.fingerprint))
        return notes
