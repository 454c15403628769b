"""One's own picture."""

from tertulia.domain.accounts import avatars
from tertulia.service.files.avatars import change_avatar
from tertulia.wire.api.objects.users import avatar_address
from tertulia.wire.api.resources.pictures import sent_picture
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.routing import Answer


class Avatar(Answer, kw_only=True):
    """Where one's picture is now."""

    avatar_url: str


async def upload_avatar(call: Call, params: NoParams) -> Avatar:
    """Give oneself a picture: one file of an image, of which the middle is shown."""
    call.consider(avatars.allow)
    return await _changed(call, sent_picture(call))


async def delete_avatar(call: Call, params: NoParams) -> Avatar:
    """Have the default picture again."""
    return await _changed(call, None)


async def _changed(call: Call, content: bytes | None) -> Avatar:
    await change_avatar(call, content)
    return Avatar(avatar_url=avatar_address(call.user, sees_address=True))
