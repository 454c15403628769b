"""Uploaded files: adding and deleting them, and which of them a message links."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.messages import file_names, upload_quotas
from tertulia.model.attachments import Attachment, Picture, linked_paths
from tertulia.model.changes import AttachmentAdded, AttachmentRemoved, FilesDeleted
from tertulia.model.errors import Refused
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

DAY = 86400
AT_ONCE = 100
"""Files that are removed together at most."""


class NewFile(Struct, frozen=True, kw_only=True):
    """A file that has arrived whole, and belongs to nobody yet."""

    key: str
    """Random; nobody can guess it."""
    name: str
    """As the uploader calls it."""
    media_type: str
    """As the uploader says; may be empty."""
    size: int
    """Bytes."""
    picture: Picture | None = None


def path_of(state: State, new: NewFile) -> str:
    """By what a new file will be known."""
    name = file_names.in_address(file_names.shown(new.name))
    return f"{state.realm.id}/{new.key[:2]}/{new.key}/{name}"


def add(
    moment: Moment,
    new: NewFile,
    quota: int | None,
    reserved: Mapping[int, int] = upload_quotas.NOTHING,
) -> Decision[Attachment]:
    """The file is the actor's from now on. `quota` are the bytes that all files together may have,
    and `reserved` those of others that have begun to arrive, by whose they are. Nothing changes
    where it is already.

    Raises UploadQuotaReached.
    """
    state = moment.state
    path = path_of(state, new)
    known = state.uploads.at_path(path)
    if known is not None:
        return Decision(known)
    upload_quotas.check(state, moment.actor, new.size, quota, reserved)
    name = file_names.shown(new.name)
    attachment = Attachment(
        id=state.attachments.next_id(),
        user_id=moment.actor.id,
        name=name,
        path=path,
        size=new.size,
        media_type=file_names.media_type(new.media_type, name),
        created_at=int(moment.now),
        picture=new.picture,
    )
    return Decision(attachment, (AttachmentAdded(attachment=attachment),))


def remove(moment: Moment, attachment_id: int) -> Decision[None]:
    """Delete a file, for its owner or an administrator. Messages that link it stay as they are.

    Refused where there is no such file, and alike where it is not the actor's.
    """
    attachment = moment.state.attachments.get(attachment_id)
    actor = moment.actor
    if attachment is None or not (
        attachment.user_id == actor.id or permissions.is_administrator(moment.state, actor)
    ):
        raise Refused("This attachment doesn't exist.")
    return Decision(None, (_removed(attachment),))


def _removed(attachment: Attachment) -> AttachmentRemoved:
    return AttachmentRemoved(attachment_id=attachment.id, user_id=attachment.user_id)


def unclaimed_due(days: int, state: State, _now: float) -> float | None:
    """When the next file that no message links is old enough to go, in UNIX seconds."""
    oldest = state.uploads.oldest_unclaimed
    return None if oldest is None else oldest + days * DAY


def remove_unclaimed(moment: Moment, days: int) -> Decision[int]:
    """Remove some of the files that were uploaded so long ago, and that no message links. Returns
    how many."""
    ids = moment.state.uploads.unclaimed(moment.now - days * DAY, AT_ONCE)
    changes = [_removed(moment.state.attachments[attachment_id]) for attachment_id in ids]
    return Decision(len(changes), changes)


def remove_unlinked(moment: Moment, attachment_ids: Collection[int]) -> Decision[None]:
    """Remove those of the attachments that no message links."""
    state = moment.state
    known = [state.attachments[id_] for id_ in sorted(attachment_ids) if id_ in state.attachments]
    unlinked = [one for one in known if not state.uploads.claims_of.count(one.id)]
    return Decision(None, [_removed(one) for one in unlinked])


def files_deleted(moment: Moment, attachment_ids: Collection[int]) -> Decision[None]:
    """The files of these attachments, which are gone, are deleted. Another node may have said so
    already."""
    known = tuple(sorted(id_ for id_ in attachment_ids if id_ in moment.state.removed_files))
    return Decision(None, (FilesDeleted(attachment_ids=known),) if known else ())


# What messages link


def linked(state: State, content: str) -> Sequence[Attachment]:
    """The files that a message of this content links, as far as they exist, each once."""
    found: dict[int, Attachment] = {}
    for paths in linked_paths(content):
        known = (state.uploads.at_path(path) for path in paths)
        attachment = next((one for one in known if one is not None), None)
        if attachment is not None:
            found[attachment.id] = attachment
    return list(found.values())


def claimed(
    state: State, sender_id: int, content: str, opened: Collection[int]
) -> Sequence[Attachment]:
    """Those of the linked files that the message opens to its readers: the sender's own, and those
    of others that the sender may open (`opened`)."""
    return [
        attachment
        for attachment in linked(state, content)
        if attachment.user_id == sender_id or attachment.id in opened
    ]
