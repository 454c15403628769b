"""`tertulia import requested`: run an import that an owner started in the browser. The server
starts it (`jobs/imports.py`)."""

import asyncio
import contextlib
import os
import re
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from tertulia.app.composition import opened_organization
from tertulia.app.founding import opened_log
from tertulia.cli.commands import report
from tertulia.domain.organization import imports as domain
from tertulia.imports import canceling
from tertulia.imports.dry_run import dry_run
from tertulia.imports.importer import Importer
from tertulia.imports.lock import DIRECTORY, ImportBusy, delete_extracted, import_lock
from tertulia.imports.progress import (
    CHECK_FACT,
    ImportCanceled,
    ImportRefused,
    Progress,
)
from tertulia.imports.reading import Opened, SeparateSource
from tertulia.imports.source import Source, SourceError
from tertulia.imports.target import ImportTarget
from tertulia.jobs.imports import BUSY, fail, only_import
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.imports import DataImport, ImportKind, ImportState, ImportSummary
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.garbage import collect_rarely, return_freed_memory
from tertulia.service.links import Links, external_media
from tertulia.store import file_modes, installation
from tertulia.store.database import Connection

NOTED_SECONDS: Final = 1.0
"""The interval, in seconds, at which the progress of a check is stored."""
REPEATED: Final = (
    "An export of the same size was imported before. If it's the same one, its messages will be"
    " here twice."
)
_UPLOAD: Final = "upload"
"""The directory with a link to the uploaded file, which has the file's name."""
MAX_NAME: Final = 200
"""The most bytes of that name."""
_UNUSUAL: Final = re.compile(r"[^\w.-]+")
_ImportId = Annotated[int, typer.Argument(metavar="ID", help="The import's ID.")]


async def requested(config: Config, import_id: _ImportId) -> None:
    """Run an import that an owner started in the browser. The server does this by itself."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    collect_rarely()
    return_freed_memory()
    work = config.data_path / DIRECTORY
    async with opened_organization(config, report) as (log, vault):
        try:
            with import_lock(work):
                await only_import(
                    log,
                    config.data_path,
                    lambda: _Requested(config, log, vault, work).run(import_id),
                )
                await asyncio.to_thread(delete_extracted, work)
        except ImportBusy as busy:
            print(busy, file=sys.stderr)
            raise typer.Exit(BUSY) from None


def _end_with_server() -> None:
    """End this process if the process that started it was killed, which closes the standard
    input."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


