"""Uploaded files: names, limits, adding and removing them, and links to them in messages."""

import mimetypes
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import users
from tertulia.model.attachments import Attachment, ImageInfo
from tertulia.model.changes import AttachmentAdded, AttachmentRemoved, FilesDeleted
from tertulia.model.errors import Refused, UploadQuotaReached
from tertulia.model.organization import MAX_MEBIBYTES
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MIB: Final = 2**20
UNLIMITED: Final = -1
"""Means no limit, in place of a number of MiB."""
NOTHING: Final[Mapping[int, int]] = {}


class StorageUse(Struct, frozen=True, kw_only=True):
    """The storage used by the files of a person and their bots, in bytes."""

    used: int
    limit: int | None
    """None for no limit."""
    own_limit_mib: int | None = None
    """The person's own limit in MiB, or `UNLIMITED`; None if only the organization's limit
    applies."""


def storage_use(state: State, user: User) -> StorageUse:
    """Return the storage use of the person, or of the bot's owner. The server's own bots have no
    limit and use no storage."""
    person = state.users.person_of(user)
    quota = person.upload_quota_mib
    mib = state.realm.upload_quota_per_user_mib if quota is None else quota
    return StorageUse(
        used=sum(state.uploads.space_of(user_id) for user_id in state.users.accounts_of(person)),
        limit=None if person.is_bot or mib is None or mib == UNLIMITED else mib * MIB,
        own_limit_mib=quota,
    )


def is_limited(state: State, user: User, quota: int | None) -> bool:
    """Whether the user's files have any limit."""
    return quota is not None or storage_use(state, user).limit is not None


def check_upload_quota(
    state: State, user: User, size: int, quota: int | None, reserved: Mapping[int, int] = NOTHING
) -> None:
    """Raise UploadQuotaReached if `size` more bytes exceed the user's limit, or `quota` for all
    files. `reserved` are the bytes of unfinished uploads by account."""
    room = storage_use(state, user)
    if room.limit is not None:
        accounts = state.users.accounts_of(state.users.person_of(user))
        used = room.used + sum(reserved.get(account, 0) for account in accounts)
        if used + size > room.limit:
            raise UploadQuotaReached(left=room.limit - used, of_person=True)
    used = state.uploads.space_used + sum(reserved.values())
    if quota is not None and used + size > quota:
        raise UploadQuotaReached(left=quota - used, of_person=False)


def get_storage_use(context: CommandContext, user_id: int) -> Decision[StorageUse]:
    """Return a person's storage use, to the person and to administrators. Raise Refused for
    bots."""
    target = permissions.visible_user(context.state, context.actor, user_id)
    if target.id != context.actor.id:
        permissions.require_administrator(context.state, context.actor)
    _require_person(target)
    return Decision(storage_use(context.state, target))


def set_limit(context: CommandContext, user_id: int, mib: int | None) -> Decision[None]:
    """Set a person's own limit in MiB, or `UNLIMITED`; None removes it. Existing files stay. For
    administrators. Raise Refused for invalid limits and for bots."""
    permissions.require_administrator(context.state, context.actor)
    target = users.managed_user(context, user_id)
    _require_person(target)
    if mib is not None and mib != UNLIMITED and not 0 < mib <= MAX_MEBIBYTES:
        raise Refused(f"An upload limit must be 1 to {MAX_MEBIBYTES} MiB.")
    return Decision(None, users.account_changes(context, target, {"upload_quota_mib": mib}))


def _require_person(user: User) -> None:
    if user.is_bot:
        raise Refused(
            "Bots don't have their own upload limit. Their files count toward their owner's."
        )


NAMELESS: Final = "uploaded-file"
MAX_NAME: Final = 200
"""The most characters of a file name. Longer names are cut, keeping their extension."""
UNKNOWN_TYPE: Final = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_guesses = mimetypes.MimeTypes()
for _ending, _type in {
    ".apng": "image/apng",
    ".avif": "image/avif",
    ".flac": "audio/flac",
    ".heic": "image/heic",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".weba": "audio/webm",
    ".webm": "video/webm",
    ".webp": "image/webp",
}.items():
    _guesses.add_type(_type, _ending)


def display_name(name: str) -> str:
    """Return the file name to display, without directories and invisible characters."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(c for c in last if unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Cn"})
    return _shortened(seen.strip()) or NAMELESS


def name_in_path(name: str) -> str:
    """Return the file name for its URL: letters and digits of any script, `-`, `_`, and `.`."""
    normal = unicodedata.normalize("NFKC", name)
    kept = re.sub(r"[^\w\s.-]", "", normal).strip()
    joined = _shortened(re.sub(r"[-\s]+", "-", kept))
    return NAMELESS if set(joined) <= {"."} else joined


def _shortened(name: str) -> str:
    """Cut the name to `MAX_NAME` characters, keeping its extension."""
    if len(name) <= MAX_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 20:
        return name[:MAX_NAME]
    return stem[: MAX_NAME - len(ending) - 1] + dot + ending


def media_type(given: str, name: str) -> str:
    """Return the file's media type, as the uploader gave it or guessed from the name."""
    plain = given.partition(";")[0].strip().lower()
    if _MEDIA_TYPE.fullmatch(plain) and plain != UNKNOWN_TYPE:
        return plain
    return _guesses.guess_type(name.rpartition("/")[2], strict=False)[0] or UNKNOWN_TYPE


