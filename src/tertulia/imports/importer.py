"""Importing an organization from a source: its steps, their progress, and how one is resumed.

An import is commands of the log, as any use of the organization, so servers can run in the
meantime. Each commit stores how far the import is; the next start continues there.
"""

import asyncio
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from tertulia.domain import names
from tertulia.domain.messages import attachments
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.messages import (
    LINK_FACT,
    ImportedReads,
    MessageWriter,
    PreparedMessage,
    Written,
    memberships,
)
from tertulia.imports.organization import (
    OrganizationChanges,
    Pictures,
    assign_ids,
    pictures_of,
)
from tertulia.imports.records import SourceAttachment, SourceFile, SourceMessage, SourceOrganization
from tertulia.imports.references import MessageLink, References
from tertulia.imports.rendering import RenderPool, Text
from tertulia.imports.report import ImportReport
from tertulia.imports.source import FileUnavailable, MessageBatch, Source, Survey
from tertulia.log.log import Log
from tertulia.model.attachments import ADDRESS, Attachment
from tertulia.model.changes import AnyChange, AttachmentAdded
from tertulia.model.errors import BadImage, Refused
from tertulia.model.messages import Rendered
from tertulia.pictures import BadPicture
from tertulia.service.credentials import Vault
from tertulia.service.files import pictures
from tertulia.service.files.uploads import image_info
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.notes import FactSet, FactsForgotten, Note
from tertulia.store.store import READ_SECONDS
from tertulia.store.uploads import UploadStore

FACT: Final = "import"
IDS_FACT: Final = "import_ids"
CHANGES_AT_ONCE: Final = 500
READ_CHANGES_AT_ONCE: Final = 20
READ_AT_ONCE: Final = 20_000
"""Messages whose read state is written together."""
MAX_PICTURE: Final = 32 * 1024 * 1024
"""Bytes of an avatar, an emoji, or a logo."""
_COPIED: Final = 1024 * 1024

Step = Literal["founding", "accounts", "groups", "channels", "rest", "messages", "end", "done"]


class Progress(Struct, kw_only=True):
    """How far an import is, as it is stored with each commit."""

    fingerprint: str
    kind: str
    origin: str
    step: Step = "founding"
    position: str = ""
    """The source's position after the last written message."""
    read_position: str = ""
    """The position up to which the read state is written."""
    unread_ids: list[tuple[int, int]] = []
    """The IDs of the messages since then: runs, as the first ID and the number. An ID of 0 stands
    for messages that were skipped."""
    messages: int = 0
    expected: int = 0
    applied: int = 0
    """Memberships that are applied."""
    keep_ids: bool = False
    started_at: float = 0
    ended_at: float = 0
    report: ImportReport = field(default_factory=ImportReport)


def dry_run(source: Source, tell: "Tell") -> Progress:
    """Read everything and count what would be imported, without an organization. Raises
    SourceError."""
    survey = source.survey()
    progress = Progress(
        fingerprint=survey.fingerprint,
        kind=source.kind,
        origin=survey.origin,
        expected=survey.messages,
    )
    report = progress.report
    organization = source.organization(report)
    for kind in ("users", "groups", "folders", "channels", "emoji", "linkifiers", "drafts"):
        report.count(kind, len(getattr(organization, kind)))
    progress.step = "messages"
    for batch in source.messages("", report):
        progress.messages += len(batch.messages)
        report.count("messages", len(batch.messages))
        report.count("reactions", sum(len(one.reactions) for one in batch.messages))
        report.count("files", sum(len(one.attachments) for one in batch.messages))
        tell(progress)
    return progress


class ImportRefused(Exception):
    """The import can't begin. `str(error)` says why."""


Tell = Callable[[Progress], None]
"""Called after each commit."""


