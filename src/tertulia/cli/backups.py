"""`tertulia backups`: the backups that are made each day; making one now."""

import asyncio
import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from tertulia.app.backups import make
from tertulia.app.config import load
from tertulia.cli import progress
from tertulia.cli.commands import Printed, show
from tertulia.cli.errors import UsageError
from tertulia.cli.interrupts import as_interrupts
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import Config
from tertulia.store import encrypted_backups, file_modes, kept_backups
from tertulia.store.kept_backups import KeptBackup

EXAMPLE = "Example: `tertulia backups --data-dir data`"
EXAMPLE_MAKE = "Example: `tertulia backups make --data-dir data`"
EXAMPLE_NEW_KEY = "Example: `tertulia backups new-key backups.key`"
_NICE: Final = 10

app = typer.Typer(
    help="List automatic backups, or make one now.",
    invoke_without_command=True,
    rich_markup_mode="markdown",
)


@app.callback(epilog=EXAMPLE)
def backups(
    context: typer.Context,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List the backups in the location set by backup_to, oldest first."""
    if context.invoked_subcommand is None:
        list_backups(data_dir, database_url, config, as_json)


@app.command("list", epilog=EXAMPLE)
def list_backups(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List the backups in the location set by backup_to, oldest first.

    Each backup was verified when it was made. Use `tertulia restore` to restore one.
    """
    settings = _settings(load({"data_dir": data_dir, "database_url": database_url}, file=config))
    found = asyncio.run(_found(settings))
    if as_json:
        typer.echo(msgspec.json.encode({"backups": found}).decode())
        return
    for one in found:
        typer.echo(_line(one))


@app.command("make", epilog=EXAMPLE_MAKE)
def make_one(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a backup now, verify it, store it where backup_to says, and delete expired backups
    there.

    The server does this every day at backup_hour, and can keep running.
    """
    settings = _settings(load({"data_dir": data_dir, "database_url": database_url}, file=config))
    with contextlib.suppress(OSError):
        os.nice(_NICE)  # The server comes first.
    with as_interrupts(), progress.shown() as report:
        made = asyncio.run(make(settings, report))
    if as_json:
        typer.echo(msgspec.json.encode(made).decode())
        return
    typer.echo(f"{_line(made.backup)}  verified")
    for name in made.deleted:
        typer.echo(f"Deleted {name}.")


@app.command("new-key", epilog=EXAMPLE_NEW_KEY)
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


def _settings(settings: Config) -> Config:
    if not settings.backup_to:
        raise UsageError("backup_to isn't set. Set it to a directory or an S3 bucket.")
    return settings


async def _found(settings: Config) -> list[KeptBackup]:
    place = settings.opened_backups()
    try:
        return await kept_backups.found(place)
    finally:
        await place.close()


def _line(one: KeptBackup) -> str:
    at = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{one.name}  {at}Z  {one.size / 1_000_000:.1f} MB"
