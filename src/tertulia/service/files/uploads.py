"""Keeping the files that people upload."""

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Mapping
from typing import Final

from tertulia import pictures
from tertulia.domain.messages import attachments, file_names, upload_quotas
from tertulia.domain.messages.attachments import NewFile
from tertulia.model.attachments import Attachment, Picture
from tertulia.model.errors import FilesUnavailable, UploadQuotaReached
from tertulia.model.users import User
from tertulia.pictures import BadPicture
from tertulia.service.node import Node
from tertulia.store.uploads import ArrivedFile

LEAST_FREE: Final = 2**30
"""Bytes of the disk that uploaded files leave free, or a twentieth of a small disk."""


async def require_disk_space(node: Node, size: int = 0) -> None:
    """Raise UploadQuotaReached where `size` more bytes of files would leave the disk almost full:
    what people write needs room too. Not for files in a bucket, nor with `--dev`."""
    if node.config.files_url or node.config.dev:
        return
    disk = await asyncio.to_thread(shutil.disk_usage, node.config.data_dir)
    left = disk.free - min(LEAST_FREE, disk.total // 20)
    if size > left or left < 0:
        raise UploadQuotaReached(left=left, of_person=False)


async def stored(node: Node, user_id: int, file: ArrivedFile) -> Attachment:
    """Keep a file that has arrived: it is the user's from now on. Doing so again changes nothing.

    Raises UploadQuotaReached, and Unavailable where it cannot be kept.
    """
    await require_disk_space(node)  # The file itself is on the disk already.
    new = NewFile(
        key=file.arriving.key,
        name=file.name,
        media_type=file.content_type,
        size=file.size,
        picture=await _picture(file),
    )
    await node.uploads.offer(file.arriving, attachments.path_of(node.state, new))
    others = await reserved(node, node.state.users[user_id], new.key)
    quota = node.config.upload_quota
    attachment = await node.log.submit(user_id, attachments.add, new, quota, others)
    # In a bucket the file is in its place already; a job takes care of the rest.
    with contextlib.suppress(FilesUnavailable):
        await node.uploads.settle(attachment.path)
    return attachment


async def reserved(node: Node, user: User, besides: str = "") -> Mapping[int, int]:
    """The bytes of all files that have begun to arrive in pieces, by whose they are: there must be
    room for them too. With the key of one of them only those that began before it: where two began
    at once and there is room for one, it is the first one's. Only the person's own files where only
    the person has a limit, and nothing without one.
    """
    found = Counter[int]()
    if upload_quotas.is_limited(node.state, user, node.config.upload_quota):
        users = node.state.users
        own_only = node.config.upload_quota is None
        accounts = [*users.accounts_of(users.person_of(user))] if own_only else None
        known = await node.partials.reservations(node.clock(), accounts)
        own = next((one for one in known if one.key == besides), None)
        for one in known:
            if node.state.uploads.with_key(one.key) is not None:
                continue  # It is a file already, and counts as one.
            if own is None or (one.expires, one.key) < (own.expires, own.key):
                found[one.user_id] += one.length
    return found


async def _picture(file: ArrivedFile) -> Picture | None:
    """What is known of the picture, where the file is said to be one."""
    if not file_names.media_type(file.content_type, file.name).startswith("image/"):
        return None
    try:
        found = await pictures.described(file.arriving.place)
    except BadPicture:
        return None
    return Picture(width=found.width, height=found.height, animated=found.animated)
