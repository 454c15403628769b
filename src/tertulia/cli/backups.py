"""`tertulia backups` and `queues`, and their other names: `backup`, `restore`, and `end-queues`."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from tertulia.app.backups import back_up, make
from tertulia.app.founding import NoOrganization, is_founded
from tertulia.cli.commands import (
    Printed,
    add_default_command,
    configured,
    done,
    group,
    report,
    show,
)
from tertulia.cli.errors import UsageError
from tertulia.cli.options import AsJson
from tertulia.cli.tables import moment, utc
from tertulia.cli.terminal import as_interrupts, progress_bars
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.service.credentials import SECRET_FILE, VaultError, load_secret, save_secret
from tertulia.store import backups as encrypted_backups
from tertulia.store import backups as kept_backups
from tertulia.store import file_modes, installation, transfer
from tertulia.store.backups import StoredBackup, anonymous_file, temporary_directory
from tertulia.store.schema_upgrade import migrate
from tertulia.store.store import database_at

EXAMPLES = {
    "backup": "Example: `tertulia backup --data-dir data tertulia.backup.zip`\n\n"
    "For another machine, encrypted: `tertulia backup --data-dir data --recipient age1… - |"
    " ssh backups 'cat > chat.zip.age'`",
    "restore": "Example: `tertulia restore --data-dir new tertulia.backup.zip`\n\n"
    "Moving to PostgreSQL: `tertulia restore --data-dir data-pg --database-url"
    " postgresql://tertulia@localhost/tertulia tertulia.backup.zip`",
    "end-queues": "Example: `tertulia end-queues --data-dir data`",
}
STANDARD_OUTPUT: Final = "-"
"""The file name that means standard output."""
_SAVE: Final = "tertulia backups save"
_NICENESS: Final = 10


@configured
def backup(
    config: Config,
    file: Annotated[
        Path,
        typer.Argument(help="File to write. It must not exist yet. Use `-` for standard output."),
    ],
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
    still work after `tertulia backups restore`: keep it as safe as the server. It also contains
    uploaded files and pictures. Files in a bucket are downloaded, which can take a while.

    If you pipe the backup to another program, it's complete only if this command exits with code 0.
    After a restore, clients register new event queues by themselves.
    """
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
        of_each = [encrypted_backups.age_recipients(recipient) for recipient in recipients or ()]
    except ValueError as error:
        raise UsageError(f"--recipient: {error}.") from None
    if not all(of_each):  # An unset variable must not lead to an open backup.
        raise UsageError("--recipient is empty. Nothing was written.")
    to = [value for some in of_each for value in some]
    with as_interrupts(), progress_bars() as progress:
        manifest = back_up(
            config, target, progress, with_files=with_files, compressed=compressed, encrypt_to=to
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


queues = group(
    "queues", "Manage clients' event queues: end them after you restored an older database."
)
backups = typer.Typer(
    name="backups", help="Make, list, and restore backups.", rich_markup_mode="markdown"
)


@configured
async def list_backups(config: Config) -> Printed:
    """List the backups in the location set by backup_to, oldest first.

    Each backup was verified when it was made. Use `tertulia backups restore` to restore one.
    """
    _require_place(config)
    storage = config.opened_backups()
    try:
        stored = await kept_backups.stored_backups(storage)
    finally:
        await storage.close()
    return Printed({"backups": stored}, list(map(_line, stored)))


@configured
def make_backup(config: Config) -> Printed:
    """Make a backup now, verify it, store it where backup_to says, and delete expired backups
    there.

    The server does this every day at backup_hour, and can keep running.
    """
    _require_place(config)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)  # The server has priority.
    with as_interrupts(), progress_bars() as progress:
        made = asyncio.run(make(config, progress))
    deleted = (f"Deleted {name}." for name in made.deleted)
    return Printed(made, [f"{_line(made.backup)}  verified", *deleted])


add_default_command(backups, list_backups, "Example: `tertulia backups --data-dir data`")
backups.command("save", epilog=EXAMPLES["backup"].replace("tertulia backup", _SAVE))(backup)
backups.command("make", epilog="Example: `tertulia backups make --data-dir data`")(make_backup)


