"""Running imports that owners start in the browser, in a separate process.

The process (`tertulia import requested`) checks or imports, and writes how it ended to the log. If
it or its node is killed, the next one continues where the last commit of the import was. The
uploaded file is in the store of files, which all nodes share: a node that can't find it leaves the
import to the others.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from tertulia.domain.organization import imports as domain
from tertulia.imports import canceling
from tertulia.imports.lock import DIRECTORY, ImportBusy, delete_extracted, import_lock
from tertulia.jobs.leases import JobLease
from tertulia.jobs.programs import ProgramFailed, run_command
from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.log.log import Log
from tertulia.model.changes import DataImportSet, DataImportsRemoved
from tertulia.model.imports import DataImport
from tertulia.service.node import Node
from tertulia.store.files import IMPORTS
from tertulia.store.notes import QueuesForgotten
from tertulia.store.store import READ_SECONDS

logger = logging.getLogger("tertulia.imports")

T = TypeVar("T")

LEASE: Final = JobLease("import", 60.0, 10.0)
"""The lease of the importing process, which the command line takes too."""
ROUND_SECONDS: Final = 48 * 3600.0
"""The number of seconds after which the process is restarted, and continues."""
PERIOD_SECONDS: Final = 3600.0
BUSY_SECONDS: Final = 20.0
"""Seconds until the next attempt while another process imports, or the file isn't on this node."""
LOOK_SECONDS: Final = 1.0
"""The interval, in seconds, at which the job checks whether the import was canceled."""
ATTEMPTS: Final = 5
"""The number of crashes of the process in a row after which the import fails."""
UNUSED_SECONDS: Final = 86_400
"""The number of seconds after which uploaded files that no import uses are deleted."""
BUSY: Final = os.EX_TEMPFAIL
"""The exit code of a process that found another import running."""


async def only_import(log: Log, data_path: Path, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` as the only import of the database. The caller has the lock of the data directory
    (`imports.lock.import_lock`). Raise ImportBusy."""
    results: list[T] = []

    async def do() -> None:
        results.append(await work())

    if not await LEASE.hold(log, do, _location(data_path)):
        raise ImportBusy(
            "Another import into this organization is running. Wait until it is finished."
        )
    return results[0]


def _location(data_path: Path) -> str:
    return f"{socket.gethostname()}:{data_path.resolve()}"


def imports(node: Node) -> Job:
    """Return the job that checks and imports owners' uploads, and deletes files that aren't needed
    anymore."""
    set_aside = FailedItems()
    known = set[str]()
    """The files that imports used at the last look."""

    async def once() -> float:
        nonlocal known
        await node.log.submit(None, domain.expire)
        known, before = _used(node), known
        await _delete(node, before - known)
        data_import = domain.running_import(node.state)
        set_aside.keep_only([] if data_import is None else [data_import.id])
        if data_import is None:
            await _delete_unused(node)
            with contextlib.suppress(ImportBusy):  # The command line is importing.
                await _tidy(node)
            return PERIOD_SECONDS
        if set_aside.is_resting(data_import.id):
            return set_aside.next_attempt() or BUSY_SECONDS
        if await _is_busy(node) or await node.files.found(data_import.path) is None:
            return BUSY_SECONDS
        return await _attempt(node, data_import, set_aside)

    job = Job("imports", once, round_seconds=ROUND_SECONDS, set_aside=set_aside)
    job.wake_on(node.log, DataImportSet, DataImportsRemoved)
    return job


async def _is_busy(node: Node) -> bool:
    """Whether another process imports: on another machine, or with this data directory."""
    work, location = node.config.data_path / DIRECTORY, _location(node.config.data_path)
    now = node.log.clock()
    if await node.store.read_log(lambda c: LEASE.is_held(c, now, location), READ_SECONDS):
        return True
    try:
        await asyncio.to_thread(_delete_extracted, work)
    except ImportBusy:
        return True
    return False


async def _attempt(node: Node, data_import: DataImport, set_aside: FailedItems) -> float:
    """Run the process. Return the seconds until the next look."""
    try:
        await _run(node, data_import)
    except ProgramFailed as error:
        if error.code == BUSY:
            return BUSY_SECONDS
        logger.error("the process of import %s ended: %s", data_import.id, error)
        if set_aside.failed(data_import.id, error) >= ATTEMPTS:
            await fail(
                node.log, data_import.id, "The server ran into a problem. Its log says more."
            )
            set_aside.done(data_import.id)
        return set_aside.next_attempt() or 0.0
    except Exception as error:
        if is_outage(error):
            raise
        set_aside.failed(data_import.id, error)
        raise
    set_aside.done(data_import.id)
    return 0.0


async def fail(log: Log, import_id: int, reason: str) -> None:
    """Record that the import failed. `reason` is a sentence."""
    is_importing = domain.is_started(log.state, import_id)
    notes = [QueuesForgotten()] if is_importing else []
    await log.submit(None, domain.fail, import_id, reason, notes=notes)


async def _run(node: Node, data_import: DataImport) -> None:
    """Run the process until it ends, or the import is canceled."""
    running = run_command(node.config, "import", "requested", str(data_import.id))
    process = asyncio.create_task(running)
    try:
        while not (await asyncio.wait({process}, timeout=LOOK_SECONDS))[0]:
            now = node.state.data_imports.get(data_import.id)
            if now is None or (now.ended_at and not now.summary and not now.reason):
                logger.info("import %s was canceled", data_import.id)
                return
        await process
    finally:
        process.cancel()
        await asyncio.wait({process})


async def _tidy(node: Node) -> None:
    """Complete the records that a canceled import left incomplete."""
    progress = await canceling.newest(node.log)
    if progress is None or progress.step == "done" or not progress.request_id:
        return
    work = node.config.data_path / DIRECTORY
    with import_lock(work):
        await only_import(node.log, node.config.data_path, lambda: canceling.tidy(node.log))


async def _delete_unused(node: Node) -> None:
    """Delete extracted files, and uploaded files that no import uses, if they are old."""
    work = node.config.data_path / DIRECTORY
    if await asyncio.to_thread(work.is_dir):
        with contextlib.suppress(ImportBusy):  # The command line is using it.
            await asyncio.to_thread(_delete_extracted, work)
    before = node.log.clock() - UNUSED_SECONDS
    old = {
        stored_file.path
        async for stored_file in node.files.below(IMPORTS)
        if stored_file.modified < before
    }
    if old:
        await node.log.catch_up()
        await _delete(node, old - _used(node))


def _used(node: Node) -> set[str]:
    return {data_import.path for data_import in node.state.data_imports if data_import.path}


async def _delete(node: Node, paths: set[str]) -> None:
    for path in sorted(paths):
        await node.files.delete(path)


def _delete_extracted(work: Path) -> None:
    with import_lock(work):
        delete_extracted(work, UNUSED_SECONDS)
