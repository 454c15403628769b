"""`tertulia backup`: everything in one file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tertulia.app.backups import back_up
from tertulia.app.config import load
from tertulia.cli import progress
from tertulia.cli.commands import Printed, show
from tertulia.cli.errors import UsageError
from tertulia.cli.interrupts import as_interrupts
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.model.counts import counted
from tertulia.store import encrypted_backups

EXAMPLE = (
    "Example: `tertulia backup --data-dir data tertulia.backup.zip`\n\n"
    "For another machine, encrypted: `tertulia backup --data-dir data --recipient age1… - |"
    " ssh backups 'cat > chat.zip.age'`"
)
STANDARD_OUTPUT = "-"
"""In place of a file."""


def backup(
    file: Annotated[
        Path,
        typer.Argument(help="File to write. It must not exist yet. Use `-` for standard output."),
    ],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    with_files: Annotated[
        bool,
        typer.Option(
            "--files/--no-files",
            help="Include uploaded files and pictures. Without them, make sure that they're"
            " backed up elsewhere, such as by the versioning of their bucket.",
        ),
    ] = True,
    compressed: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="Compress the backup. Turn this off for programs that store only what's new in"
            " each backup (restic, borg), so that they recognize unchanged data.",
        ),
    ] = True,
    recipients: Annotated[
        list[str] | None,
        typer.Option(
            "--recipient",
            metavar="RECIPIENT",
            help="Encrypt the backup so that only this age recipient can open it (age1…, or an"
            " SSH public key). Can be repeated. `tertulia backups new-key` creates a"
            " recipient.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Back up the organization to a single file. The server can keep running.

    The file has the same format for SQLite and PostgreSQL, so you can also use it to move an
    organization from one to the other. It contains the installation's secret, so that API keys
    still work after `tertulia restore`: keep it as safe as the server. It also contains uploaded
    files and pictures. Files in a bucket are downloaded, which can take a while.

    If you pipe the backup to another program, it's complete only if this command exits with code 0.
    After a restore, clients register new event queues by themselves.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    target = sys.stdout.buffer if str(file) == STANDARD_OUTPUT else file
    if target is not file and sys.stdout.isatty():
        raise UsageError(
            "A backup can't be written to a terminal. Name a file, or pipe the"
            " output to another program."
        )
    if recipients and not compressed:
        raise UsageError(
            "--no-compress doesn't help with --recipient, because encrypted"
            " backups differ completely each time. Use only one of the two"
            " options."
        )
    try:
        of_each = [encrypted_backups.recipients(one) for one in recipients or ()]
    except ValueError as error:
        raise UsageError(f"--recipient: {error}.") from None
    if not all(of_each):  # A variable that is not set, say: open is what it must not be.
        raise UsageError("--recipient is empty. Nothing was written.")
    to = [one for some in of_each for one in some]
    with as_interrupts(), progress.shown() as report:
        manifest = back_up(
            settings, target, report, with_files=with_files, compressed=compressed, encrypt_to=to
        )
    rows = sum(table.rows for table in manifest.tables)
    lines = [
        f"Wrote {file}: {counted(rows, 'row')} from {counted(len(manifest.tables), 'table')},"
        f" {counted(manifest.files, 'file')}, and the secret."
    ]
    if manifest.files_left_at:
        lines.append(
            f"The backup doesn't include uploaded files. They're in {manifest.files_left_at}."
        )
    written = {
        "file": str(file),
        "rows": rows,
        "files": manifest.files,
        "files_left_at": manifest.files_left_at,
        "encrypted": bool(to),
    }
    show(Printed(written, lines), as_json=as_json, err=target is not file)
