"""Pictures that come with a request."""

from tertulia.model.errors import Refused
from tertulia.service.files.avatars import MAX_PICTURE_MIB, keep_scaled
from tertulia.wire.http.call import Call
from tertulia.wire.http.forms import MIB


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
    return await keep_scaled(call.node.files, sent_picture(call)) if call.uploads else ""
