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
        typer.Argument(
            help="The file to write, which must not exist yet; `-` for standard output."
        ),
    ],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    with_files: Annotated[
        bool,
        typer.Option(
            "--files/--no-files",
            help="Whether uploaded files and pictures are in it. Without them, keep what is where"
            " they are (a bucket with its own versions, say): nothing else has them.",
        ),
    ] = True,
    compressed: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="Without it, programs that keep of each backup only what is new (restic, borg)"
            " find in it what they have.",
        ),
    ] = True,
    recipients: Annotated[
        list[str] | None,
        typer.Option(
            "--recipient",
            metavar="RECIPIENT",
            help="Encrypt it, so that only this recipient of age can open it (age1…, or a public"
            " key of SSH). May be given several times. `tertulia backups new-key` makes one.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the organization to a file, as it is at one moment; the server may go on.

    The file is the same for SQLite and PostgreSQL, so that it also moves an organization from one
    to the other. The installation's secret is in it, so that API keys still work after
    `tertulia restore`: keep it as safe as the server. Uploaded files and pictures are in it too,
    wherever they are: out of a bucket they are fetched, which may take long.
    What is piped elsewhere is whole when this ends with exit code 0, and not before.
    Clients register their event queues anew after a restore.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    target = sys.stdout.buffer if str(file) == STANDARD_OUTPUT else file
    if target is not file and sys.stdout.isatty():
        raise UsageError("A backup is no text for a terminal: name a file, or pipe it elsewhere.")
    if recipients and not compressed:
        raise UsageError("What is encrypted differs wholly each time: --no-compress is of no use.")
    try:
        of_each = [encrypted_backups.recipients(one) for one in recipients or ()]
    except ValueError as error:
        raise UsageError(f"--recipient: {error}.") from None
    if not all(of_each):  # A variable that is not set, say: open is what it must not be.
        raise UsageError("--recipient names nobody: it is empty. Nothing was written.")
    to = [one for some in of_each for one in some]
    with as_interrupts(), progress.shown() as report:
        manifest = back_up(
            settings, target, report, with_files=with_files, compressed=compressed, encrypt_to=to
        )
    rows = sum(table.rows for table in manifest.tables)
    lines = [
        f"Wrote {file}: {counted(rows, 'row')} of {counted(len(manifest.tables), 'table')},"
        f" {counted(manifest.files, 'file')}, and the secret."
    ]
    if manifest.files_left_at:
        lines.append(f"The files are not in it: {manifest.files_left_at} has them.")
    written = {
        "file": str(file),
        "rows": rows,
        "files": manifest.files,
        "files_left_at": manifest.files_left_at,
        "encrypted": bool(to),
    }
    show(Printed(written, lines), as_json=as_json, err=target is not file)
