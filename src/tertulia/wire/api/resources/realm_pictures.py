"""The organization's pictures: its icon, and its logos for light backgrounds and for the night."""

import secrets

from tertulia import pictures
from tertulia.domain import permissions
from tertulia.domain.organization import settings
from tertulia.model.errors import BadImage
from tertulia.pictures import BadPicture, Scaled
from tertulia.wire.api.objects.realm import picture_url
from tertulia.wire.api.resources.pictures import sent_picture
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import Answer, Redirect

ICON_PIXELS = 100
LOGO_PIXELS = (800, 100)
"""Largest width and height of a logo."""


class WhichLogo(Params, kw_only=True, frozen=True):
    """Which of the two logos."""

    night: bool


async def set_icon(call: Call, params: NoParams) -> Answer:
    """Give the organization an icon, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    content = sent_picture(call)
    try:
        scaled = await pictures.squared(content, ICON_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await _set(call, "icon", scaled)


async def delete_icon(call: Call, params: NoParams) -> Answer:
    """Go back to the icon that everybody begins with, for administrators."""
    return await _set(call, "icon", None)


async def get_icon(call: Call, params: NoParams) -> Redirect:
    """To the organization's icon."""
    return Redirect(address=picture_url(call.state.realm, "icon"))


def _logo(params: WhichLogo) -> str:
    return "night_logo" if params.night else "logo"


async def set_logo(call: Call, params: WhichLogo) -> Answer:
    """Give the organization a logo, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    content = sent_picture(call)
    try:
        scaled = await pictures.fitted(content, *LOGO_PIXELS)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await _set(call, _logo(params), scaled)


async def delete_logo(call: Call, params: WhichLogo) -> Answer:
    """Go back to the logo that everybody begins with, for administrators."""
    return await _set(call, _logo(params), None)


async def get_logo(call: Call, params: WhichLogo) -> Redirect:
    """To the organization's logo."""
    return Redirect(address=picture_url(call.state.realm, _logo(params)))


async def _set(call: Call, name: str, scaled: Scaled | None) -> Answer:
    """Put the picture in place of the present one, whose file goes when nobody is told of it any
    more."""
    permissions.require_administrator(call.state, call.user)
    file = ""
    if scaled is not None:
        file = f"realm/{name}-{secrets.token_urlsafe(16)}.png"
        await call.node.files.put(file, scaled.content)
    try:
        before = await call.submit(settings.set_picture, name, file)
    except BaseException:
        if file:
            await call.node.files.delete(file)
        raise
    if before.file:
        await call.node.files.delete(before.file)
    return Answer()
