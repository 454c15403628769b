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

app = group("pictures", "Manage the organization's icon and logos: list, set, and remove them.")


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
    """List the organization's icon and logos, and whether they're customized."""
    return _printed(caller)


@command(app, "set", "pictures set icon icon.png --data-dir data")
async def set_picture(
    caller: Caller,
    which: _Named,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"An image of up to {MAX_PICTURE_MIB} MiB.")
    ],
) -> Printed:
    """Set the organization's icon or a logo.

    The icon is cropped to a square. Logos are scaled to fit 800 by 100 pixels; `night-logo` is for
    dark backgrounds.
    """
    if file.stat().st_size > MAX_PICTURE_MIB * 2**20:
        raise Refused(
            f"The image is larger than the {MAX_PICTURE_MIB} MiB limit. Choose a smaller one."
        )
    await _give(caller, which, file.read_bytes())
    return _printed(caller)


@command(app, "remove", "pictures remove icon --data-dir data")
async def remove_picture(caller: Caller, which: _Named) -> Printed:
    """Remove the icon or a logo, and go back to the default."""
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
    rows = [(one.name, "custom" if one.is_own else "default") for one in shown]
    return Printed(Pictures(pictures=shown), table(("PICTURE", "VERSION"), rows))
