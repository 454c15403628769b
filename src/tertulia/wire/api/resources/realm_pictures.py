"""The organization's pictures: its icon, and its logos for light backgrounds and for the night."""

from tertulia.domain import permissions
from tertulia.service.files import realm_pictures
from tertulia.wire.api.objects.realm import picture_url
from tertulia.wire.api.resources.pictures import sent_picture
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import Answer, Redirect


class WhichLogo(Params, kw_only=True, frozen=True):
    """Which of the two logos."""

    night: bool


async def set_icon(call: Call, params: NoParams) -> Answer:
    """Give the organization an icon, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    await realm_pictures.set_icon(call, sent_picture(call))
    return Answer()


async def delete_icon(call: Call, params: NoParams) -> Answer:
    """Go back to the icon that everybody begins with, for administrators."""
    await realm_pictures.set_icon(call, None)
    return Answer()


async def get_icon(call: Call, params: NoParams) -> Redirect:
    """To the organization's icon."""
    return Redirect(address=picture_url(call.state.realm, "icon"))


async def set_logo(call: Call, params: WhichLogo) -> Answer:
    """Give the organization a logo, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    await realm_pictures.set_logo(call, sent_picture(call), night=params.night)
    return Answer()


async def delete_logo(call: Call, params: WhichLogo) -> Answer:
    """Go back to the logo that everybody begins with, for administrators."""
    await realm_pictures.set_logo(call, None, night=params.night)
    return Answer()


async def get_logo(call: Call, params: WhichLogo) -> Redirect:
    """To the organization's logo."""
    logo = realm_pictures.logo(night=params.night)
    return Redirect(address=picture_url(call.state.realm, logo))
