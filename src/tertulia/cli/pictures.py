"""`tertulia pictures`: the organization's icon and logos."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli.commands import Printed, command, group
from tertulia.cli.tables import table
from tertulia.model.errors import Refused
from tertulia.model.realm import Picture
from tertulia.service.caller import Caller
from tertulia.service.files import realm_pictures
from tertulia.service.files.avatars import MAX_PICTURE_MIB

app = group("pictures", "The organization's icon and logos: list, set and remove them.")


class Which(StrEnum):
    """One of the organization's pictures."""

    ICON = "icon"
    LOGO = "logo"
    NIGHT_LOGO = "night-logo"


class Shown(Struct, frozen=True, kw_only=True):
    """A picture of the organization."""

    name: str
    is_own: bool
    """Not the one that everybody begins with."""


class Pictures(Struct, frozen=True, kw_only=True):
    """All of them."""

    pictures: list[Shown]


_Named = Annotated[Which, typer.Argument(metavar="PICTURE", help=" or ".join(Which) + ".")]


@command(app, "list", "pictures list --data-dir data")
async def list_pictures(caller: Caller) -> Printed:
    """List the organization's pictures, and which are its own."""
    return _printed(caller)


@command(app, "set", "pictures set icon icon.png --data-dir data")
async def set_picture(
    caller: Caller,
    which: _Named,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"A picture of {MAX_PICTURE_MIB} MiB at most.")
    ],
) -> Printed:
    """Give the organization a picture.

    The icon is cut to a square; logos are made to fit into 800 by 100 pixels, and `night-logo` is
    for dark backgrounds.
    """
    if file.stat().st_size > MAX_PICTURE_MIB * 2**20:
        raise Refused(f"A picture has at most {MAX_PICTURE_MIB} MiB.")
    await _give(caller, which, file.read_bytes())
    return _printed(caller)


@command(app, "remove", "pictures remove icon --data-dir data")
async def remove_picture(caller: Caller, which: _Named) -> Printed:
    """Go back to the picture that everybody begins with."""
    await _give(caller, which, None)
    return _printed(caller)


async def _give(caller: Caller, which: Which, content: bytes | None) -> None:
    if which is Which.ICON:
        give = realm_pictures.set_icon
    else:
        give = partial(realm_pictures.set_logo, night=which is Which.NIGHT_LOGO)
    await give(caller, content)


def _printed(caller: Caller) -> Printed:
    found: list[tuple[Which, Picture]] = list(
        zip(Which, realm_pictures.of(caller.state.realm), strict=True)
    )
    shown = [Shown(name=which.value, is_own=bool(one.file)) for which, one in found]
    rows = [(one.name, "its own" if one.is_own else "as it came") for one in shown]
    return Printed(Pictures(pictures=shown), table(("PICTURE", "WHICH"), rows))
