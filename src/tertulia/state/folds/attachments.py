"""Folds of uploaded files, and of the links of messages to them."""

from collections.abc import Iterable

from tertulia.model import changes
from tertulia.model.attachments import AttachmentMessage, RemovedFile
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


def claim(state: State, message_id: int, attachment_ids: Iterable[int]) -> None:
    """The message links these files."""
    for attachment_id in attachment_ids:
        state.attachment_messages.put(
            AttachmentMessage(attachment_id=attachment_id, message_id=message_id)
        )


def release(state: State, message_id: int, attachment_ids: Iterable[int] | None = None) -> None:
    """The message does not link these files any more; or none at all, because it is gone."""
    for record in state.uploads.of_message[message_id]:
        if attachment_ids is None or record.attachment_id in attachment_ids:
            state.attachment_messages.remove((record.attachment_id, message_id))


@FOLDS.of(changes.AttachmentAdded)
def _(state: State, change: changes.AttachmentAdded) -> None:
    state.attachments.put(change.attachment)


@FOLDS.of(changes.AttachmentRemoved)
def _(state: State, change: changes.AttachmentRemoved) -> None:
    attachment = state.attachments[change.attachment_id]
    for record in state.uploads.claims_of[attachment.id]:
        state.attachment_messages.remove((attachment.id, record.message_id))
    state.attachments.remove(attachment.id)
    state.removed_files.put(RemovedFile(id=attachment.id, path=attachment.path))


@FOLDS.of(changes.FilesDeleted)
def _(state: State, change: changes.FilesDeleted) -> None:
    for attachment_id in change.attachment_ids:
        state.removed_files.remove(attachment_id)
