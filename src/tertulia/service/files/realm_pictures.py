"""The organization's pictures: its icon, and its logos for light backgrounds and for the night."""

import secrets
from collections.abc import Sequence
from typing import Final

from tertulia import pictures
from tertulia.domain import permissions
from tertulia.domain.organization import settings
from tertulia.model.errors import BadImage
from tertulia.model.realm import Picture, Realm
from tertulia.pictures import BadPicture, Scaled
from tertulia.service.caller import Caller
from tertulia.service.files.unused import delete_unused

DIRECTORY: Final = "realm"
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
    await _set(caller, logo(night=night), scaled)


def of(realm: Realm) -> Sequence[Picture]:
    """All of the organization's pictures."""
    return realm.icon, realm.logo, realm.night_logo


def logo(*, night: bool) -> str:
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
        file = f"{DIRECTORY}/{name}-{secrets.token_urlsafe(16)}.png"
        await files.put(file, scaled.content)
    try:
        before = await caller.submit(settings.set_picture, name, file)
    except BaseException:
        if file:
            await delete_unused(files, file)
        raise
    if before.file:
        await delete_unused(files, before.file)
