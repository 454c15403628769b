"""Importing an organization from a source: its steps, and how an interrupted import is resumed.

An import submits commands to the log like any user, so servers can run in the meantime. Each commit
stores the progress, from which the next start continues.
"""

import asyncio
import time
import uuid
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import BotMessage
from tertulia.domain.messages.sending import ToPeople
from tertulia.domain.organization import imports
from tertulia.imports.channels import memberships
from tertulia.imports.commits import ImportCommits
from tertulia.imports.context import ImportContext
from tertulia.imports.files import SourceFiles
from tertulia.imports.identifiers import MAX_KEPT, Identifiers, assign_ids
from tertulia.imports.message_import import MessageImport
from tertulia.imports.messages import LINK_FACT
from tertulia.imports.organization import OrganizationChanges, pictures_of
from tertulia.imports.preparation import Preparation
from tertulia.imports.progress import (
    FACT,
    IDS_FACT,
    ImportRefused,
    Progress,
    Step,
    Tell,
    read_from,
)
from tertulia.imports.records import SourceAttachment, SourceOrganization
from tertulia.imports.rendering import RenderPool
from tertulia.imports.report import ImportReport
from tertulia.imports.source import Source, Survey
from tertulia.imports.target import ImportTarget
from tertulia.imports.wording import message_of
from tertulia.markup.render import Renderer
from tertulia.model.changes import AttachmentAdded, QueuesEnded
from tertulia.model.users import Credential, Role
from tertulia.service.credentials import Vault
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation
from tertulia.store.notes import FactsForgotten, QueuesForgotten
from tertulia.store.store import READ_SECONDS
from tertulia.texts import language_for

PICTURE_BATCH: Final = 50
"""The number of people whose avatars are stored together before their accounts are written. Servers
delete pictures that aren't used within an hour, so this is small."""

T = TypeVar("T")


