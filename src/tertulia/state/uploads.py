"""Indexes over uploaded files."""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tertulia.model.attachments import Attachment, AttachmentMessage, linked_paths
from tertulia.state.tables import Grouped, Table


class Uploads:
    """What is asked of uploaded files, beside their tables."""

    def __init__(self, attachments: Table[Attachment], claims: Table[AttachmentMessage]) -> None:
        self._attachments = attachments
        self.of_user = Grouped(attachments, lambda attachment: attachment.user_id)
        self.claims_of = Grouped(claims, lambda claim: claim.attachment_id)
        """Which messages link a file, by the file."""
        self.of_message = Grouped(claims, lambda claim: claim.message_id)
        """Which files a message links, by the message."""
        self.by_path: dict[str, int] = {}
        self.space_used = 0
        """Bytes of all files together."""
        self._unclaimed: set[tuple[int, int]] = set()
        """When each file that no message links was uploaded, and its ID."""
        self._oldest: list[tuple[int, int]] = []
        """A heap of them, with some that are linked by now."""
        self._held: Counter[str] = Counter()
        """How often a file is linked in what waits to be sent, by the file's path."""
        attachments.watch(self._index_attachment)
        claims.watch(self._index_claim)

    def _index_attachment(self, before: Attachment | None, after: Attachment | None) -> None:
        if before is not None:
            del self.by_path[before.path]
            self.space_used -= before.size
            self._unclaimed.discard((before.created_at, before.id))
        if after is not None:
            self.by_path[after.path] = after.id
            self.space_used += after.size
            self._look(after)

    def _index_claim(
        self, before: AttachmentMessage | None, after: AttachmentMessage | None
    ) -> None:
        claim = before or after
        attachment = self._attachments.get(claim.attachment_id) if claim else None
        if attachment is None:
            return
        self._look(attachment)

    def _look(self, attachment: Attachment) -> None:
        """Whether any message links the file now, or will."""
        entry = (attachment.created_at, attachment.id)
        if self.claims_of.count(attachment.id) or self._held[attachment.path]:
            self._unclaimed.discard(entry)
        elif entry not in self._unclaimed:
            self._unclaimed.add(entry)
            heapq.heappush(self._oldest, entry)

    def hold(self, table: Table[Any]) -> None:
        """What the `content` of these records links is not unclaimed: it waits to be sent."""
        table.watch(self._index_waiting)

    def _index_waiting(self, before: Any, after: Any) -> None:
        for record, more in ((before, -1), (after, 1)):
            for paths in linked_paths(record.content) if record is not None else ():
                for path in paths:
                    self._held[path] += more
                    if not self._held[path]:
                        del self._held[path]
                    attachment = self.at_path(path)
                    if attachment is not None:
                        self._look(attachment)

    def at_path(self, path: str) -> Attachment | None:
        """The file that has this path."""
        attachment_id = self.by_path.get(path)
        return None if attachment_id is None else self._attachments[attachment_id]

    def message_ids(self, attachment_id: int) -> tuple[int, ...]:
        """The messages that link the file, ascending."""
        return tuple(claim.message_id for claim in self.claims_of[attachment_id])

    def linked_by(self, message_ids: Iterable[int]) -> tuple[int, ...]:
        """The files that these messages link, ascending."""
        found = {one.attachment_id for id_ in message_ids for one in self.of_message[id_]}
        return tuple(sorted(found))

    def unclaimed(self, until: float, limit: int) -> Sequence[int]:
        """The files from until that UNIX time that no message links, nor what waits to be sent:
        the oldest, at most so many."""
        oldest = heapq.nsmallest(limit, self._unclaimed)
        return [attachment_id for created_at, attachment_id in oldest if created_at <= until]

    @property
    def oldest_unclaimed(self) -> int | None:
        """When the oldest file that no message links was uploaded, in UNIX seconds."""
        while self._oldest and self._oldest[0] not in self._unclaimed:
            heapq.heappop(self._oldest)
        return self._oldest[0][0] if self._oldest else None
