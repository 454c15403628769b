"""Messages in Zulip's form: files of 1,000, with a row for each person who received one."""

from collections.abc import Iterator, Sequence
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
_encode = msgspec.json.Encoder().encode


class MessageFiles:
    """Writes the messages, and collects their reactions."""

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
        """`reactions` and `submessages` get a row per line."""
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
        self._beginnings: dict[int, str] = {}

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
            # A message's rows are joined already, so they're counted here.
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
        """Yield the edits as Zulip has them, newest first."""
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
                    # What was written there isn't included either.
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
        message_id, number, beginnings = item.message.id, self._rows, self._beginnings
        always = DIRECT if item.message.channel_id is None else 0
        received = WILDCARD if item.message.mentions_all else 0
        flags, unread, others, moved = item.flags, item.unread, item.others, item.moved
        parts = []
        for user_id in item.user_ids:
            number += 1
            beginning = beginnings.get(user_id)
            if beginning is None:
                beginning = beginnings[user_id] = f',"user_profile":{user_id},"message":'
            mask = always if user_id in unread else always | READ
            if user_id not in others:
                mask |= received
            if user_id in moved:
                mask |= HISTORICAL
            if user_id in flags:
                mask |= FLAGS[flags[user_id]]
            parts.append(f'{{"id":{number}{beginning}{message_id},"flags_mask":{mask}}}')
        self._rows = number
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
