"""Avatars, and the organization's icon and logos."""

from tertulia.domain import permissions
from tertulia.domain.accounts import personal
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.errors import Refused
from tertulia.service.files import pictures
from tertulia.service.files.pictures import MAX_PICTURE_MIB, change_avatar, keep_scaled_avatar
from tertulia.wire.api.organization.objects import picture_url
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.routing import ApiResponse, Call, Redirect


def sent_picture(call: Call, max_mib: int) -> bytes:
    """Return the request's only uploaded file. Refused unless there is exactly one within the size
    limit."""
    if len(call.uploads) != 1:
        raise Refused("Upload exactly one image.")
    content = call.uploads[0].content
    if len(content) > max_mib * MIB:
        raise Refused(f"The image is larger than the {max_mib} MiB limit. Upload a smaller one.")
    return content


async def kept_if_sent(call: Call) -> str:
    """Store the avatar uploaded with the request, if any. Return its file name, or an empty string.

    Raises BadImage for a file that isn't an image, and Refused for several or too large ones.
    """
    return (
        await keep_scaled_avatar(call.node.files, sent_picture(call, MAX_PICTURE_MIB))
        if call.uploads
        else ""
    )


class AvatarResponse(ApiResponse, kw_only=True):
    """The URL of your avatar."""

    avatar_url: str


async def upload_avatar(call: Call) -> AvatarResponse:
    """Set your avatar. Upload an image as the request's only file. It's cropped to a square."""
    call.consider(personal.check_own_avatar)
    return await _changed(call, sent_picture(call, MAX_PICTURE_MIB))


async def delete_avatar(call: Call) -> AvatarResponse:
    """Reset your avatar to the default."""
    return await _changed(call, None)


async def _changed(call: Call, content: bytes | None) -> AvatarResponse:
    await change_avatar(call, content)
    return AvatarResponse(avatar_url=full_avatar_url(call.user, sees_address=True))


async def set_icon(call: Call) -> None:
    """Set the organization's icon. Upload an image as the request's only file. Requires an
    administrator."""
    permissions.require_administrator(call.state, call.user)
    await pictures.set_icon(call, sent_picture(call, MAX_PICTURE_MIB))


async def delete_icon(call: Call) -> None:
    """Reset the organization's icon to the default. Requires an administrator."""
    await pictures.set_icon(call, None)


async def get_icon(call: Call) -> Redirect:
    """Redirect to the organization's icon."""
    return Redirect(address=picture_url(call.state.realm, "icon"))


async def set_logo(call: Call, night: bool) -> None:
    """Set one of the organization's logos. Upload an image as the request's only file. Requires an
    administrator."""
    permissions.require_administrator(call.state, call.user)
    await pictures.set_logo(call, sent_picture(call, MAX_PICTURE_MIB), night=night)


async def delete_logo(call: Call, night: bool) -> None:
    """Reset one of the organization's logos to the default. Requires an administrator."""
    await pictures.set_logo(call, None, night=night)


async def get_logo(call: Call, night: bool) -> Redirect:
    """Redirect to one of the organization's logos."""
    logo = pictures.logo_name(night=night)
    return Redirect(address=picture_url(call.state.realm, logo))
