"""Messages in Zulip's format: files with 1,000 messages each, and a row for each recipient of a
message."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from tertulia.exports.archive import ExportArchive
from tertulia.exports.readers import MessageReaders, Received
from tertulia.exports.scope import ExportScope
from tertulia.exports.zulip_names import (
    DIRECT,
    DIRECT_TOPIC,
    FLAGS,
    HISTORICAL,
    REACTION_KINDS,
    READ,
    REALM,
    WILDCARD,
    Clients,
    Recipients,
)
from tertulia.model.exports import ExportKind
from tertulia.model.messages import Message, MessageEdit
from tertulia.store import editing, message_details, queries
from tertulia.store.database import Connection
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.transfer import Progress

PER_FILE: Final = 1000
MOST_KEPT: Final = 100_000
"""The most recipients whose rows are kept for the next messages. A row takes about 500 bytes."""
_MESSAGE: Final = b"@"
"""The placeholder for a message's ID in rows, which otherwise have only names and numbers."""
_encode = msgspec.json.Encoder().encode


class _UsualRows:
    """The cached rows of messages with the same recipients and flags, read and unread. Making them
    for each message would take most of the export's time."""

    def __init__(self, user_ids: Sequence[int], mask: int, digits: int) -> None:
        self._user_ids = user_ids  # Keeps the list alive, so that no other gets its id().
        self._read = [_row(user_id, mask | READ, digits) for user_id in user_ids]
        self._unread = [_row(user_id, mask, digits) for user_id in user_ids]
        self._last: tuple[Collection[int], bytes] | None = None

    def joined(self, unread: Collection[int]) -> bytes:
        """Return the rows for a message that the people in `unread` haven't read."""
        if self._last is not None and self._last[0] is unread:
            return self._last[1]
        rows = self._read
        if unread:
            pairs = zip(self._user_ids, rows, self._unread, strict=True)
            rows = [new if user_id in unread else read for user_id, read, new in pairs]
        joined = ",".join(rows).encode()
        self._last = unread, joined
        return joined


def _row(user_id: int, mask: int, digits: int) -> str:
    """Return a row. Its ID is the message's ID followed by the user's."""
    number = f"@{user_id:0{digits}}"
    return f'{{"id":{number},"user_profile":{user_id},"message":@,"flags_mask":{mask}}}'


