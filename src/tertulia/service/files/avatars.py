"""The pictures of accounts, as they are kept."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tertulia import pictures
from tertulia.domain.accounts import avatars
from tertulia.model.errors import BadImage
from tertulia.pictures import BadPicture
from tertulia.service.caller import Caller
from tertulia.service.files.unused import delete_unused
from tertulia.store.files import Files

DIRECTORY: Final = "avatars"
"""Where they are, among the node's files."""
MAX_PICTURE_MIB: Final = 5
"""Largest avatar, icon, and logo."""
SIZE: Final = 100
MEDIUM_SIZE: Final = 500
"""Pixels of each side."""


async def change_avatar(caller: Caller, content: bytes | None) -> None:
    """Give the caller another picture, or (None) the default one again. BadImage for what is no
    picture; Refused as `tertulia.domain.accounts.avatars.allow`."""
    files = caller.node.files
    name = None if content is None else await keep_scaled(files, content)
    async with deleted_on_failure(files, name or ""):
        before = await caller.submit(avatars.change_own, name)
    await delete(files, before)


async def keep_scaled(files: Files, content: bytes) -> str:
    """Keep the middle of a picture in both sizes; the name that it has now. BadImage for what is no
    picture."""
    try:
        small = await pictures.squared(content, SIZE)
        medium = await pictures.squared(content, MEDIUM_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await keep(files, small.content, medium.content)


async def keep(files: Files, small: bytes, medium: bytes) -> str:
    """Keep a picture, as PNGs of `SIZE` and of `MEDIUM_SIZE` pixels; the name that it has now."""
    name = secrets.token_hex(20)
    for place, picture in zip(places(name), (small, medium), strict=True):
        await files.put(place, picture)
    return name


@asynccontextmanager
async def deleted_on_failure(files: Files, name: str) -> AsyncIterator[None]:
    """Delete the picture of that name, if there is one, where what is done with it fails."""
    try:
        yield
    except BaseException:
        await delete(files, name)
        raise


async def delete(files: Files, name: str) -> None:
    """Delete the picture of that name, if there is one."""
    await delete_unused(files, *places(name))


def places(name: str) -> list[str]:
    """Where the picture of that name is, in both sizes; nowhere if there is none."""
    return [f"{DIRECTORY}/{name}.png", f"{DIRECTORY}/{name}-medium.png"] if name else []
