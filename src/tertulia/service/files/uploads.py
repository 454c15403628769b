"""Storing uploaded files, checking who can open them, and thumbnails."""

import asyncio
import contextlib
import logging
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from tertulia import pictures
from tertulia.domain.messages import attachments, scopes
from tertulia.domain.messages.attachments import NewFile
from tertulia.model.attachments import Attachment, ImageInfo
from tertulia.model.errors import Conflict, FilesUnavailable, Unavailable, UploadQuotaReached
from tertulia.model.narrow import Scope
from tertulia.model.users import User, as_present
from tertulia.pictures import BadPicture
from tertulia.service.node import Node, retry_on_conflict
from tertulia.store import message_search
from tertulia.store.database import Connection
from tertulia.store.files import StoredFile
from tertulia.store.uploads import ArrivedFile

LEAST_FREE: Final = 2**30
"""Bytes that uploads leave free on the disk, or a twentieth of a small disk."""


async def require_disk_space(node: Node, size: int = 0) -> None:
    """Raise UploadQuotaReached if `size` more bytes would almost fill the disk, which messages need
    too. Doesn't apply to buckets and `--dev`."""
    if node.config.files_url or node.config.dev:
        return
    disk = await asyncio.to_thread(shutil.disk_usage, node.config.data_dir)
    left = disk.free - min(LEAST_FREE, disk.total // 20)
    if size > left or left < 0:
        raise UploadQuotaReached(left=left, of_person=False)


async def store_upload(node: Node, user_id: int, file: ArrivedFile) -> Attachment:
    """Store an uploaded file as the user's attachment, unless it's stored already. Raise
    UploadQuotaReached, and Unavailable."""
    await require_disk_space(node)  # The file itself is already on disk.
    new = NewFile(
        key=file.arriving.key,
        name=file.name,
        media_type=file.content_type,
        size=file.size,
        picture=await image_info(file.arriving.path, file.content_type, file.name),
    )
    await node.uploads.offer(file.arriving, attachments.path_of(node.state, new))
    others = await reserved_bytes(node, node.state.users[user_id], new.key)
    quota = node.config.upload_quota
    attachment = await node.log.submit(user_id, attachments.add, new, quota, others)
    # In a bucket, the file is already in its place. Otherwise a job repeats this.
    with contextlib.suppress(FilesUnavailable):
        await node.uploads.settle(attachment.path)
    return attachment


async def reserved_bytes(node: Node, user: User, besides: str = "") -> Mapping[int, int]:
    """Return the bytes that unfinished uploads reserve, by user ID; empty if no limit applies.

    With `besides`, the key of an upload, only uploads that began earlier count, so that of two
    uploads, the first one gets the remaining space. If only the user has a limit, only the user's
    uploads count.
    """
    counts = Counter[int]()
    if attachments.is_limited(node.state, user, node.config.upload_quota):
        users = node.state.users
        own_only = node.config.upload_quota is None
        accounts = [*users.accounts_of(users.person_of(user))] if own_only else None
        known = await node.partials.reservations(node.clock(), accounts)
        kept = next((item for item in known if item.key == besides), None)
        for item in known:
            if node.state.uploads.with_key(item.key) is not None:
                continue  # It's already an attachment.
            if kept is None or (item.expires, item.key) < (kept.expires, kept.key):
                counts[item.user_id] += item.length
    return counts


async def image_info(file: Path, media_type: str, name: str) -> ImageInfo | None:
    """Return the image's properties, if the file is an image."""
    if not attachments.media_type(media_type, name).startswith("image/"):
        return None
    try:
        image = await pictures.described(file)
    except BadPicture:
        return None
    return ImageInfo(width=image.width, height=image.height, animated=image.animated)


class FileAccess:
    """The files that a user can open: the user's own, and those linked in messages that the user
    can read. A spectator (None) can read web-public channels. With a limited access key, the user's
    own files are treated like those of others once a message links them.

    Use it in three steps: create it from the state; call `opened` with a connection when that state
    is settled; then call `require_unchanged`, since permissions may have changed and messages may
    have moved.
    """

    def __init__(self, node: Node, user: User | None, files: Iterable[Attachment]) -> None:
        self._node = node
        self._user = user
        kept: set[int] = set()
        self._linked_by: dict[int, tuple[int, ...]] = {}
        """IDs of the messages that link a file, by its ID."""
        for file in files:
            message_ids = node.state.uploads.message_ids(file.id)
            is_own = user is not None and file.user_id == user.id
            if is_own and (not message_ids or user is None or user.reach is None):
                kept.add(file.id)
            elif message_ids:
                self._linked_by[file.id] = message_ids
        self.own = frozenset(kept)
        """IDs of the user's own files, which need no lookup."""
        self._seq = node.state.seq
        self._scope = self._readable() if self._linked_by else None

    @property
    def needs_look(self) -> bool:
        """Whether some files must be looked up in the database."""
        return bool(self._linked_by)

    def opened(self, connection: Connection) -> frozenset[int]:
        """Return the IDs of the files that the user can open. Call it in a thread."""
        if self._scope is None:
            return self.own
        scope = self._scope
        return self.own | {
            file_id
            for file_id, message_ids in self._linked_by.items()
            if message_search.any_in(connection, scope, message_ids)
        }

    def require_unchanged(self) -> None:
        """Raise Conflict if the result of `opened` may be outdated."""
        if self._scope is None:
            return
        message_ids = set[int]().union(*self._linked_by.values())
        touched = self._node.state.recent_writes.since(self._seq, message_ids)
        if touched or self._readable() != self._scope:
            raise Conflict

    def _readable(self) -> Scope:
        node, user = self._node, self._user
        reader = scopes.NarrowReader(
            state=node.state,
            user=None if user is None else as_present(user, node.state.users[user.id]),
            host=node.config.address_host,
        )
        return scopes.everything_readable(reader)


async def may_open(node: Node, user: User | None, file: Attachment) -> bool:
    return bool(await files_opened(node, user, [file]))


async def files_opened(
    node: Node, user: User | None, files: Sequence[Attachment]
) -> frozenset[int]:
    """Return the IDs of the files that the user (None: a spectator) can open."""

    async def attempt() -> frozenset[int]:
        access = FileAccess(node, user, files)
        if not access.needs_look:
            return access.own
        await node.log.durability.settled()
        opened = await node.store.read(access.opened)
        access.require_unchanged()
        return opened

    return await retry_on_conflict(attempt)


logger = logging.getLogger("tertulia.http")

WAITING: Final = 100
"""Maximum number of thumbnails in progress; more requests get status 503."""
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})(-anim)?(?:\.\w+)?")