class MessageFiles:
    """Writes the messages, and collects their reactions and submessages."""

    def __init__(
        self,
        scope: ExportScope,
        recipients: Recipients,
        clients: Clients,
        connection: Connection,
        archive: ExportArchive,
        reactions: BinaryIO,
        submessages: BinaryIO,
    ) -> None:
        """`reactions` and `submessages` receive one row per line."""
        self._scope = scope
        self._recipients = recipients
        self._clients = clients
        self._connection = connection
        self._archive = archive
        self._reactions = reactions
        self._submessages = submessages
        self._readers = MessageReaders(scope, connection)
        self._rows = self._reaction_count = 0
        self.counts: dict[str, dict[str, int]] = {}
        """Rows by file and table."""
        self.messages = 0
        realm = scope.state.realm
        policy = realm.message_edit_history_visibility_policy
        self._history = "all" if scope.kind is not ExportKind.PUBLIC else policy
        self._digits = len(str(max(user.id for user in scope.state.users)))
        self._usual: dict[tuple[int, int], _UsualRows] = {}
        """By the id() of a list of recipients, and flags."""
        self._usual_users = 0

    def write(self, progress: Progress) -> None:
        total = queries.count_messages(self._connection)
        progress("messages", 0, total)
        seen = 0
        page: list[Message] = []
        for some in queries.pages_of_messages(self._connection, PER_FILE):
            seen += len(some)
            for message in some:
                if self._scope.includes(message.id, message.channel_id, message.direct_id):
                    page.append(message)
                    if len(page) == PER_FILE:
                        self._write_file(page)
                        page = []
            progress("messages", seen, total)
        if page:
            self._write_file(page)

    def _write_file(self, page: Sequence[Message]) -> None:
        details = message_details.details_of(self._connection, [message.id for message in page])
        name = f"messages-{len(self.counts) + 1:06}"
        with self._archive.tables(f"{name}.json") as tables:
            tables.encoded(
                "zerver_message",
                (
                    _encode(self._message(message, details.get(message.id, NO_DETAILS)))
                    for message in page
                ),
            )
            # A message's rows are already joined, so they're counted here.
            first = self._rows
            rows = map(self._received, self._readers.of(page))
            tables.encoded("zerver_usermessage", filter(None, rows))
            tables.counts["zerver_usermessage"] = self._rows - first
        self.counts[name] = tables.counts
        self.messages += len(page)
        for message in page:
            self._write_parts(details.get(message.id, NO_DETAILS))

    def _message(self, message: Message, details: MessageDetails) -> dict[str, Any]:
        edits = list(self._edits(details))
        is_direct = message.channel_id is None
        return {
            "id": message.id,
            "sender": message.sender_id,
            "recipient": self._recipients.of_message(message),
            "realm": REALM,
            "type": 1,
            "subject": DIRECT_TOPIC if is_direct else message.topic,
            "content": message.content,
            "rendered_content": message.rendered,
            "rendered_content_version": 1,
            "date_sent": float(message.sent_at),
            "sending_client": self._clients.of(message.client),
            "last_edit_time": float(edits[0]["timestamp"]) if edits else None,
            "edit_history": _encode(edits).decode() if edits else None,
            "has_attachment": message.has_attachment,
            "has_image": message.has_image,
            "has_link": message.has_link,
            "is_channel_message": not is_direct,
            "search_tsvector": None,
        }

    def _edits(self, details: MessageDetails) -> Iterator[dict[str, Any]]:
        """Yield the edits in Zulip's format, newest first."""
        if self._history == "none":
            return
        for edit in details.edits:
            result: dict[str, Any] = {"user_id": edit.user_id, "timestamp": edit.at}
            if edit.changed_content and self._history == "all":
                content, rendered = self._texts_before(edit)
                result |= {
                    "prev_content": content,
                    "prev_rendered_content": rendered,
                    "prev_rendered_content_version": 1,
                }
            if edit.was_channel_id is not None:
                if edit.was_channel_id not in self._scope.channel_ids:
                    # The previous texts there aren't included either.
                    if len(result) > 2:
                        yield result
                    return
                result |= {"prev_stream": edit.was_channel_id, "stream": edit.channel_id}
            if edit.was_topic is not None:
                result |= {"prev_topic": edit.was_topic, "topic": edit.topic}
            if len(result) > 2:
                yield result

    def _texts_before(self, edit: MessageEdit) -> tuple[str, str]:
        if not edit.text_omitted:
            return edit.was_content or "", edit.was_rendered or ""
        result = editing.texts_before(self._connection, [edit.message_id], [edit.seq])
        return result.get((edit.message_id, edit.seq), ("", ""))

    def _received(self, item: Received) -> bytes:
        """Return the rows of a message, joined by commas."""
        message = item.message
        self._rows += len(item.user_ids)
        always = DIRECT if message.channel_id is None else 0
        received = WILDCARD if message.mentions_all else 0
        if item.flags or item.others or item.moved:
            rows = self._flagged_rows(item, always, received)
        else:
            rows = self._usual_rows(item.user_ids, always | received).joined(item.unread)
        return rows.replace(_MESSAGE, b"%d" % message.id)

    def _usual_rows(self, user_ids: Sequence[int], mask: int) -> "_UsualRows":
        key = id(user_ids), mask
        rows = self._usual.get(key)
        if rows is None:
            self._usual_users += len(user_ids)
            if self._usual_users > MOST_KEPT:
                self._usual.clear()
                self._usual_users = len(user_ids)
            rows = self._usual[key] = _UsualRows(user_ids, mask, self._digits)
        return rows

    def _flagged_rows(self, item: Received, always: int, received: int) -> bytes:
        flags, unread, others, moved = item.flags, item.unread, item.others, item.moved
        parts = []
        for user_id in item.user_ids:
            mask = always if user_id in unread else always | READ
            if user_id not in others:
                mask |= received
            if user_id in moved:
                mask |= HISTORICAL
            if user_id in flags:
                mask |= FLAGS[flags[user_id]]
            parts.append(_row(user_id, mask, self._digits))
        return ",".join(parts).encode()

    def _write_parts(self, details: MessageDetails) -> None:
        for reaction in details.reactions:
            self._reaction_count += 1
            row = {
                "id": self._reaction_count,
                "user_profile": reaction.user_id,
                "emoji_name": reaction.name,
                "reaction_type": REACTION_KINDS[reaction.kind],
                "emoji_code": reaction.code,
                "message": reaction.message_id,
            }
            self._reactions.write(_encode(row) + b"\n")
        for part in details.submessages:
            row = {
                "id": part.id,
                "message": part.message_id,
                "sender": part.sender_id,
                "msg_type": part.kind,
                "content": part.content,
            }
            self._submessages.write(_encode(row) + b"\n")