class Importer:
    """Imports one source into the organization of the log, or creates it."""

    def __init__(
        self,
        log: Log,
        vault: Vault,
        files: Files,
        disk: DiskFiles,
        source: Source,
        *,
        site: str = "",
        tell: Tell = lambda _: None,
        processes: int | None = None,
    ) -> None:
        self._log = log
        self._vault = vault
        self._files = files
        self._disk = disk
        self._uploads = UploadStore(files, disk)
        self._source = source
        self._site = site
        self._tell = tell
        self._processes = processes
        self._ids = Identifiers()
        self._linked: dict[str, str] = {}
        self._progress = Progress(fingerprint="", kind=source.kind, origin="")

    async def run(self) -> Progress:
        """Import everything, or what is left. Raises SourceError, and ImportRefused if another
        import isn't finished."""
        survey = await asyncio.to_thread(self._source.survey)
        await self._begin(survey)
        if self._progress.step == "done":
            return self._progress
        report = self._progress.report
        # What the source reports is the same each time: it isn't counted again after a restart.
        organization = await asyncio.to_thread(
            self._source.organization, report if self._is_fresh else ImportReport()
        )
        if self._is_fresh:
            keep = self._progress.keep_ids
            assign_ids(self._log.state, organization, self._ids, keep=keep, report=report)
        made = OrganizationChanges(
            self._log.state,
            organization,
            self._ids,
            Pictures(),
            self._vault,
            report,
            time.time(),
        )
        await self._write_organization(made, organization)
        await self._write_messages(made, organization)
        await self._end()
        return self._progress

    # Beginning

    async def _begin(self, survey: Survey) -> None:
        stored, ids, linked = await self._log.store.read_log(
            lambda c: (
                installation.value(c, FACT),
                installation.value(c, IDS_FACT),
                installation.values(c, LINK_FACT),
            ),
            READ_SECONDS,
        )
        self._is_fresh = True
        if stored is not None:
            before = msgspec.json.decode(stored, type=Progress)
            if before.fingerprint == survey.fingerprint:
                self._progress = before
                self._ids = Identifiers(msgspec.json.decode(ids or "{}"))
                self._linked = linked
                self._is_fresh = False
                if before.step == "founding":
                    self._next("accounts")
                return
            if before.step != "done":
                raise ImportRefused(
                    f"An import from {before.origin} isn't finished. Run it again with the same"
                    " export to continue it, or start over with an empty data directory."
                )
        self._progress = Progress(
            fingerprint=survey.fingerprint,
            kind=self._source.kind,
            origin=survey.origin,
            expected=survey.messages,
            keep_ids=self._source.keeps_ids and self._log.state.is_empty,
            started_at=time.time(),
        )
        if not self._log.state.is_empty:
            self._progress.step = "accounts"

    # Everything but messages

    async def _write_organization(
        self, made: OrganizationChanges, organization: SourceOrganization
    ) -> None:
        progress = self._progress
        if self._is_fresh:
            if progress.step == "founding":
                await self._submit(made.founding(str(uuid.uuid4())))
            self._next("accounts")
        steps: tuple[tuple[Step, Step, Callable[[], Iterator[AnyChange]]], ...] = (
            ("accounts", "groups", made.accounts),
            ("groups", "channels", made.groups),
            ("channels", "rest", made.channels),
            ("rest", "messages", made.rest),
        )
        for step, following, changes in steps:
            if progress.step != step:
                continue
            if step in {"accounts", "rest"}:
                await self._store_pictures(made, organization, step)
            for some in _chunks(changes(), CHANGES_AT_ONCE):
                await self._submit(some)
            if step == "rest":
                for stored in made.storage():
                    await self._submit((), stored)
                for file in organization.attachments:
                    await self._write_file(file)
            self._next(following)

    def _next(self, step: Step) -> None:
        self._progress.step = step

    async def _write_file(self, source: SourceAttachment) -> None:
        if self._log.state.uploads.at_path(source.path) is not None:
            return
        file = await self._attachment(source)
        if file is not None:
            number = self._log.state.tables["attachments"].next_id()
            await self._submit(
                [AttachmentAdded(attachment=msgspec.structs.replace(file, id=number))]
            )

    async def _submit(self, changes: Sequence[AnyChange], *more: Note) -> None:
        def verb(_: CommandContext) -> Decision[None]:
            return Decision(None, changes)

        notes = (
            self._noted(),
            FactSet(IDS_FACT, msgspec.json.encode(self._ids.stored()).decode()),
            FactSet(installation.SECRET, self._vault.fingerprint),
            *more,
        )
        await self._log.submit(None, verb, notes=notes)
        self._tell(self._progress)

    def _noted(self) -> Note:
        return FactSet(FACT, msgspec.json.encode(self._progress).decode())

    async def _store_pictures(
        self, made: OrganizationChanges, organization: SourceOrganization, step: Step
    ) -> None:
        if step == "accounts":
            for user in organization.users:
                user_id = self._ids.find("user", user.key)
                if user.avatar is None or user_id is None or user_id in self._log.state.users:
                    continue
                content = await self._picture(user.avatar, "avatars")
                if content is not None:
                    name = await self._kept(
                        pictures.keep_scaled_avatar(self._files, content), "avatars", user.full_name
                    )
                    if name:
                        made.pictures.avatars[user_id] = name
            return
        for emoji in organization.emoji:
            emoji_id = self._ids.find("emoji", emoji.key)
            content = await self._picture(emoji.file, "custom emoji")
            if content is not None and emoji_id is not None:
                kept = await self._kept(
                    pictures.keep_scaled_emoji(self._files, content), "custom emoji", emoji.name
                )
                if kept:
                    made.pictures.emoji[emoji_id] = kept
        for name, file in pictures_of(organization):
            content = await self._picture(file, "logos")
            if content is not None:
                path = await self._kept(
                    pictures.keep_scaled_realm_picture(self._files, name, content), "logos", name
                )
                if path:
                    made.pictures.realm[name] = path

    async def _kept(self, storing: Any, kind: str, sample: str) -> Any:
        try:
            return await storing
        except (BadImage, BadPicture):
            self._progress.report.skip(kind, "The picture can't be read.", sample)
            return None

    async def _picture(self, file: SourceFile, kind: str) -> bytes | None:
        def read() -> bytes | None:
            try:
                with self._source.open(file.place) as stream:
                    content = stream.read(MAX_PICTURE + 1)
            except FileNotFoundError as error:
                self._progress.report.skip(kind, _reason(error), file.place)
                return None
            if len(content) > MAX_PICTURE:
                self._progress.report.skip(kind, "The file is too large.", file.place)
                return None
            return content

        return await asyncio.to_thread(read)

    # Messages

    async def _write_messages(
        self, made: OrganizationChanges, organization: SourceOrganization
    ) -> None:
        progress = self._progress
        if progress.step != "messages":
            return
        writer = MessageWriter(
            self._ids,
            made,
            memberships(organization.subscriptions),
            progress.report,
            self._linked,
            keep_ids=progress.keep_ids,
        )
        references = References(self._log.state, self._ids, secrets.token_hex(8))
        read = ImportedReads()
        pool = RenderPool(self._log.state, self._site, self._processes)
        try:
            written: asyncio.Task[None] | None = None
            known = iter(_ids_of(progress.unread_ids))
            is_written = progress.read_position != progress.position
            async for batch in self._batches(progress.read_position):
                if is_written:  # Only its read state is missing.
                    self._add_read(read, batch.messages, islice(known, len(batch.messages)))
                    is_written = batch.position != progress.position
                    continue
                prepared = await self._prepared(batch.messages, pool, references)
                if written is not None:
                    await written
                # Written while the next ones are read and rendered.
                written = asyncio.create_task(self._write(writer, batch, prepared, read))
            if written is not None:
                await written
            await self._write_read_state(read)
        finally:
            pool.close()
        while progress.applied < len(memberships(organization.subscriptions)):
            progress.applied = await self._log.submit(
                None, writer.rest, progress.applied, CHANGES_AT_ONCE
            )
            await self._submit(())
        self._next("end")

    async def _batches(self, after: str) -> AsyncIterator[MessageBatch]:
        batches = self._source.messages(after, self._progress.report)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch

    async def _prepared(
        self, messages: Sequence[SourceMessage], pool: RenderPool, references: References
    ) -> list[PreparedMessage]:
        """Store the files and render the texts."""
        texts: list[Text] = []
        contents: list[str] = []
        links: list[list[MessageLink]] = []
        files: list[list[Attachment]] = []
        for one in messages:
            user_id = self._ids.find("user", one.sender) or 0
            given, stored = await self._attachments(one)
            files.append(stored)
            links.append([])
            given = references.replaced(given, links[-1])
            try:
                content = names.message_content(given)
            except Refused:
                content = "(empty message)"
                self._progress.report.change("messages", "The message was empty.", one.key)
            if len(content) < len(given.strip()):
                self._progress.report.change(
                    "messages", f"It was shortened to {names.MAX_MESSAGE} characters.", one.key
                )
            contents.append(content)
            texts.append((user_id, content))
            texts += [
                (user_id, edit.was_content) for edit in one.edits if edit.was_content is not None
            ]
        rendered = iter(await pool.render(texts))
        found = []
        for one, content, stored, linked in zip(messages, contents, files, links, strict=True):
            html = next(rendered)
            before: list[Rendered | None] = [
                None if edit.was_content is None else next(rendered) for edit in one.edits
            ]
            found.append(
                PreparedMessage(
                    source=one,
                    content=content,
                    rendered=html,
                    before=tuple(before),
                    files=tuple(stored),
                    links=tuple(linked),
                )
            )
        return found

    async def _attachments(self, message: SourceMessage) -> tuple[str, list[Attachment]]:
        """Store a message's files, unless an earlier attempt did. Return its content, which links
        the original URLs of files that aren't available, and what describes the files."""
        content, found = message.content, []
        for source in message.attachments:
            if self._log.state.uploads.at_path(source.path) is not None:
                continue
            file = await self._attachment(source)
            if file is not None:
                found.append(file)
            elif source.otherwise:
                content = content.replace(f"{ADDRESS}{source.path}", source.otherwise)
        return content, found

    async def _attachment(self, source: SourceAttachment) -> Attachment | None:
        """Store a file. Return what describes it, or None if it isn't available."""
        user_id = self._ids.find("user", source.owner)
        if user_id is None:
            return None
        report = self._progress.report
        draft = self._uploads.begin()
        try:
            size = await asyncio.to_thread(self._copy, source.file, draft.file)
            if isinstance(size, str):
                report.skip("files", size, source.file.name)
                return None
            await asyncio.to_thread(draft.finish)
            name = attachments.display_name(source.file.name)
            media_type = attachments.media_type(source.file.media_type, name)
            picture = await image_info(draft.arriving.place, media_type, name)
            place = self._uploads.place_of(source.path)
            await self._files.put_from(place, draft.arriving.place)
        finally:
            draft.discard()
        report.count("files")
        return Attachment(
            id=0,
            user_id=user_id,
            name=name,
            path=source.path,
            size=size,
            media_type=media_type,
            created_at=source.created_at,
            picture=picture,
        )

    def _copy(self, file: SourceFile, into: Any) -> int | str:
        """Copy a file. Return its size in bytes, or why it isn't available."""
        try:
            with self._source.open(file.place) as stream:
                size = 0
                while part := stream.read(_COPIED):
                    into.write(part)
                    size += len(part)
                return size
        except FileNotFoundError as error:
            return _reason(error)

    async def _write(
        self,
        writer: MessageWriter,
        batch: MessageBatch,
        prepared: Sequence[PreparedMessage],
        read: ImportedReads,
    ) -> None:
        """Write the batch in one commit, with its position."""
        progress = self._progress
        notes: list[Note] = []

        def noted(written: Written) -> Note:
            progress.applied = written.applied
            progress.messages += len(prepared)
            progress.position = batch.position
            progress.unread_ids += _runs(written.ids)
            progress.report.count("messages", len(written.ids) - written.ids.count(0))
            return self._noted()

        written = await self._log.submit(
            None, writer.write, prepared, progress.applied, notes, noted, notes=notes
        )
        self._add_read(read, batch.messages, written.ids)
        self._tell(progress)
        if read.size >= READ_AT_ONCE:
            await self._write_read_state(read)

    def _add_read(
        self, read: ImportedReads, messages: Sequence[SourceMessage], ids: Iterable[int]
    ) -> None:
        for one, message_id in zip(messages, ids, strict=True):
            if message_id:
                read.add(message_id, self._ids.several("user", one.unread_by))

    async def _write_read_state(self, read: ImportedReads) -> None:
        self._progress.read_position = self._progress.position
        self._progress.unread_ids = []
        for some in _chunks(read.changes(self._ids.all("user")), READ_CHANGES_AT_ONCE):
            await self._submit(some)
        read.clear()

    # The end

    async def _end(self) -> None:
        if self._progress.step != "end":
            return
        self._progress.step = "done"
        self._progress.ended_at = time.time()
        await self._submit((), FactsForgotten(LINK_FACT))


def _reason(error: FileNotFoundError) -> str:
    return str(error) if isinstance(error, FileUnavailable) else "The file is missing."


def _runs(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the IDs as runs: the first and the number; 0 and the number for zeros."""
    runs: list[tuple[int, int]] = []
    for one in ids:
        if runs:
            first, number = runs[-1]
            if one == (first + number if first else 0):
                runs[-1] = (first, number + 1)
                continue
        runs.append((one, 1))
    return runs


def _ids_of(runs: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, number in runs:
        yield from range(first, first + number) if first else [0] * number


def _chunks(changes: Iterable[AnyChange], size: int) -> Iterator[list[AnyChange]]:
    iterator = iter(changes)
    while some := list(islice(iterator, size)):
        yield some