DAY = 86400
REMOVAL_BATCH = 100
"""The number of files that one command removes."""


class NewFile(Struct, frozen=True, kw_only=True):
    """A completely uploaded file that has no owner yet."""

    key: str
    """A random key, so that nobody can guess the file's URL."""
    name: str
    """The name given by the uploader."""
    media_type: str
    """The media type given by the uploader; may be empty."""
    size: int
    """Bytes."""
    picture: ImageInfo | None = None


def path_of(state: State, new: NewFile) -> str:
    name = name_in_path(display_name(new.name))
    return f"{state.realm.id}/{new.key[:2]}/{new.key}/{name}"


def add(
    context: CommandContext,
    new: NewFile,
    quota: int | None,
    reserved: Mapping[int, int] = NOTHING,
) -> Decision[Attachment]:
    """Add the file as the actor's, unless it was added before. `quota` is the limit for all files
    in bytes, and `reserved` are the bytes of unfinished uploads by account. Raise
    UploadQuotaReached."""
    state = context.state
    path = path_of(state, new)
    known = state.uploads.at_path(path)
    if known is not None:
        return Decision(known)
    check_upload_quota(state, context.actor, new.size, quota, reserved)
    name = display_name(new.name)
    attachment = Attachment(
        id=state.attachments.next_id(),
        user_id=context.actor.id,
        name=name,
        path=path,
        size=new.size,
        media_type=media_type(new.media_type, name),
        created_at=int(context.now),
        picture=new.picture,
    )
    return Decision(attachment, (AttachmentAdded(attachment=attachment),))


def remove(context: CommandContext, attachment_id: int) -> Decision[None]:
    """Delete a file. Messages that link it don't change. For its owner and administrators. Raise
    Refused for others."""
    attachment = context.state.attachments.get(attachment_id)
    actor = context.actor
    if attachment is None or not (
        attachment.user_id == actor.id or permissions.is_administrator(context.state, actor)
    ):
        raise Refused("This attachment doesn't exist.")
    return Decision(None, (_removal_change(attachment),))


def _removal_change(attachment: Attachment) -> AttachmentRemoved:
    return AttachmentRemoved(attachment_id=attachment.id, user_id=attachment.user_id)


def next_unclaimed(days: int, state: State, _now: float) -> float | None:
    """Return when the next unlinked file has existed for `days` days, in UNIX seconds."""
    oldest = state.uploads.oldest_unclaimed
    return None if oldest is None else oldest + days * DAY


def remove_unclaimed(context: CommandContext, days: int) -> Decision[int]:
    """Remove up to `REMOVAL_BATCH` files that were uploaded at least `days` days ago and that no
    message links. Return their number."""
    ids = context.state.uploads.unclaimed(context.now - days * DAY, REMOVAL_BATCH)
    changes = [_removal_change(context.state.attachments[attachment_id]) for attachment_id in ids]
    return Decision(len(changes), changes)


def remove_unlinked(context: CommandContext, attachment_ids: Collection[int]) -> Decision[None]:
    """Remove those of these files that no message links."""
    state = context.state
    known = [state.attachments[id_] for id_ in sorted(attachment_ids) if id_ in state.attachments]
    unlinked = [
        attachment for attachment in known if not state.uploads.claims_of.count(attachment.id)
    ]
    return Decision(None, [_removal_change(attachment) for attachment in unlinked])


def record_deleted_files(
    context: CommandContext, attachment_ids: Collection[int]
) -> Decision[None]:
    """Record that the stored files of these removed attachments are deleted, unless another node
    already has."""
    known = tuple(sorted(id_ for id_ in attachment_ids if id_ in context.state.removed_files))
    return Decision(None, (FilesDeleted(attachment_ids=known),) if known else ())


# What messages link


def claimed_files(
    state: State, sender: User, content: str, opened: Collection[int]
) -> Sequence[Attachment]:
    """Return the linked files that the message gives its readers access to: the sender's own, and
    others that the sender can open (`opened`). A sender with a limited access key shares only the
    latter."""
    owner_id = sender.id if sender.reach is None else None
    return [
        attachment
        for attachment in state.uploads.linked_files(content)
        if attachment.user_id == owner_id or attachment.id in opened
    ]
