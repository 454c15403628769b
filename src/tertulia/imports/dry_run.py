"""Finding out what an import would do, without writing anything."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Final

from tertulia.imports.channels import memberships
from tertulia.imports.commits import CHANGE_BATCH
from tertulia.imports.context import ImportContext
from tertulia.imports.files import owner_of, reason_of
from tertulia.imports.identifiers import Identifiers, assign_ids
from tertulia.imports.messages import MessageWriter, Written
from tertulia.imports.organization import OrganizationChanges
from tertulia.imports.preparation import Preparation
from tertulia.imports.progress import Progress, Tell, read_from
from tertulia.imports.records import SourceAttachment
from tertulia.imports.rendering import Text
from tertulia.imports.report import ImportReport
from tertulia.imports.source import Source
from tertulia.model.attachments import Attachment
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.messages import Rendered
from tertulia.model.users import Credential
from tertulia.state.decision import CommandContext
from tertulia.state.folds import fold
from tertulia.state.state import State
from tertulia.store.notes import Note

_BLANK: Final = Rendered(html="")


async def dry_run(
    source: Source, tell: Tell, state: State, *, matches_accounts: bool = True
) -> Progress:
    """Read the whole source, and count what would be imported. `state` is a copy of the
    organization to import into, or empty. Changes are folded into it as an import would, so that
    taken names and limits count. Pictures aren't read, and files aren't downloaded. Raises
    SourceError."""
    survey = await asyncio.to_thread(read_from, source.survey)
    progress = Progress(
        fingerprint=survey.fingerprint,
        kind=source.kind,
        origin=survey.origin,
        expected=survey.messages,
        is_new=state.is_empty,
        keep_ids=source.keeps_ids and state.is_empty,
    )
    organization = await asyncio.to_thread(read_from, lambda: source.organization(progress.report))
    context = ImportContext(
        lambda: state,
        organization,
        Identifiers(),
        _NoSecrets(),
        progress.report,
        int(time.time()),
        progress.is_new,
    )
    rehearsal = _Rehearsal(context, progress)
    await asyncio.to_thread(read_from, lambda: rehearsal.organization(matches_accounts))
    await rehearsal.messages(source, tell)
    return progress


class _NoSecrets:
    """Stand-in for `Secrets` that has no secrets."""

    def credential(self, user_id: int, *, is_bot: bool) -> Credential:
        return Credential(user_id=user_id, key_digest=f"of {user_id}", key_sealed="")

    def sealed(self, text: str) -> str:
        return ""

    def nonce(self) -> str:
        return ""


class _NoFiles:
    """Stand-in for `AttachmentStore` that only checks whether files exist."""

    def __init__(self, source: Source, ids: Identifiers) -> None:
        self._source = source
        self._ids = ids

    async def attachment(
        self, source: SourceAttachment, state: State, now: int, report: ImportReport
    ) -> Attachment | None:
        user_id = owner_of(source, self._ids, state, report)
        if user_id is None:
            return None
        if not source.file.place.startswith(("http://", "https://")):
            try:
                await asyncio.to_thread(self._open, source.file.place)
            except FileNotFoundError as error:
                report.skip("files", reason_of(error), source.file.name)
                return None
        return Attachment(
            id=source.key if isinstance(source.key, int) else 0,
            user_id=user_id,
            name=source.file.name,
            path=source.path,
            size=0,
            media_type="",
            created_at=now,
        )

    def _open(self, place: str) -> None:
        with read_from(lambda: self._source.open(place)):
            pass


class _NoRendering:
    """Stand-in for `TextRenderer` that renders nothing."""

    async def render(self, texts: Sequence[Text]) -> list[Rendered]:
        return [_BLANK] * len(texts)


class _Rehearsal:
    """Makes the changes of an import, and folds them into a private state."""

    def __init__(self, context: ImportContext, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self._made = OrganizationChanges(context)
        self._first, self._plan = memberships(context.source.subscriptions)

    def organization(self, matches_accounts: bool) -> None:
        """Rehearse everything except messages."""
        context, made, source = self._context, self._made, self._context.source
        assign_ids(
            context.state,
            source,
            context.ids,
            keep=self._progress.keep_ids,
            matches_accounts=matches_accounts,
            report=context.report,
        )
        if context.is_new:
            self._fold(made.founding("dry run"))
        users = made.accounts.users()
        for begin in range(0, len(users), CHANGE_BATCH):
            self._fold(made.accounts.created(users[begin:][:CHANGE_BATCH], {}))
        self._fold(made.channels.groups())
        self._fold(made.channels.group_contents())
        self._fold(made.channels.folders())
        self._fold(made.channels.channels())
        self._fold(made.channels.first_subscriptions(self._first))
        for emoji in source.emoji:
            if (emoji_id := context.ids.find("emoji", emoji.key)) is not None:
                made.pictures.emoji[emoji_id] = ("", "")
        self._fold(made.rest())
        self._fold(made.personal())
        context.report.count("files", len(source.attachments))

    async def messages(self, source: Source, tell: Tell) -> None:
        """Rehearse the messages, and the memberships that change between them. Raises
        SourceError."""
        context, progress = self._context, self._progress
        progress.step = "messages"
        progress.resume(time.time())
        files = _NoFiles(source, context.ids)
        preparation = Preparation(context, source, files, _NoRendering())
        writer = MessageWriter(context, self._plan, {}, keep_ids=progress.keep_ids)
        command = CommandContext(context.state, context.now, None)
        notes: list[Note] = []

        async with aclosing(preparation.batches("", "")) as batches:
            async for batch in batches:

                def noted(written: Written, noticed: ImportReport = batch.report) -> list[Note]:
                    progress.applied = written.applied
                    context.report.add(noticed)
                    context.report.add(written.report)
                    context.report.count("messages", len(written.ids) - written.ids.count(0))
                    return []

                progress.wrote(len(batch.prepared), time.time())
                changes = writer.changes(context.state, batch.prepared, progress.applied)
                decision = writer.write(command, changes, notes, noted)
                self._fold(decision.changes)
                tell(progress)
        left = len(self._plan) - progress.applied
        rest = writer.rest(
            command, progress.applied, left, lambda _, noticed: context.report.add(noticed)
        )
        self._fold(rest.changes)
        context.report.add(preparation.noticed)

    def _fold(self, changes: Iterable[AnyChange]) -> None:
        state = self._context.state
        for change in changes:
            fold(state, Entry(state.seq + 1, 0, None, change))
