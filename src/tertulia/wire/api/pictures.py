"""Pictures that come with a request."""

from tertulia.domain import permissions
from tertulia.domain.accounts import avatars
from tertulia.model.errors import Refused
from tertulia.service.files import pictures
from tertulia.service.files.pictures import MAX_PICTURE_MIB, change_avatar, keep_scaled_avatar
from tertulia.wire.api.organization.objects import picture_url
from tertulia.wire.api.users.objects import avatar_address
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.parameters import NoParams, Params
from tertulia.wire.http.routing import ApiResponse, Call, Redirect


def sent_picture(call: Call) -> bytes:
    """The one file that came with the request. Refused unless there is one, and not too large."""
    if len(call.uploads) != 1:
        raise Refused("Upload exactly one image.")
    content = call.uploads[0].content
    if len(content) > MAX_PICTURE_MIB * MIB:
        raise Refused(
            f"The image is larger than the {MAX_PICTURE_MIB} MiB limit. Upload a smaller one."
        )
    return content


async def kept_if_sent(call: Call) -> str:
    """Keep the picture that came with the request, if one did; the name that it has now, or empty.
    BadImage for what is no picture; Refused for several, and for one that is too large."""
    return await keep_scaled_avatar(call.node.files, sent_picture(call)) if call.uploads else ""


class Avatar(ApiResponse, kw_only=True):
    """Where one's picture is now."""

    avatar_url: str


async def upload_avatar(call: Call, params: NoParams) -> Avatar:
    """Give oneself a picture: one file of an image, of which the middle is shown."""
    call.consider(avatars.check_own)
    return await _changed(call, sent_picture(call))


async def delete_avatar(call: Call, params: NoParams) -> Avatar:
    """Have the default picture again."""
    return await _changed(call, None)


async def _changed(call: Call, content: bytes | None) -> Avatar:
    await change_avatar(call, content)
    return Avatar(avatar_url=avatar_address(call.user, sees_address=True))


class WhichLogo(Params, kw_only=True, frozen=True):
    """Which of the two logos."""

    night: bool


async def set_icon(call: Call, params: NoParams) -> ApiResponse:
    """Give the organization an icon, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    await pictures.set_icon(call, sent_picture(call))
    return ApiResponse()


async def delete_icon(call: Call, params: NoParams) -> ApiResponse:
    """Go back to the icon that everybody begins with, for administrators."""
    await pictures.set_icon(call, None)
    return ApiResponse()


async def get_icon(call: Call, params: NoParams) -> Redirect:
    """To the organization's icon."""
    return Redirect(address=picture_url(call.state.realm, "icon"))


async def set_logo(call: Call, params: WhichLogo) -> ApiResponse:
    """Give the organization a logo, for administrators: the one file of the request."""
    permissions.require_administrator(call.state, call.user)
    await pictures.set_logo(call, sent_picture(call), night=params.night)
    return ApiResponse()


async def delete_logo(call: Call, params: WhichLogo) -> ApiResponse:
    """Go back to the logo that everybody begins with, for administrators."""
    await pictures.set_logo(call, None, night=params.night)
    return ApiResponse()


async def get_logo(call: Call, params: WhichLogo) -> Redirect:
    """To the organization's logo."""
    logo = pictures.logo_name(night=params.night)
    return Redirect(address=picture_url(call.state.realm, logo))
