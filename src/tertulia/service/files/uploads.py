"""Keeping the files that people upload."""

import contextlib

from tertulia import pictures
from tertulia.domain.messages import attachments, file_names
from tertulia.domain.messages.attachments import NewFile
from tertulia.model.attachments import Attachment, Picture
from tertulia.model.errors import FilesUnavailable
from tertulia.pictures import BadPicture
from tertulia.service.node import Node
from tertulia.store.uploads import ArrivedFile


async def stored(node: Node, user_id: int, file: ArrivedFile) -> Attachment:
    """Keep a file that has arrived: it is the user's from now on. Doing so again changes nothing.

    Raises UploadQuotaReached, and Unavailable where it cannot be kept.
    """
    new = NewFile(
        key=file.arriving.key,
        name=file.name,
        media_type=file.content_type,
        size=file.size,
        picture=await _picture(file),
    )
    await node.uploads.offer(file.arriving, attachments.path_of(node.state, new))
    attachment = await node.log.submit(user_id, attachments.add, new, node.config.upload_quota)
    # In a bucket the file is in its place already; a job takes care of the rest.
    with contextlib.suppress(FilesUnavailable):
        await node.uploads.settle(attachment.path)
    return attachment


async def _picture(file: ArrivedFile) -> Picture | None:
    """What is known of the picture, where the file is said to be one."""
    if not file_names.media_type(file.content_type, file.name).startswith("image/"):
        return None
    try:
        found = await pictures.described(file.arriving.place)
    except BadPicture:
        return None
    return Picture(width=found.width, height=found.height, animated=found.animated)
