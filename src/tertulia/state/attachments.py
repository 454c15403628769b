"""Attachments and the messages that link them: index and folds."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tertulia.model import changes
from tertulia.model.attachments import (
    Attachment,
    AttachmentMessage,
    RemovedFile,
    key_in,
    linked_paths,
)
from tertulia.state.folds import FOLDS
from tertulia.state.tables import Grouped, Index, Table, Unique

if TYPE_CHECKING:
    from tertulia.state.state import State


class AttachmentIndex(Index):
    """Attachments by uploader, path, and message, and unlinked attachments."""

    def __init__(
        self,
        attachments: Table[Attachment],
        claims: Table[AttachmentMessage],
        unsent: Iterable[Table[Any]],
    ) -> None:
        """Follow these tables. `claims` are links in messages. Links in the `content` of `unsent`
        records count as use too."""
        self._attachments = attachments
        self.of_user = Grouped(attachments, lambda attachment: attachment.user_id)
        self.claims_of = Grouped(claims, lambda claim: claim.attachment_id)
        """Links by attachment ID."""
        self.of_message = Grouped(claims, lambda claim: claim.message_id)
        """Links by message ID."""
        self._by_key = Unique(attachments, lambda attachment: attachment.key)
        self.space_used = 0
        """The total size of all files in bytes."""
        self._space_of: Counter[int] = Counter()
        """The total size of each account's files in bytes."""
        self._unused: set[tuple[int, int]] = set()
        """Unlinked files: upload time and ID."""
        self._oldest: list[tuple[int, int]] = []
        """A heap of the unlinked files; it also contains some that have been linked since."""
        self._unsent_links: Counter[str] = Counter()
        """The number of links in unsent texts, by path."""
        self.follow(attachments, self._attachment_changed)
        self.follow(claims, self._claim_changed)
        for table in unsent:
            self.follow(table, self._unsent_changed)

    def _attachment_changed(self, before: Attachment | None, after: Attachment | None) -> None:
        if before is not None:
            self.space_used -= before.size
            self._add_space(before.user_id, -before.size)
            self._unused.discard((before.created_at, before.id))
        if after is not None:
            self.space_used += after.size
            self._add_space(after.user_id, after.size)
            self._update_unused(after)

    def _add_space(self, user_id: int, size: int) -> None:
        self._space_of[user_id] += size
        if not self._space_of[user_id]:
            del self._space_of[user_id]

    def space_of(self, user_id: int) -> int:
        return self._space_of[user_id]

    def largest(self, limit: int) -> Sequence[tuple[int, int]]:
        """Return up to `limit` accounts whose files take the most bytes, largest first, with the
        bytes."""
        return heapq.nsmallest(limit, self._space_of.items(), key=lambda item: (-item[1], item[0]))

    def _claim_changed(
        self, before: AttachmentMessage | None, after: AttachmentMessage | None
    ) -> None:
        claim = before or after
        attachment = self._attachments.get(claim.attachment_id) if claim else None
        if attachment is not None:
            self._update_unused(attachment)

    def _unsent_changed(self, before: Any, after: Any) -> None:
        for record, more in ((before, -1), (after, 1)):
            for paths in linked_paths(record.content) if record is not None else ():
                for path in paths:
                    self._unsent_links[path] += more
                    if not self._unsent_links[path]:
                        del self._unsent_links[path]
                    attachment = self.at_path(path)
                    if attachment is not None:
                        self._update_unused(attachment)

    def _update_unused(self, attachment: Attachment) -> None:
        entry = (attachment.created_at, attachment.id)
        if self.claims_of.count(attachment.id) or self._unsent_links[attachment.path]:
            self._unused.discard(entry)
        elif entry not in self._unused:
            self._unused.add(entry)
            heapq.heappush(self._oldest, entry)

    def at_path(self, path: str) -> Attachment | None:
        attachment = self.with_key(key_in(path))
        return None if attachment is None or attachment.path != path else attachment

    def with_key(self, key: str) -> Attachment | None:
        """Return the file with that key in its path."""
        attachment_id = self._by_key.get(key)
        return None if attachment_id is None else self._attachments[attachment_id]

    def linked_files(self, content: str) -> Sequence[Attachment]:
        """Return the existing files that the content links, each once."""
        attachments: dict[int, Attachment] = {}
        for paths in linked_paths(content):
            attachment = next(filter(None, map(self.at_path, paths)), None)
            if attachment is not None:
                attachments[attachment.id] = attachment
        return list(attachments.values())

    def message_ids(self, attachment_id: int) -> tuple[int, ...]:
        """Return the IDs of the messages that link the file, ascending."""
        return tuple(claim.message_id for claim in self.claims_of[attachment_id])

    def linked_by(self, message_ids: Iterable[int]) -> tuple[int, ...]:
        """Return the IDs of the files that these messages link, ascending."""
        result = {
            attachment_message.attachment_id
            for id_ in message_ids
            for attachment_message in self.of_message[id_]
        }
        return tuple(sorted(result))

    def unclaimed(self, until: float, limit: int) -> Sequence[int]:
        """Return up to `limit` of the oldest unlinked files that were uploaded until that UNIX
        time."""
        oldest = heapq.nsmallest(limit, self._unused)
        return [attachment_id for created_at, attachment_id in oldest if created_at <= until]

    @property
    def oldest_unclaimed(self) -> int | None:
        """The upload time of the oldest unlinked file, in UNIX seconds."""
        while self._oldest and self._oldest[0] not in self._unused:
            heapq.heappop(self._oldest)
        return self._oldest[0][0] if self._oldest else None


def claim(state: State, message_id: int, attachment_ids: Iterable[int]) -> None:
    """Record that the message links these files."""
    for attachment_id in attachment_ids:
        state.attachment_messages.put(
            AttachmentMessage(attachment_id=attachment_id, message_id=message_id)
        )


def release(state: State, message_id: int, attachment_ids: Iterable[int] | None = None) -> None:
    """Record that the message no longer links these files; all its files for None."""
    for record in state.uploads.of_message[message_id]:
        if attachment_ids is None or record.attachment_id in attachment_ids:
            state.attachment_messages.remove((record.attachment_id, message_id))


FOLDS.puts(changes.AttachmentAdded, "attachments", "attachment")


@FOLDS.of(changes.AttachmentRemoved)
def _(state: State, change: changes.AttachmentRemoved) -> None:
    attachment = state.attachments[change.attachment_id]
    for record in state.uploads.claims_of[attachment.id]:
        state.attachment_messages.remove((attachment.id, record.message_id))
    state.attachments.remove(attachment.id)
    state.removed_files.put(RemovedFile(id=attachment.id, path=attachment.path))


FOLDS.removes(changes.FilesDeleted, "removed_files", "attachment_ids")
