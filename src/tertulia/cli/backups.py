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
    help="List the backups that the server makes each day, where backup_to says; make one now.",
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
    """List the backups at the place that the setting backup_to names, the oldest first.

    Each could be restored when it was made. `tertulia restore` takes such a file.
    """
    if context.invoked_subcommand is None:
        list_backups(data_dir, database_url, config, as_json)


@app.command("list", epilog=EXAMPLE)
def list_backups(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List the backups at the place that the setting backup_to names, the oldest first."""
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
    """Make a backup now, see that it can be restored, put it where backup_to says, and delete there
    what is not to be kept.

    The server does that by itself each day at backup_hour. It may go on meanwhile.
    """
    settings = _settings(load({"data_dir": data_dir, "database_url": database_url}, file=config))
    with contextlib.suppress(OSError):
        os.nice(_NICE)  # The server comes first.
    with as_interrupts(), progress.shown() as report:
        made = asyncio.run(make(settings, report))
    if as_json:
        typer.echo(msgspec.json.encode(made).decode())
        return
    typer.echo(f"{_line(made.backup)}: it can be restored.")
    for name in made.deleted:
        typer.echo(f"Deleted {name}.")


@app.command("new-key", epilog=EXAMPLE_NEW_KEY)
def new_key(
    file: Annotated[
        Path, typer.Argument(help="The file to write the secret half to, which must not exist yet.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a key for encrypted backups: print its recipient, and write its identity to a file.

    Put the recipient into the setting backup_recipients. Keep the file in a safe place that is not
    this machine: without it no backup can be opened, by anybody. (It is a file as age-keygen
    writes it.)
    """
    identity, recipient = encrypted_backups.new_identity()
    try:
        with open(file, "x", encoding="utf-8", opener=file_modes.opener) as opened:
            opened.write(f"# public key: {recipient}\n{identity}\n")
    except FileExistsError:
        raise UsageError(f"{file} exists already. Name a file that does not.") from None
    except OSError as error:
        raise UsageError(f"Cannot write {file}: {error.strerror}.") from None
    lines = [recipient, f"{file} opens what is encrypted to it. Keep it elsewhere, and safe."]
    show(Printed({"recipient": recipient, "file": str(file)}, lines), as_json=as_json)


def _settings(settings: Config) -> Config:
    if not settings.backup_to:
        raise UsageError("The setting backup_to says no place: a directory, or a bucket of S3.")
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
