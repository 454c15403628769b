"""One's own picture."""

from tertulia.domain.accounts import avatars
from tertulia.service.avatars import thrown_away, thrown_away_on_failure
from tertulia.wire.api.objects.users import avatar_address
from tertulia.wire.api.resources.pictures import taken_in
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.routing import Answer


class Avatar(Answer, kw_only=True):
    """Where one's picture is now."""

    avatar_url: str


async def upload_avatar(call: Call, params: NoParams) -> Avatar:
    """Give oneself a picture: one file of an image, of which the middle is shown."""
    call.consider(avatars.allow)
    return await _changed(call, await taken_in(call))


async def delete_avatar(call: Call, params: NoParams) -> Avatar:
    """Have the default picture again."""
    return await _changed(call, None)


async def _changed(call: Call, name: str | None) -> Avatar:
    files = call.node.files
    async with thrown_away_on_failure(files, name or ""):
        before = await call.submit(avatars.change_own, name)
    await thrown_away(files, before)
    return Avatar(avatar_url=avatar_address(call.user, sees_address=True))
