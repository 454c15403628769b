"""Avatars, custom emoji, and the organization's icon and logos."""

import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tertulia import pictures
from tertulia.domain import permissions
from tertulia.domain.accounts import personal
from tertulia.domain.organization import emoji, settings
from tertulia.model.errors import BadImage, FilesUnavailable, Refused
from tertulia.model.organization import Realm, RealmPicture
from tertulia.pictures import BadPicture, Scaled
from tertulia.service.node import Caller
from tertulia.store.files import Files

logger = logging.getLogger("tertulia.files")


async def delete_unused(files: Files, *paths: str) -> None:
    """Delete files that a change made unused. A failure is only logged, since the change is
    done."""
    for path in paths:
        try:
            await files.delete(path)
        except (FilesUnavailable, OSError) as error:
            logger.warning(
                "could not delete an unused file",
                extra={"fields": {"path": path, "reason": str(error)}},
            )


AVATAR_DIRECTORY: Final = "avatars"
MAX_PICTURE_MIB: Final = 5
"""Largest avatar, icon, and logo."""
AVATAR_SIZE: Final = 100
MEDIUM_SIZE: Final = 500
"""Pixels of each side."""


async def change_avatar(caller: Caller, content: bytes | None) -> None:
    """Set the caller's avatar; None restores the default. Raise BadImage, and Refused as
    `tertulia.domain.accounts.personal.check_own_avatar`."""
    files = caller.node.files
    name = None if content is None else await keep_scaled_avatar(files, content)
    async with avatar_deleted_on_failure(files, name or ""):
        before = await caller.submit(personal.change_own_avatar, name)
    await delete_avatar(files, before)


async def keep_scaled_avatar(files: Files, content: bytes) -> str:
    """Store the center of an image in both sizes, and return its name. Raise BadImage."""
    try:
        small = await pictures.squared(content, AVATAR_SIZE)
        medium = await pictures.squared(content, MEDIUM_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await keep_avatar(files, small.content, medium.content)


async def keep_avatar(files: Files, small: bytes, medium: bytes) -> str:
    """Store an avatar as PNG images in both sizes, and return its name."""
    name = secrets.token_hex(20)
    for path, picture in zip(avatar_paths(name), (small, medium), strict=True):
        await files.put(path, picture)
    return name


@asynccontextmanager
async def avatar_deleted_on_failure(files: Files, name: str) -> AsyncIterator[None]:
    """Delete the avatar with that name if the body of the context fails."""
    try:
        yield
    except BaseException:
        await delete_avatar(files, name)
        raise


async def delete_avatar(files: Files, name: str) -> None:
    await delete_unused(files, *avatar_paths(name))


def avatar_paths(name: str) -> list[str]:
    """Return the paths of an avatar's two sizes; empty without a name."""
    return (
        [f"{AVATAR_DIRECTORY}/{name}.png", f"{AVATAR_DIRECTORY}/{name}-medium.png"] if name else []
    )


EMOJI_DIRECTORY: Final = "emoji"
MAX_EMOJI_MIB: Final = 5
EMOJI_SIZE: Final = 64
"""Pixels of each side."""


async def add_emoji(caller: Caller, name: str, content: bytes) -> None:
    """Add a custom emoji. Raise BadImage, and as `tertulia.domain.organization.emoji.add`."""
    files = caller.node.files
    file, still = await keep_scaled_emoji(files, content)
    try:
        await caller.submit(emoji.add, emoji.NewEmoji(name=name, file=file, still=still))
    except Refused:
        await delete_unused(files, *map(emoji_path, filter(None, (file, still))))
        raise


async def keep_scaled_emoji(files: Files, content: bytes) -> tuple[str, str]:
    """Store an emoji's image. Return the file's name, and that of a still image if it's animated.
    Raise BadImage."""
    try:
        still = await pictures.squared(content, EMOJI_SIZE)
        moving = await pictures.animated(content, EMOJI_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    file = await keep_emoji(files, still.content, "png")
    if moving is None:
        return file, ""
    return await keep_emoji(files, moving.content, "gif"), file


async def keep_emoji(files: Files, picture: bytes, ending: str) -> str:
    """Store an emoji's image, and return the file's name."""
    file = f"{secrets.token_hex(16)}.{ending}"
    await files.put(emoji_path(file), picture)
    return file


def emoji_path(file: str) -> str:
    """Return the path of an emoji's file."""
    return f"{EMOJI_DIRECTORY}/{file}"


REALM_DIRECTORY: Final = "realm"
ICON_PIXELS: Final = 100
LOGO_PIXELS: Final = (800, 100)
"""Largest width and height of a logo."""


async def set_icon(caller: Caller, content: bytes | None) -> None:
    """Set the organization's icon; None restores the default. Raise BadImage, and Refused if the
    caller isn't an administrator."""
    permissions.require_administrator(caller.state, caller.user)
    try:
        scaled = None if content is None else await pictures.squared(content, ICON_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    await _set(caller, "icon", scaled)


async def set_logo(caller: Caller, content: bytes | None, *, night: bool) -> None:
    """Set the organization's logo. Raise as `set_icon`."""
    permissions.require_administrator(caller.state, caller.user)
    try:
        scaled = None if content is None else await pictures.fitted(content, *LOGO_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    await _set(caller, logo_name(night=night), scaled)


def realm_pictures_of(realm: Realm) -> Sequence[RealmPicture]:
    return realm.icon, realm.logo, realm.night_logo


def logo_name(*, night: bool) -> str:
    return "night_logo" if night else "logo"


async def keep_scaled_realm_picture(files: Files, name: str, content: bytes) -> str:
    """Store a picture of the organization, `icon`, `logo`, or `night_logo`. Return its path. Raise
    BadImage."""
    try:
        if name == "icon":
            scaled = await pictures.squared(content, ICON_PIXELS)
        else:
            scaled = await pictures.fitted(content, *LOGO_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await _keep(files, name, scaled)


async def _keep(files: Files, name: str, scaled: Scaled) -> str:
    file = f"{REALM_DIRECTORY}/{name}-{secrets.token_urlsafe(16)}.png"
    await files.put(file, scaled.content)
    return file


async def _set(caller: Caller, name: str, scaled: Scaled | None) -> None:
    """Replace a picture, and delete the previous file once the change is on disk."""
    # Scaling took a while, so check again.
    permissions.require_administrator(caller.state, caller.user)
    files = caller.node.files
    file = "" if scaled is None else await _keep(files, name, scaled)
    try:
        before = await caller.submit(settings.set_picture, name, file)
    except BaseException:
        if file:
            await delete_unused(files, file)
        raise
    if before.file:
        await delete_unused(files, before.file)
