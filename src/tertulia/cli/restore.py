"""`tertulia restore`: an organization from a backup."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from tertulia.app.config import load
from tertulia.cli import progress
from tertulia.cli.commands import Printed, show
from tertulia.cli.interrupts import as_interrupts
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import Config
from tertulia.service.vault import SECRET_FILE, VaultError, load_secret, save_secret
from tertulia.store import encrypted_backups, file_modes, transfer
from tertulia.store.scratch import nameless_file, scratch_directory
from tertulia.store.store import database_at

EXAMPLE = (
    "Example: `tertulia restore --data-dir new tertulia.backup.zip`\n\n"
    "Moving to PostgreSQL: `tertulia restore --data-dir data-pg --database-url"
    " postgresql://tertulia@localhost/tertulia tertulia.backup.zip`"
)


def restore(
    file: Annotated[Path, typer.Argument(help="Backup file, as written by `tertulia backup`.")],
    identity: Annotated[
        Path | None,
        typer.Option(
            "--identity",
            metavar="FILE",
            help="File with the key that opens an encrypted backup, from `tertulia backups"
            " new-key` or age-keygen, or an SSH private key.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup of either kind of database into an empty database and data directory.

    If it fails, nothing is restored. The secret is restored into the data directory, so that
    passwords and API keys of the backup work. Backups of a newer Tertulia are rejected, and those
    of an older one are migrated.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    with (
        as_interrupts(),
        _decrypted(file, identity, settings.data_path) as decrypted,
        contextlib.closing(transfer.Backup(file, decrypted)) as backup,
    ):
        file_modes.directory(settings.data_path)
        placed = _place_secret(settings, backup.secret)
        try:
            with progress.shown() as report:
                transfer.restore(
                    database_at(settings.data_path, settings.database_url),
                    *settings.opened_files(),
                    backup,
                    lambda line: typer.echo(line, err=True),
                    report,
                )
        except BaseException:
            if placed is not None:
                placed.unlink()
            raise
    written = datetime.fromtimestamp(backup.manifest.created_at, UTC).strftime("%Y-%m-%d %H:%M")
    lines = []
    if left_at := backup.manifest.files_left_at:
        lines.append(
            f"The backup doesn't include uploaded files. They were in {left_at}, and are read from"
            " where the settings say."
        )
    lines.append(f"Restored {file}, written {written} UTC. Run `tertulia check` to check it.")
    restored = {
        "file": str(file),
        "created_at": backup.manifest.created_at,
        "files": backup.manifest.files,
        "files_left_at": left_at,
    }
    show(Printed(restored, lines), as_json=as_json)


@contextlib.contextmanager
def _decrypted(file: Path, identity: Path | None, data_path: Path) -> Iterator[BinaryIO | None]:
    """What is in the file, as long as the context lasts; None where it is not encrypted."""
    if identity is None or not encrypted_backups.is_encrypted(file):
        yield None
        return
    with scratch_directory(data_path) as directory, nameless_file(directory) as plain:
        encrypted_backups.decrypt_file(file, plain, identity)
        yield plain


def _place_secret(settings: Config, secret: str) -> Path | None:
    """Put the secret in place. Returns the file, if it was made. VaultError where there is
    another."""
    path = settings.data_path / SECRET_FILE
    if not settings.secret and not path.exists():
        save_secret(path, secret)
        return path
    if load_secret(settings.data_path, settings.secret or None, create=False) != secret:
        where = "TERTULIA_SECRET or a setting" if settings.secret else f"{path}"
        raise VaultError(
            f"{where} contains a different secret than the backup, whose API keys wouldn't work."
            " Remove that secret, or restore into another data directory. Nothing was changed."
        )
    return None
