"""`tertulia pictures` and `tertulia emoji`: the icon and logos, and custom emoji."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Column, Printed, command, group, listing
from tertulia.cli.nouns import ManagedNoun
from tertulia.domain.organization import emoji as emoji_verbs
from tertulia.model.errors import Refused
from tertulia.model.reactions import CustomEmoji
from tertulia.service.files import pictures as realm_pictures
from tertulia.service.files.pictures import MAX_EMOJI_MIB, MAX_PICTURE_MIB, add_emoji
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.emoji import deactivate_custom_emoji


def _active_emoji(state: State) -> list[CustomEmoji]:
    active = [emoji for emoji in state.custom_emoji if not emoji.deactivated]
    return sorted(active, key=lambda emoji: emoji.name)


def _emoji_shown(state: State, emoji: CustomEmoji) -> dict[str, Shown]:
    author = state.users.get(emoji.author_id)
    added_by = "" if author is None else author.address
    return {"name": emoji.name, "moves": bool(emoji.still), "added_by": added_by}


_emoji = ManagedNoun(
    "emoji",
    "Manage custom emoji: list, add, and remove them.",
    singular="emoji",
    records=_active_emoji,
    shown=_emoji_shown,
    columns=("name", "moves", "added_by"),
)


emoji = _emoji.app
_emoji.list()


@_emoji.add("add", "espresso espresso.png")
async def add(
    caller: Caller,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Lowercase letters, digits, underscores, and hyphens."),
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"An image of up to {MAX_EMOJI_MIB} MiB.")
    ],
) -> Printed:
    """Add a custom emoji. The image is cropped to a square, and can be animated."""
    caller.consider(emoji_verbs.check_new, name)
    await add_emoji(caller, name, _image(file, MAX_EMOJI_MIB))
    return _emoji.printed(caller.state, _emoji.found(caller.state, name))


_emoji.end(
    "remove",
    deactivate_custom_emoji,
    "Remove a custom emoji. Existing messages and reactions keep it.",
    "espresso",
)


def _image(file: Path, most_mib: int) -> bytes:
    with file.open("rb") as opened_file:  # A device's size can't be checked first.
        content = opened_file.read(most_mib * 2**20 + 1)
    if len(content) > most_mib * 2**20:
        raise Refused(f"The image is larger than the {most_mib} MiB limit. Choose a smaller one.")
    return content


class PictureName(StrEnum):
    """The organization's pictures."""

    ICON = "icon"
    LOGO = "logo"
    NIGHT_LOGO = "night-logo"


pictures = group(
    "pictures", "Manage the organization's icon and logos: list, set, and remove them."
)


_Picture = Annotated[
    PictureName, typer.Argument(metavar="PICTURE", help=" or ".join(PictureName) + ".")
]


@command(pictures, "list", "pictures list --data-dir data")
async def list_pictures(caller: Caller) -> Printed:
    """List the organization's icon and logos, and whether they're customized."""
    result = zip(PictureName, realm_pictures.realm_pictures_of(caller.state.realm), strict=True)
    rows = [{"name": name.value, "is_own": bool(picture.file)} for name, picture in result]
    columns: dict[str, Column] = {
        "PICTURE": "name",
        "VERSION": ("is_own", lambda is_own: "custom" if is_own else "default"),
    }
    return listing("pictures", columns, rows)


@command(pictures, "set", "pictures set icon icon.png --data-dir data")
async def set_picture(
    caller: Caller,
    which: _Picture,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"An image of up to {MAX_PICTURE_MIB} MiB.")
    ],
) -> Printed:
    """Set the organization's icon or a logo.

    The icon is cropped to a square. Logos are scaled to fit 800 by 100 pixels; `night-logo` is for
    dark backgrounds.
    """
    return await _replace(caller, which, _image(file, MAX_PICTURE_MIB))


@command(pictures, "remove", "pictures remove icon --data-dir data")
async def remove_picture(caller: Caller, which: _Picture) -> Printed:
    """Remove the icon or a logo, and go back to the default."""
    return await _replace(caller, which, None)


async def _replace(caller: Caller, which: PictureName, content: bytes | None) -> Printed:
    if which is PictureName.ICON:
        await realm_pictures.set_icon(caller, content)
    else:
        await realm_pictures.set_logo(caller, content, night=which is PictureName.NIGHT_LOGO)
    return await list_pictures(caller)
