"""Pictures that come with a request."""

from tertulia import pictures
from tertulia.model.errors import BadImage, Refused
from tertulia.pictures import BadPicture
from tertulia.service.avatars import MAX_PICTURE_MIB, MEDIUM_SIZE, SIZE, kept
from tertulia.wire.http.call import Call
from tertulia.wire.http.forms import MIB


def sent_picture(call: Call) -> bytes:
    """The one file that came with the request. Refused unless there is one, and not too large."""
    if len(call.uploads) != 1:
        raise Refused("Send one picture.")
    content = call.uploads[0].content
    if len(content) > MAX_PICTURE_MIB * MIB:
        raise Refused(f"A picture has at most {MAX_PICTURE_MIB} MiB.")
    return content


async def taken_in(call: Call) -> str:
    """Keep the one picture that came with the request, in both its sizes; the name that it has
    now. BadImage for what is no picture; Refused unless there is one, and not too large."""
    content = sent_picture(call)
    try:
        small = await pictures.squared(content, SIZE)
        medium = await pictures.squared(content, MEDIUM_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await kept(call.node.files, small.content, medium.content)


async def taken_in_if_sent(call: Call) -> str:
    """The same for a request that may come without one: empty then."""
    return await taken_in(call) if call.uploads else ""