class _Secrets:
    """Implements `Secrets` with the installation's secret."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.nonce = vault.nonce
        self.sealed = vault.sealed

    def credential(self, user_id: int, *, is_bot: bool) -> Credential:
        key = self._vault.new_key()
        return Credential(
            user_id=user_id,
            key_digest=key.digest,
            key_sealed=key.sealed,
            adopts_key=True,
            adopts_password=not is_bot,
        )


class Importer:
    """Imports one source into the organization of the log, or creates it."""

    def __init__(
        self,
        target: ImportTarget,
        source: Source,
        *,
        tell: Tell = lambda _: None,
        processes: int | None = None,
        is_followed: bool = False,
        matches_accounts: bool = True,
        request_id: int = 0,
    ) -> None:
        """`is_followed` says whether people keep writing at the source. If they do, the report
        isn't sent as a message, because the next message there will have its ID. `matches_accounts`
        says whether people whose email address has an account here are matched to it. `request_id`
        is the import's ID if an owner started it in the browser. If they cancel it, the next commit
        raises ImportCanceled."""
        self._request_id = request_id
        self._is_followed = is_followed
        self._matches_accounts = matches_accounts
        self._target = target
        self._log = target.log
        self._vault = target.vault
        self._source = source
        self._tell = tell
        self._processes = processes
        self._ids = Identifiers()
        self._linked: dict[str, str] = {}
        self._progress = Progress(fingerprint="", kind=source.kind, origin="")

    async def run(self) -> Progress:
        """Import everything, or what is left. Raises SourceError, and ImportRefused if another
        import isn't finished or the disk is too small."""
        survey = await asyncio.to_thread(read_from, self._source.survey)
        is_fresh = await self._begin(survey)
        progress = self._progress
        self._commits = ImportCommits(self._log, self._vault, self._ids, progress, self._tell)
        if progress.step == "done":
            return progress
        target = self._target
        files = SourceFiles(self._source, target.files, target.disk, self._ids, progress.report)
        context = await self._context(is_fresh)
        if is_fresh:
            files.require_room(survey)
            assign_ids(
                self._log.state,
                context.source,
                self._ids,
                keep=progress.keep_ids,
                matches_accounts=self._matches_accounts,
                report=progress.report,
            )
        made = OrganizationChanges(context)
        await self._write_organization(made, context.source, files)
        if progress.step == "messages":
            await self._write_messages(context, files)
        if progress.step == "end":
            await self._end()
        return progress

    async def _context(self, is_fresh: bool) -> ImportContext:
        """Read everything except messages from the source."""
        progress = self._progress
        # The source reports the same remarks each time, so they aren't counted again after a
        # restart.
        noticed = progress.report if is_fresh else ImportReport()
        return ImportContext(
            lambda: self._log.state,
            await asyncio.to_thread(read_from, lambda: self._source.organization(noticed)),
            self._ids,
            _Secrets(self._vault),
            progress.report,
            int(self._log.clock()),
            progress.is_new,
        )

    async def _begin(self, survey: Survey) -> bool:
        """Continue the stored import, or begin a new one. Return whether a new one begins."""
        stored, ids, linked = await self._log.store.read_log(
            lambda c: (
                installation.value(c, FACT),
                installation.value(c, IDS_FACT),
                installation.values(c, LINK_FACT),
            ),
            READ_SECONDS,
        )
        if stored is not None:
            before = msgspec.json.decode(stored, type=Progress)
            if before.fingerprint == survey.fingerprint and not before.is_canceled:
                before.request_id, before.is_paused = self._request_id, False
                before.report.resume_step()
                self._progress = before
                self._ids = Identifiers(msgspec.json.decode(ids or "{}"))
                self._linked = linked
                return False
            is_given_up = before.request_id and not imports.is_started(
                self._log.state, before.request_id
            )
            if before.step != "done" and not is_given_up:
                raise ImportRefused(
                    f"An import from {before.origin} isn't finished. Run the same `tertulia import`"
                    " command again to continue it, or `tertulia import cancel` to cancel it."
                )
            if before.step != "done":  # The stored links belong to another import.
                await self._log.store.write(lambda c: installation.forget_all(c, LINK_FACT))
        is_new = self._log.state.is_empty
        self._progress = Progress(
            fingerprint=survey.fingerprint,
            kind=self._source.kind,
            origin=survey.origin,
            step="founding" if is_new else "accounts",
            expected=survey.messages,
            is_new=is_new,
            keep_ids=self._source.keeps_ids and is_new,
            started_at=time.time(),
            request_id=self._request_id,
            erased=self._log.state.users.erased_count,
        )
        return True

    # Everything except messages

    async def _write_organization(
        self, made: OrganizationChanges, organization: SourceOrganization, files: SourceFiles
    ) -> None:
        commits = self._commits
        if self._progress.step == "founding":
            await commits.submit(made.founding(str(uuid.uuid4())), "accounts")
        if self._progress.step == "accounts":
            for users in commits.chunks(made.accounts.users(), PICTURE_BATCH):
                await commits.submit(made.accounts.created(users, await files.avatars(users)))
            self._next("groups")
        if self._progress.step == "groups":
            await commits.submit_all(made.channels.groups())
            await commits.submit_all(made.channels.group_contents())
            self._next("channels")
        if self._progress.step == "channels":
            await commits.submit_all(made.channels.folders())
            await commits.submit_all(made.channels.channels())
            first, _ = memberships(organization.subscriptions)
            await commits.submit_all(made.channels.first_subscriptions(first))
            self._next("rest")
        if self._progress.step == "rest":
            await self._write_pictures(made, organization, files)
            await commits.submit_all(made.rest(), 1)
            await commits.submit_all(made.personal())
            for stored in made.accounts.storage():
                await commits.submit((), None, stored)
            for file in self._progress.report.each(organization.attachments):
                await self._write_file(file, files)
            self._next("messages")

    async def _write_file(self, source: SourceAttachment, files: SourceFiles) -> None:
        report = self._progress.report
        file = await files.attachment(source, self._log.state, int(self._log.clock()), report)
        if file is not None:
            known = self._log.state.tables["attachments"]
            number = known.next_id()
            if self._progress.keep_ids and 0 < file.id <= MAX_KEPT and file.id not in known:
                number = file.id
            report.count("files")
            await self._commits.submit([AttachmentAdded(attachment=replace(file, id=number))])

    def _next(self, step: Step) -> None:
        self._progress.step = step
        self._progress.report.begin_step()

    async def _write_pictures(
        self, made: OrganizationChanges, organization: SourceOrganization, files: SourceFiles
    ) -> None:
        report = self._progress.report
        for emoji in report.each(organization.emoji):
            emoji_id = self._ids.find("emoji", emoji.key)
            if emoji_id is not None and emoji_id not in self._log.state.custom_emoji:
                kept = await files.emoji(emoji)
                if kept is not None:
                    made.pictures.emoji[emoji_id] = kept
        pictures = pictures_of(organization) if self._progress.is_new else ()
        for name, file in report.each(pictures):
            path = await files.realm_picture(name, file)
            if path is not None:
                made.pictures.realm[name] = path

    async def _write_messages(self, context: ImportContext, files: SourceFiles) -> None:
        target = self._target
        pool = RenderPool(self._log.state, target.site, self._processes, target.media)
        preparation = Preparation(context, self._source, files, pool)
        messages = MessageImport(self._commits, self._progress, context, self._linked)
        context.source = SourceOrganization(name=context.source.name)  # Release its memory.
        try:
            await messages.run(preparation)
        finally:
            pool.close()
        self._next("end")

    # The end

    async def _end(self) -> None:
        """Send the report to the owners, and let clients reload everything."""
        progress = self._progress
        progress.step, progress.ended_at = "done", time.time()
        self._ids.is_changed = True
        over = (QueuesForgotten(), FactsForgotten(LINK_FACT))

        def verb(context: CommandContext) -> Decision[None]:
            users = context.state.users
            owners = [u for u in users.active_by_role.keys(Role.OWNER) if not users[u].is_bot]
            messages = [
                BotMessage(
                    ToPeople(frozenset({owner_id})),
                    message_of(
                        progress.report,
                        progress.origin,
                        language_for(context.state, users[owner_id]),
                    ),
                )
                for owner_id in owners
                if not self._is_followed
            ]
            sent = bot_messages.posting_changes(context, messages, Renderer().render)
            return Decision(None, [QueuesEnded(), *sent])

        await self._commits.commit_with_progress(verb, *over)
