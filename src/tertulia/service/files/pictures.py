"""The pictures of accounts, as they are kept."""

import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tertulia import pictures
from tertulia.domain import permissions
from tertulia.domain.accounts import avatars
from tertulia.domain.organization import emoji, settings
from tertulia.model.errors import BadImage, FilesUnavailable, Refused
from tertulia.model.organization import Realm, RealmPicture
from tertulia.pictures import BadPicture, Scaled
from tertulia.service.caller import Caller
from tertulia.store.files import Files

logger = logging.getLogger("tertulia.files")


async def delete_unused(files: Files, *paths: str) -> None:
    """Delete files after the change that made them unused: where that fails, the change was made
    all the same, and the log says what stays."""
    for path in paths:
        try:
            await files.delete(path)
        except (FilesUnavailable, OSError) as error:
            logger.warning(
                "a file that is not used any more could not be deleted",
                extra={"fields": {"path": path, "reason": str(error)}},
            )


AVATAR_DIRECTORY: Final = "avatars"
"""Where they are, among the node's files."""
MAX_PICTURE_MIB: Final = 5
"""Largest avatar, icon, and logo."""
AVATAR_SIZE: Final = 100
MEDIUM_SIZE: Final = 500
"""Pixels of each side."""


async def change_avatar(caller: Caller, content: bytes | None) -> None:
    """Give the caller another picture, or (None) the default one again. BadImage for what is no
    picture; Refused as `tertulia.domain.accounts.avatars.allow`."""
    files = caller.node.files
    name = None if content is None else await keep_scaled_avatar(files, content)
    async with avatar_deleted_on_failure(files, name or ""):
        before = await caller.submit(avatars.change_own, name)
    await delete_avatar(files, before)


async def keep_scaled_avatar(files: Files, content: bytes) -> str:
    """Keep the middle of a picture in both sizes; the name that it has now. BadImage for what is no
    picture."""
    try:
        small = await pictures.squared(content, AVATAR_SIZE)
        medium = await pictures.squared(content, MEDIUM_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await keep_avatar(files, small.content, medium.content)


async def keep_avatar(files: Files, small: bytes, medium: bytes) -> str:
    """Keep a picture, as PNGs of `SIZE` and of `MEDIUM_SIZE` pixels; the name that it has now."""
    name = secrets.token_hex(20)
    for place, picture in zip(avatar_places(name), (small, medium), strict=True):
        await files.put(place, picture)
    return name


@asynccontextmanager
async def avatar_deleted_on_failure(files: Files, name: str) -> AsyncIterator[None]:
    """Delete the picture of that name, if there is one, where what is done with it fails."""
    try:
        yield
    except BaseException:
        await delete_avatar(files, name)
        raise


async def delete_avatar(files: Files, name: str) -> None:
    """Delete the picture of that name, if there is one."""
    await delete_unused(files, *avatar_places(name))


def avatar_places(name: str) -> list[str]:
    """Where the picture of that name is, in both sizes; nowhere if there is none."""
    return (
        [f"{AVATAR_DIRECTORY}/{name}.png", f"{AVATAR_DIRECTORY}/{name}-medium.png"] if name else []
    )


EMOJI_DIRECTORY: Final = "emoji"
"""Where they are, among the node's files."""
MAX_EMOJI_MIB: Final = 5
EMOJI_SIZE: Final = 64
"""Pixels of each side."""


async def add_emoji(caller: Caller, name: str, content: bytes) -> None:
    """Add an emoji of that name and picture. BadImage for what is no picture; raises as
    `tertulia.domain.organization.emoji.add`."""
    try:
        still = await pictures.squared(content, EMOJI_SIZE)
        moving = await pictures.animated(content, EMOJI_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    files = caller.node.files
    written: list[str] = []
    try:
        written.append(await keep_emoji(files, still.content, "png"))
        if moving is not None:
            written.append(await keep_emoji(files, moving.content, "gif"))
        new = emoji.NewEmoji(
            name=name, file=written[-1], still=written[0] if moving is not None else ""
        )
        await caller.submit(emoji.add, new)
    except Refused:
        await delete_unused(files, *map(emoji_place, written))
        raise


async def keep_emoji(files: Files, picture: bytes, ending: str) -> str:
    """Keep an emoji's picture of `SIZE` pixels; the name of its file."""
    file = f"{secrets.token_hex(16)}.{ending}"
    await files.put(emoji_place(file), picture)
    return file


def emoji_place(file: str) -> str:
    """Where the file of that name is, among the node's files."""
    return f"{EMOJI_DIRECTORY}/{file}"


REALM_DIRECTORY: Final = "realm"
"""Where they are, among the node's files."""
ICON_PIXELS: Final = 100
LOGO_PIXELS: Final = (800, 100)
"""Largest width and height of a logo."""


async def set_icon(caller: Caller, content: bytes | None) -> None:
    """Give the organization an icon, or (None) the one that everybody begins with. BadImage for
    what is no picture; Refused to who is no administrator."""
    permissions.require_administrator(caller.state, caller.user)
    try:
        scaled = None if content is None else await pictures.squared(content, ICON_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    await _set(caller, "icon", scaled)


async def set_logo(caller: Caller, content: bytes | None, *, night: bool) -> None:
    """Give the organization a logo. Raises as `set_icon`."""
    permissions.require_administrator(caller.state, caller.user)
    try:
        scaled = None if content is None else await pictures.fitted(content, *LOGO_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    await _set(caller, logo_name(night=night), scaled)


def realm_pictures_of(realm: Realm) -> Sequence[RealmPicture]:
    """All of the organization's pictures."""
    return realm.icon, realm.logo, realm.night_logo


def logo_name(*, night: bool) -> str:
    """How that logo is called."""
    return "night_logo" if night else "logo"


async def _set(caller: Caller, name: str, scaled: Scaled | None) -> None:
    """Put the picture in place of the present one, whose file is deleted when the change is on
    disk."""
    # Scaling took a while: it is written for those alone who are administrators still.
    permissions.require_administrator(caller.state, caller.user)
    files = caller.node.files
    file = ""
    if scaled is not None:
        file = f"{REALM_DIRECTORY}/{name}-{secrets.token_urlsafe(16)}.png"
        await files.put(file, scaled.content)
    try:
        before = await caller.submit(settings.set_picture, name, file)
    except BaseException:
        if file:
            await delete_unused(files, file)
        raise
    if before.file:
        await delete_unused(files, before.file)
