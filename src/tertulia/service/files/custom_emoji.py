"""The organization's own emoji, and their pictures as they are kept."""

import secrets
from typing import Final

from tertulia import pictures
from tertulia.domain.organization import emoji
from tertulia.model.errors import BadImage, Refused
from tertulia.pictures import BadPicture
from tertulia.service.caller import Caller
from tertulia.service.files.unused import delete_unused
from tertulia.store.files import Files

DIRECTORY: Final = "emoji"
"""Where they are, among the node's files."""
MAX_MIB: Final = 5
SIZE: Final = 64
"""Pixels of each side."""


async def add_emoji(caller: Caller, name: str, content: bytes) -> None:
    """Add an emoji of that name and picture. BadImage for what is no picture; raises as
    `tertulia.domain.organization.emoji.add`."""
    try:
        still = await pictures.squared(content, SIZE)
        moving = await pictures.animated(content, SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    files = caller.node.files
    written: list[str] = []
    try:
        written.append(await keep(files, still.content, "png"))
        if moving is not None:
            written.append(await keep(files, moving.content, "gif"))
        new = emoji.NewEmoji(
            name=name, file=written[-1], still=written[0] if moving is not None else ""
        )
        await caller.submit(emoji.add, new)
    except Refused:
        await delete_unused(files, *map(place, written))
        raise


async def keep(files: Files, picture: bytes, ending: str) -> str:
    """Keep an emoji's picture of `SIZE` pixels; the name of its file."""
    file = f"{secrets.token_hex(16)}.{ending}"
    await files.put(place(file), picture)
    return file


def place(file: str) -> str:
    """Where the file of that name is, among the node's files."""
    return f"{DIRECTORY}/{file}"
