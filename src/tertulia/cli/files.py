"""`tertulia files`: what people have uploaded."""

from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli.accounts import account_called
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.options import finite
from tertulia.cli.tables import day, mib, table
from tertulia.model.attachments import Attachment
from tertulia.model.counts import counted
from tertulia.model.errors import Refused
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.api.resources.uploads import DeleteAttachment, delete_attachment

app = group("files", "Manage uploaded files: list, find, and delete them.")

_MIB = 2**20
_DAY = 86400


class FileShown(Struct, frozen=True, kw_only=True):
    """An uploaded file. The time is in UNIX seconds."""

    id: int
    name: str
    email: str
    """Whose it is."""
    size: int
    """Bytes."""
    media_type: str
    uploaded_at: int
    messages: int
    """That link it."""


class Files(Struct, frozen=True, kw_only=True):
    """Files that were found, the largest first, as many as are wanted."""

    files: list[FileShown]
    bytes: int
    """Of all that were found."""


def _shown(state: State, one: Attachment) -> FileShown:
    return FileShown(
        id=one.id,
        name=one.name,
        email=state.users[one.user_id].address,
        size=one.size,
        media_type=one.media_type,
        uploaded_at=one.created_at,
        messages=state.uploads.claims_of.count(one.id),
    )


@command(app, "list", "files list --of ben@example.com --least 10 --data-dir data")
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
    wanted = [word.casefold() for word in words or ()]
    found = [
        one
        for one in (state.attachments if whose is None else state.uploads.of_user[whose])
        if one.size >= least * _MIB
        and one.media_type.startswith(kind)
        and one.created_at <= caller.now - older * _DAY
        and all(word in one.name.casefold() for word in wanted)
        and not (unlinked and state.uploads.claims_of.count(one.id))
    ]
    found.sort(key=lambda one: (-one.size, one.id))
    shown = [_shown(state, one) for one in found[:limit]]
    size = sum(one.size for one in found)
    rows = (
        (
            *(str(one.id), one.name, one.email, mib(one.size), one.media_type),
            *(day(one.uploaded_at), str(one.messages)),
        )
        for one in shown
    )
    headings = ("ID", "NAME", "OWNER", "SIZE", "TYPE", "UPLOADED", "MESSAGES")
    lines = table(headings, rows)
    lines.append(f"{counted(len(found), 'file')}, {mib(size)}")
    if len(found) > len(shown):
        lines[-1] += f"; showing the largest {len(shown)}"
    return Printed(Files(files=shown, bytes=size), lines)


@command(app, "remove", "files remove 17 --data-dir data")
async def remove(
    caller: Caller,
    file_id: Annotated[int, typer.Argument(metavar="ID", help="ID, as shown by `files list`.")],
) -> Printed:
    """Delete a file. Messages keep their links to it, which no longer work."""
    found = caller.state.attachments.get(file_id)
    if found is None:
        raise Refused(f"No file has the ID {file_id}.")
    await delete_attachment(caller, DeleteAttachment(attachment_id=file_id))
    return done(f"{found.name} is deleted.")