class _Requested:
    """Runs one import."""

    def __init__(self, config: Config, log: Log, vault: Vault, work: Path) -> None:
        self._config = config
        self._log = log
        self._vault = vault
        self._work = work
        self._files, disk = config.opened_files()
        media = external_media(config, Links(vault))
        self._target = ImportTarget(log, vault, self._files, disk, config.external_url, media)

    async def run(self, import_id: int) -> None:
        """Check or import, and record how it ended."""
        data_import = self._log.state.data_imports.get(import_id)
        if data_import is None or not data_import.is_running:
            return
        try:
            if data_import.state is ImportState.CHECKING:
                await self._check(data_import)
            else:
                await self._import(data_import)
        except ImportCanceled:
            pass
        except (SourceError, ImportRefused, Refused) as error:
            await fail(self._log, data_import.id, str(error))
        finally:
            await self._files.close()

    async def _check(self, data_import: DataImport) -> None:
        erased = self._log.state.users.erased_count
        async with (
            self._opened(data_import) as source,
            self._noting_progress(data_import) as latest,
        ):

            def tell(progress: Progress) -> None:
                latest[:] = [(progress.messages, progress.expected)]

            async with opened_log(self._config, report) as log:
                copy = log.state
            progress = await dry_run(
                source, tell, copy, matches_accounts=not data_import.new_accounts
            )
        if await self._is_repeated(data_import, progress.fingerprint):
            progress.report.change("messages", REPEATED, number=progress.messages)
        await self._log.submit(
            None, domain.finish_check, data_import.id, _summary(progress), erased
        )

    async def _import(self, data_import: DataImport) -> None:
        if not domain.is_allowed(self._log.state, data_import) and not await self._has_begun(
            data_import
        ):
            raise Refused(
                "The owner who started this import isn't an owner anymore. Another owner can start"
                " it."
            )
        async with self._opened(data_import) as source:
            importer = Importer(
                self._target,
                source,
                request_id=data_import.id,
                matches_accounts=not data_import.new_accounts,
            )
            progress = await importer.run()
        await self._log.submit(
            None, domain.finish, data_import.id, _summary(progress), progress.erased
        )

    async def _has_begun(self, data_import: DataImport) -> bool:
        newest = await canceling.newest(self._log)
        return newest is not None and newest.request_id == data_import.id

    async def _is_repeated(self, data_import: DataImport, fingerprint: str) -> bool:
        """Whether the same export seems to be imported already, and would be imported again. If
        it's the newest import, it's continued, or nothing is done."""
        newest = await canceling.newest(self._log)
        if newest is not None and newest.fingerprint == fingerprint:
            return newest.is_canceled
        return any(
            (before.kind, before.size, before.state)
            == (data_import.kind, data_import.size, ImportState.FINISHED)
            for before in self._log.state.data_imports
        )

    @contextlib.asynccontextmanager
    async def _opened(self, data_import: DataImport) -> AsyncIterator[Source]:
        stored = await self._files.found(data_import.path)
        if stored is None:
            raise SourceError("The uploaded file doesn't exist anymore. Upload it again.")
        async with stored.files.local(stored) as path:
            named = await asyncio.to_thread(self._named, path, data_import.name)
            token = (
                self._vault.unsealed(data_import.token_sealed) if data_import.token_sealed else ""
            )
            source = await asyncio.to_thread(
                SeparateSource, _opener(data_import, named, token), self._work
            )
            try:
                yield source
            finally:
                await asyncio.to_thread(source.close)

    def _named(self, path: Path, name: str) -> Path:
        """Return a link to the file with its name, which readers and error messages use."""
        directory = self._work / _UPLOAD
        file_modes.directory(directory)
        for old in directory.iterdir():
            old.unlink()
        plain = _UNUSUAL.sub("_", name).encode()[-MAX_NAME:].decode(errors="ignore").lstrip(".")
        named = directory / (plain or "export")
        named.symlink_to(path.resolve())
        return named

    @contextlib.asynccontextmanager
    async def _noting_progress(
        self, data_import: DataImport
    ) -> AsyncIterator[list[tuple[int, int]]]:
        """Store the yielded progress regularly."""
        latest: list[tuple[int, int]] = []
        store = self._log.store

        def put(connection: Connection) -> None:
            for messages, expected in latest:
                text = msgspec.json.encode((data_import.id, messages, expected)).decode()
                installation.put(connection, CHECK_FACT, text)

        async def note() -> None:
            while True:
                await asyncio.sleep(NOTED_SECONDS)
                await store.write(put)

        noting = asyncio.create_task(note())
        try:
            yield latest
        finally:
            noting.cancel()
            await asyncio.wait({noting})
            await store.write(lambda c: installation.forget(c, CHECK_FACT))


def _opener(data_import: DataImport, path: Path, token: str) -> Opened:
    match data_import.kind:
        case ImportKind.ZULIP:
            from tertulia.imports.zulip.source import ZulipExport

            return partial(ZulipExport, path)
        case ImportKind.SLACK:
            from tertulia.imports.slack.export import SlackExport

            return partial(SlackExport, path, token=token)
        case ImportKind.MATTERMOST:
            from tertulia.imports.mattermost.source import MattermostExport

            return partial(MattermostExport, path, team=data_import.team)
        case ImportKind.ROCKETCHAT:
            from tertulia.imports.rocketchat.source import RocketChatDump

            return partial(RocketChatDump, path)


def _summary(progress: Progress) -> ImportSummary:
    return msgspec.convert({"origin": progress.origin, **progress.report.to_json()}, ImportSummary)
