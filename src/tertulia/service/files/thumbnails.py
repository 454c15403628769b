"""Smaller pictures of uploaded files, made when they are first asked for and then kept."""

import logging
import re
from functools import partial
from typing import Final

from msgspec import Struct

from tertulia import pictures
from tertulia.model.attachments import Attachment
from tertulia.model.errors import Unavailable
from tertulia.pictures import BadPicture
from tertulia.service.node import Node
from tertulia.store.files import StoredFile

logger = logging.getLogger("tertulia.http")

WAITING: Final = 100
"""Pictures that may wait to be made smaller; beyond that, requests are answered with 503."""
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})(-anim)?(?:\.\w+)?")


class ThumbnailFormat(Struct, kw_only=True, frozen=True):
    """A form in which pictures can be had. The picture fits into `max_width` by `max_height`
    pixels, and is never larger than the original; `animated` forms are of moving pictures only."""

    name: str
    max_width: int
    max_height: int
    format: str
    animated: bool


FORMATS: Final = (
    ThumbnailFormat(
        name="840x560.webp", max_width=840, max_height=560, format="webp", animated=False
    ),
    ThumbnailFormat(
        name="840x560-anim.webp", max_width=840, max_height=560, format="webp", animated=True
    ),
)


def nearest(name: str, *, moving: bool) -> ThumbnailFormat:
    """The form of that name, or the one that is most like it. One that moves is no form of a
    picture that does not."""
    match = _SIZE.fullmatch(name)
    width = int(match[1]) if match else 0
    wants_moving = bool(match and match[3]) and moving
    fitting = [form for form in FORMATS if form.animated is wants_moving]
    return min(fitting, key=lambda form: (form.name != name, abs(form.max_width - width)))


async def thumbnail(node: Node, attachment: Attachment, name: str) -> StoredFile:
    """The smaller picture. BadPicture where there is none; Unavailable where too many are waiting,
    and where files are away."""
    if attachment.picture is None:
        raise BadPicture("This file doesn't have a thumbnail.")
    form = nearest(name, moving=attachment.picture.animated)
    kept = node.uploads.thumbnail(attachment.path, form.name)
    found = await node.files.found(kept)
    if found is None:
        make = partial(_make, node, attachment, form, kept)
        await node.thumbnails.do(kept, make, WAITING)
        found = await node.files.found(kept)
    if found is None:
        raise BadPicture("This file no longer exists.")
    return found


async def _make(node: Node, attachment: Attachment, form: ThumbnailFormat, kept: str) -> None:
    found = await node.uploads.found(attachment.path)
    if found is None:
        raise BadPicture("This file no longer exists.")
    try:
        async with node.copies, found.files.local(found) as place:
            scaled = await pictures.thumbnail(
                place, form.max_width, form.max_height, moving=form.animated
            )
        await node.files.put(kept, scaled.content)
    except FileNotFoundError:
        raise BadPicture("This file no longer exists.") from None
    except OSError as error:
        logger.exception("a smaller picture could not be kept")
        raise Unavailable("The server couldn't save the thumbnail. Try again later.") from error
    if attachment.id not in node.state.attachments:
        await node.uploads.delete(attachment.path)