@backups.command("new-key", epilog="Example: `tertulia backups new-key backups.key`")
def new_key(
    file: Annotated[
        Path, typer.Argument(help="File to write the private key to. It must not exist yet.")
    ],
    as_json: AsJson = False,
) -> None:
    """Create a key for encrypted backups: print its recipient, and write the private key to a file.

    Set backup_recipients to the recipient. Keep the file in a safe place off this machine: without
    it, no one can open the backups. (The file has the format of age-keygen.)
    """
    identity, recipient = encrypted_backups.new_identity()
    try:
        with open(file, "x", encoding="utf-8", opener=file_modes.opener) as opened:
            opened.write(f"# public key: {recipient}\n{identity}\n")
    except FileExistsError:
        raise UsageError(f"{file} already exists. Name a file that doesn't exist yet.") from None
    except OSError as error:
        raise UsageError(f"Can't write {file}: {error.strerror}.") from None
    lines = [
        recipient,
        f"{file} opens backups for this recipient. Keep it in a safe place off this machine.",
    ]
    show(Printed({"recipient": recipient, "file": str(file)}, lines), as_json=as_json)


def _require_place(config: Config) -> None:
    if not config.backup_to:
        raise UsageError("backup_to isn't set. Set it to a directory or an S3 bucket.")


def _line(backup: StoredBackup) -> str:
    return f"{backup.name}  {moment(backup.at)}  {backup.size / 1_000_000:.1f} MB"


@backups.command(
    "restore", epilog=EXAMPLES["restore"].replace("tertulia restore", "tertulia backups restore")
)
@configured
def restore(
    config: Config,
    file: Annotated[
        Path, typer.Argument(help="Backup file, as written by `tertulia backups save`.")
    ],
    identity: Annotated[
        Path | None,
        typer.Option(
            "--identity",
            metavar="FILE",
            help="File with the key that opens an encrypted backup, from `tertulia backups"
            " new-key` or age-keygen, or an SSH private key.",
        ),
    ] = None,
) -> Printed:
    """Restore a backup of either kind of database into an empty database and data directory.

    If it fails, nothing is restored. The secret is restored into the data directory, so that
    passwords and API keys of the backup work. Backups of a newer Tertulia are rejected, and those
    of an older one are migrated.
    """
    with (
        as_interrupts(),
        _decrypted(file, identity, config.data_path) as decrypted,
        contextlib.closing(transfer.Backup(file, decrypted)) as backup,
    ):
        file_modes.directory(config.data_path)
        placed = _place_secret(config, backup.secret)
        try:
            with progress_bars() as progress:
                transfer.restore(
                    database_at(config.data_path, config.database_url),
                    *config.opened_files(),
                    backup,
                    report,
                    progress,
                )
        except BaseException:
            if placed is not None:
                placed.unlink()
            raise
    lines = []
    if left_at := backup.manifest.files_left_at:
        lines.append(
            f"The backup doesn't include uploaded files. They were in {left_at}, and are read from"
            " where the settings say."
        )
    lines.append(
        f"Restored {file}, written {utc(backup.manifest.created_at)}. Run `tertulia check` to check"
        " it."
    )
    restored = {
        "file": str(file),
        "created_at": backup.manifest.created_at,
        "files": backup.manifest.files,
        "files_left_at": left_at,
    }
    return Printed(restored, lines)


@contextlib.contextmanager
def _decrypted(file: Path, identity: Path | None, data_path: Path) -> Iterator[BinaryIO | None]:
    """Decrypt the file for the duration of the context, and yield its content; None if it isn't
    encrypted."""
    if identity is None or not encrypted_backups.is_encrypted(file):
        yield None
        return
    with temporary_directory(data_path) as directory, anonymous_file(directory) as plain:
        encrypted_backups.decrypt_file(file, plain, identity)
        yield plain


def _place_secret(config: Config, secret: str) -> Path | None:
    """Store the secret. Return its file if it's new. Raise VaultError if another secret exists."""
    path = config.data_path / SECRET_FILE
    if not config.secret and not path.exists():
        save_secret(path, secret)
        return path
    if load_secret(config.data_path, config.secret or None, create=False) != secret:
        where = "TERTULIA_SECRET or a setting" if config.secret else f"{path}"
        raise VaultError(
            f"{where} contains a different secret than the backup, whose API keys wouldn't work."
            " Remove that secret, or restore into another data directory. Nothing was changed."
        )
    return None


@queues.command("end", epilog="Example: `tertulia queues end --data-dir data`")
@configured
def end_queues(config: Config) -> Printed:
    """End all event queues, after you restored an older state of the database.

    After such a restore, event IDs are assigned a second time, and clients that continue from their
    last event would miss changes. This command gives the log a new identity, so that every client
    registers again by itself. Servers can keep running: they notice within seconds.
    """
    database = database_at(config.data_path, config.database_url)
    if not is_founded(config):
        raise NoOrganization(config.database_location)
    migrate(database, report)
    with contextlib.closing(database.connect(readonly=False)) as connection:
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        ((count,),) = connection.query("SELECT COUNT(*) FROM queues")
        installation.renew_history(connection)
        connection.commit()
    return done(f"Ended {counted(count, 'event queue')}. The log has a new identity.")
