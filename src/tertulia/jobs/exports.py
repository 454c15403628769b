"""Making data exports, one at a time, and deleting their files when they expire. An export is made
in a temporary directory, and its file is then stored with the other files. If the node stops before
that, the export is made again after the restart."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tertulia.domain.accounts import data_exports
from tertulia.domain.organization import exports as realm_exports
from tertulia.jobs.leases import JobLease
from tertulia.jobs.programs import run_command
from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.model.changes import DataExportSet, DataExportsRemoved
from tertulia.model.errors import Refused
from tertulia.model.exports import DataExport, ExportKind
from tertulia.service.node import Node
from tertulia.service.personal_data import export_person
from tertulia.store.backups import temporary_directory
from tertulia.store.files import EXPORTS

logger = logging.getLogger("tertulia.exports")

Maker = Callable[[Node, DataExport, Path], Awaitable[None]]
"""Writes an export to a new file at the path. Raises Refused if it can't be made."""


async def _export_realm(option: str, node: Node, export: DataExport, path: Path) -> None:
    await run_command(node.config, "export", str(path), option)


MAKERS: Final[Mapping[ExportKind, Maker]] = {
    ExportKind.PERSON: export_person,
    # In a separate process, because it takes much longer.
    ExportKind.PUBLIC: partial(_export_realm, "--public-only"),
    ExportKind.CONSENT: partial(_export_realm, "--with-consent"),
}

LEASE: Final = JobLease("exports")
ROUND_SECONDS: Final = 12 * 3600.0
"""The longest duration of an export in seconds."""
PERIOD_SECONDS: Final = 600.0
ATTEMPTS: Final = 3
"""The number of attempts after which an export is given up."""
_GIVEN_UP: Final = "The server ran into a problem."


def exports(node: Node) -> Job:
    """Return the job that makes pending exports, and deletes files of deleted ones."""
    set_aside = FailedItems()

    async def work() -> None:
        await delete_unused_files(node)
        while (export := data_exports.pending_export(node.state)) is not None:
            if set_aside.is_resting(export.id):
                return
            await _attempt(node, export, set_aside)
        await delete_unused_files(node)

    async def once() -> float:
        await node.log.submit(None, data_exports.expire)
        await node.log.submit(None, realm_exports.expire)
        set_aside.keep_only(export.id for export in node.state.data_exports if export.is_pending)
        if not await LEASE.hold(node.log, work):
            return PERIOD_SECONDS
        return min(set_aside.next_attempt() or PERIOD_SECONDS, PERIOD_SECONDS)

    job = Job("data exports", once, round_seconds=ROUND_SECONDS, set_aside=set_aside)
    job.wake_on(node.log, DataExportSet, DataExportsRemoved)
    return job


async def _attempt(node: Node, export: DataExport, set_aside: FailedItems) -> None:
    try:
        await make(node, export)
    except Refused as refusal:
        await _give_up(node, export, str(refusal))
        set_aside.done(export.id)
    except Exception as error:
        if is_outage(error):
            raise
        logger.exception("could not make data export %s", export.id)
        if set_aside.failed(export.id, error) >= ATTEMPTS:
            await _give_up(node, export, _GIVEN_UP)
            set_aside.done(export.id)
    else:
        set_aside.done(export.id)


async def _give_up(node: Node, export: DataExport, reason: str) -> None:
    await node.log.submit(None, data_exports.fail, export.id, reason, node.renderer.render)


async def make(node: Node, export: DataExport) -> None:
    """Make a pending export, and store its file. If someone is erased in the meantime, the export
    stays pending."""
    erased = node.state.users.erased_count
    with temporary_directory(node.config.data_path) as directory:
        made = directory / "export"
        await MAKERS[export.kind](node, export, made)
        size = made.stat().st_size
        path = f"{EXPORTS}/{secrets.token_hex(20)}"
        await node.files.put_from(path, made)
    finished = partial(data_exports.finish, render=node.renderer.render)
    if await node.log.submit(None, finished, export.id, path, size, erased):
        logger.info("made a data export", extra={"fields": {"id": export.id, "size": size}})


async def delete_unused_files(node: Node) -> None:
    """Delete files of exports that were deleted, or that are no longer wanted."""
    stored = [stored_file.path async for stored_file in node.files.below(EXPORTS)]
    if not stored:
        return
    await node.log.catch_up()
    used = {export.path for export in node.state.data_exports}
    for path in stored:
        if path not in used:
            await node.files.delete(path)
