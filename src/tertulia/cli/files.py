"""`tertulia files` and `tertulia move-files`: uploaded files, and where they're stored."""

import asyncio
from typing import Annotated, Any, Final

import typer

from tertulia.app.founding import founded_database
from tertulia.cli.accounts import account_called
from tertulia.cli.commands import Column, Printed, command, configured, done, group, listing
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.cli.options import finite
from tertulia.cli.tables import contains, day, mib
from tertulia.cli.terminal import progress_bars
from tertulia.model.attachments import Attachment
from tertulia.model.errors import Refused
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.store.file_moves import CopyMismatch, MoveResult, MovingFiles
from tertulia.store.file_moves import move as move_all
from tertulia.store.files import Files
from tertulia.store.transfer import Progress
from tertulia.wire.api.attachments import delete_attachment

EXAMPLES = {
    "move-files": 'Example: set `files_url = "s3://chat-files?region=eu-central-1"` and'
    ' `files_also_at = "disk"` in tertulia.toml, restart the server, and run `tertulia move-files'
    " --data-dir data`"
}
files = group("files", "Manage uploaded files: list, find, and delete them.")
_MIB = 2**20
_DAY = 86400


_COLUMNS: Final[dict[str, Column]] = {
    "ID": "id",
    "NAME": "name",
    "OWNER": "email",
    "SIZE": ("size", mib),
    "TYPE": "media_type",
    "UPLOADED": ("uploaded_at", day),
    "MESSAGES": "messages",
}


def _shown(state: State, attachment: Attachment) -> dict[str, Any]:
    return {
        "id": attachment.id,
        "name": attachment.name,
        "email": state.users[attachment.user_id].address,
        "size": attachment.size,
        "media_type": attachment.media_type,
        "uploaded_at": attachment.created_at,
        "messages": state.uploads.claims_of.count(attachment.id),
    }


@command(files, "list", "files list --of ben@example.com --least 10 --data-dir data")
async def list_files(
    caller: Caller,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]…", help="Show only files whose name contains all of these words."
        ),
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="USER", help="Show only files of this account.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--type", help="Show only files whose media type starts with this, such as video/."
        ),
    ] = "",
    least: Annotated[
        float,
        typer.Option(
            "--least",
            metavar="MIB",
            min=0,
            callback=finite,
            help="Show only files of at least this size.",
        ),
    ] = 0,
    older: Annotated[
        int,
        typer.Option(
            "--older", metavar="DAYS", min=0, help="Show only files that are at least this old."
        ),
    ] = 0,
    unlinked: Annotated[
        bool, typer.Option("--unlinked", help="Show only files that no message links to.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Maximum number of files to show.")
    ] = 100,
) -> Printed:
    """List uploaded files, largest first, or find some by name, person, type, size, or age."""
    state = caller.state
    whose = None if of is None else account_called(state, of).id
    matches = [
        attachment
        for attachment in (state.attachments if whose is None else state.uploads.of_user[whose])
        if attachment.size >= least * _MIB
        and attachment.media_type.startswith(kind)
        and attachment.created_at <= caller.now - older * _DAY
        and contains(attachment.name, words)
        and not (unlinked and state.uploads.claims_of.count(attachment.id))
    ]
    matches.sort(key=lambda attachment: (-attachment.size, attachment.id))
    size = sum(match.size for match in matches)
    rows = [_shown(state, match) for match in matches[:limit]]
    total = f"{counted(len(matches), 'file')}, {mib(size)}"
    if len(matches) > limit:
        total += f"; showing the largest {limit}"
    return Printed({"files": rows, "bytes": size}, [*listing("files", _COLUMNS, rows).lines, total])


@command(files, "remove", "files remove 17 --data-dir data")
async def remove(
    caller: Caller,
    file_id: Annotated[int, typer.Argument(metavar="ID", help="ID, as shown by `files list`.")],
) -> Printed:
    """Delete a file. Messages keep their links to it, which no longer work."""
    file = caller.state.attachments.get(file_id)
    if file is None:
        raise Refused(f"No file has the ID {file_id}.")
    await delete_attachment(caller, file_id)
    return done(f"{file.name} is deleted.")


@files.command("move", epilog=EXAMPLES["move-files"].replace("move-files", "files move"))
@configured
def move_files(
    config: Config,
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Delete files at the old location that exist at the new one.",
        ),
    ] = False,
) -> Printed:
    """Move uploaded files and pictures from files_also_at to files_url. The server can keep
    running.

    Set both, and restart all servers. From then on, they write to files_url, and read from there
    or, if a file is missing, from files_also_at. This command copies missing files and reads each
    copy to verify it. You can interrupt it and run it again at any time. When nothing is left to
    copy, run it with --delete to empty the old location if you want to, remove files_also_at, and
    restart the servers.
    """
    with founded_database(config):
        pass  # This raises if there is no organization.
    storages, _ = config.opened_files()
    if not isinstance(storages, MovingFiles):
        raise UsageError(
            "Set files_also_at to the current location of the files and files_url to the new"
            " one. `tertulia files move --help` explains the steps."
        )
    with progress_bars() as report:
        try:
            moved = asyncio.run(_moved(storages.others, storages.files, delete, report))
        except CopyMismatch as error:
            raise CommandFailed(str(error)) from None
    megabytes = moved.size / 1_000_000
    lines = [
        f"Copied {counted(moved.files, 'file')} ({megabytes:.1f} MB) from"
        f" {storages.others.description} to {storages.files.description}; {moved.present} already"
        " existed."
    ]
    if delete:
        lines.append(
            f"Deleted {counted(moved.deleted, 'file')} from {storages.others.description}."
        )
    return Printed(moved, lines)


async def _moved(old: Files, new: Files, delete: bool, report: Progress) -> MoveResult:
    try:
        return await move_all(
            old, new, delete=delete, progress=lambda done, total: report("files", done, total)
        )
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await old.close()
        await new.close()
