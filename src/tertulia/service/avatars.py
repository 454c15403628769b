"""The pictures of accounts, as they are kept."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tertulia.store.files import Files

MAX_PICTURE_MIB: Final = 5
"""Largest avatar, icon, and logo."""
SIZE: Final = 100
MEDIUM_SIZE: Final = 500


async def kept(files: Files, small: bytes, medium: bytes) -> str:
    """Keep a picture, as PNGs of `SIZE` and of `MEDIUM_SIZE` pixels; the name that it has now."""
    name = secrets.token_hex(20)
    await files.put(_place(name, medium=False), small)
    await files.put(_place(name, medium=True), medium)
    return name


@asynccontextmanager
async def thrown_away_on_failure(files: Files, name: str) -> AsyncIterator[None]:
    """Delete the picture of that name, if there is one, where what is done with it fails."""
    try:
        yield
    except BaseException:
        await thrown_away(files, name)
        raise


async def thrown_away(files: Files, name: str) -> None:
    """Delete the picture of that name, if there is one."""
    if name:
        await files.delete(_place(name, medium=False))
        await files.delete(_place(name, medium=True))


def _place(name: str, *, medium: bool) -> str:
    return f"avatars/{name}{'-medium' if medium else ''}.png"
