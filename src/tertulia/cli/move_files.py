"""`tertulia move-files`: files from the disk into a bucket, and back."""

import asyncio
from typing import Annotated

import typer

from tertulia.app.config import load
from tertulia.app.founding import founded_database
from tertulia.cli import progress
from tertulia.cli.commands import Printed, show
from tertulia.cli.errors import Failed, UsageError
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.model.counts import counted
from tertulia.store.file_moving import Moved, NotTheSame
from tertulia.store.file_moving import move as move_all
from tertulia.store.files import Files
from tertulia.store.moving_files import MovingFiles
from tertulia.store.transfer import Progress

EXAMPLE = (
    'Example: set `files_url = "s3://chat-files?region=eu-central-1"` and `files_also_at ='
    ' "disk"` in tertulia.toml, restart the server, and run `tertulia move-files --data-dir'
    " data`"
)


def move_files(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Delete files at the old location that exist at the new one.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move uploaded files and pictures from files_also_at to files_url. The server can keep
    running.

    Set both, and restart all servers. From then on, they write to files_url, and read from there
    or, if a file is missing, from files_also_at. This command copies missing files and reads each
    copy to verify it. You can interrupt it and run it again at any time. When nothing is left to
    copy, run it with --delete to empty the old location if you want to, remove files_also_at, and
    restart the servers.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    with founded_database(settings):
        pass  # There is something to move.
    files, _ = settings.opened_files()
    if not isinstance(files, MovingFiles):
        raise UsageError(
            "Set files_also_at to the current location of the files and files_url to the new"
            " one. `tertulia move-files --help` explains the steps."
        )
    with progress.shown() as report:
        try:
            moved = asyncio.run(_moved(files.others, files.files, delete, report))
        except NotTheSame as error:
            raise Failed(str(error)) from None
    megabytes = moved.size / 1_000_000
    lines = [
        f"Copied {counted(moved.files, 'file')} ({megabytes:.1f} MB) from"
        f" {files.others.description} to {files.files.description}; {moved.present} already"
        " existed."
    ]
    if delete:
        lines.append(f"Deleted {counted(moved.deleted, 'file')} from {files.others.description}.")
    show(Printed(moved, lines), as_json=as_json)


async def _moved(old: Files, new: Files, delete: bool, report: Progress) -> Moved:
    try:
        return await move_all(
            old, new, delete=delete, progress=lambda done, total: report("files", done, total)
        )
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await old.close()
        await new.close()