class ThumbnailFormat(Struct, kw_only=True, frozen=True):
    """A format of thumbnails. They fit into `max_width` by `max_height` pixels and are never larger
    than the original. `animated` formats exist only for animated images."""

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


def nearest_thumbnail(name: str, *, moving: bool) -> ThumbnailFormat:
    """Return the format with that name, or the most similar one. `moving` is whether the image is
    animated."""
    match = _SIZE.fullmatch(name)
    width = int(match[1]) if match else 0
    wants_moving = bool(match and match[3]) and moving
    fitting = [form for form in FORMATS if form.animated is wants_moving]
    return min(fitting, key=lambda form: (form.name != name, abs(form.max_width - width)))


async def thumbnail(node: Node, attachment: Attachment, name: str) -> StoredFile:
    """Return the thumbnail, creating it if needed. Raise BadPicture if it isn't possible, and
    Unavailable if too many are in progress or the files aren't available."""
    if attachment.picture is None:
        raise BadPicture("This file doesn't have a thumbnail.")
    form = nearest_thumbnail(name, moving=attachment.picture.animated)
    kept = node.uploads.thumbnail(attachment.path, form.name)
    stored_file = await node.files.found(kept)
    if stored_file is None:
        make = partial(_make, node, attachment, form, kept)
        await node.thumbnails.do(kept, make, WAITING)
        stored_file = await node.files.found(kept)
    if stored_file is None:
        raise BadPicture("This file no longer exists.")
    return stored_file


async def _make(node: Node, attachment: Attachment, form: ThumbnailFormat, kept: str) -> None:
    stored_file = await node.uploads.found(attachment.path)
    if stored_file is None:
        raise BadPicture("This file no longer exists.")
    try:
        async with node.copies, stored_file.files.local(stored_file) as path:
            scaled = await pictures.thumbnail(
                path, form.max_width, form.max_height, moving=form.animated
            )
        await node.files.put(kept, scaled.content)
    except FileNotFoundError:
        raise BadPicture("This file no longer exists.") from None
    except OSError as error:
        logger.exception("could not store a thumbnail")
        raise Unavailable("The server couldn't save the thumbnail. Try again later.") from error
    if attachment.id not in node.state.attachments:
        await node.uploads.delete(attachment.path)
