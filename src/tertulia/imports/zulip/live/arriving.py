"""The changes that write new messages of a running Zulip."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.domain.messages import sending, widgets
from tertulia.imports.zulip.live.previous_state import PreviousState
from tertulia.imports.zulip.live.rows import FLAGS, MessageRows
from tertulia.imports.zulip.rows import Row, number, seconds, text
from tertulia.model import changes
from tertulia.model.attachments import Attachment, linked_paths
from tertulia.model.changes import AnyChange
from tertulia.model.errors import Refused
from tertulia.model.messages import (
    DirectConversation,
    Flag,
    Message,
    MessageEdit,
    Rendered,
    place_of,
)
from tertulia.model.ranges import ranges_of
from tertulia.model.reactions import Reaction
from tertulia.state.decision import CommandContext
from tertulia.state.state import State


class ArrivingMessage(Struct, frozen=True, kw_only=True):
    """A message that isn't imported yet."""

    row: Row
    content: str
    rendered: Rendered
    edits: Sequence[tuple[Row, str | None]]
    """Oldest first, with the previous content."""
    before: Sequence[Rendered]
    """The rendered previous contents of the edits that have one."""
    files: Sequence[Attachment]


class Arrivals:
    """Makes the changes that write a page of new messages."""

    def __init__(
        self, rows: MessageRows, there: PreviousState, context: CommandContext, *, is_history: bool
    ) -> None:
        self._rows = rows
        self._there = there
        self._context = context
        self._state = context.state
        self._is_history = is_history
        self._begun: dict[tuple[int, ...], DirectConversation] = {}
        self._known_files: dict[str, int] = {}
        self._next_file = context.state.tables["attachments"].next_id()
        self.count = 0
        self.edits: list[MessageEdit] = []
        self.reactions: list[Reaction] = []

    def changes(self, arriving: Sequence[ArrivingMessage]) -> list[AnyChange]:
        """Return the changes. `edits` and `reactions` belong to these messages."""
        made: list[AnyChange] = []
        read, own_unread = BitMap(), BitMap()
        for arriving_message in arriving:
            sender_id = self._there.user(number(arriving_message.row, "sender_id"))
            place = self._place(arriving_message.row)
            if sender_id is None or sender_id not in self._state.users or place is None:
                continue
            made += self._sent(arriving_message, sender_id, *place)
            self.count += 1
            message_id = int(arriving_message.row["id"])
            read.add(message_id)
            if not self._is_read(arriving_message.row):
                own_unread.add(message_id)
        if self._is_history and read:
            made += self._all_read(read, own_unread)
        return numbered(self._state, made)

    def _is_read(self, row: Row) -> bool:
        flags = row.get("flags")
        return isinstance(flags, list) and "read" in flags

    def _all_read(self, read: BitMap, own_unread: BitMap) -> Iterable[AnyChange]:
        first, last = read.min(), read.max()
        whole = BitMap(range(first, last + 1))
        owner_id = self._there.owner_id
        others = [user.id for user in self._state.users if user.id != owner_id]
        groups = [(whole, others[n : n + 500]) for n in range(0, len(others), 500)]
        if owner_id in self._state.users:
            groups.append((whole - own_unread, [owner_id]))
        for ids, users in groups:
            yield changes.ReadStateImported(
                first_id=first, last_id=last, groups=((ranges_of(ids, whole), tuple(users)),)
            )

    def _place(
        self, row: Row
    ) -> tuple[int | None, str, int | None, DirectConversation | None] | None:
        if row.get("type") in {"stream", "channel"}:
            result = self._rows.place(row)
            return None if result is None else (*result, None, None)
        people = row.get("display_recipient")
        ids = {
            self._there.user(number(person, "id"))
            for person in (people if isinstance(people, list) else ())
            if isinstance(person, dict)
        }
        members = tuple(sorted(user_id for user_id in ids if user_id is not None))
        if not members or any(member_id not in self._state.users for member_id in members):
            return None
        known = self._state.directs.by_members.get(members)
        if known is not None:
            return None, "", known, None
        if members in self._begun:
            return None, "", self._begun[members].id, None
        begun = DirectConversation(
            id=self._state.directs.next_id() + len(self._begun), members=members
        )
        self._begun[members] = begun
        return None, "", begun.id, begun

    def _sent(
        self,
        arriving_message: ArrivingMessage,
        sender_id: int,
        channel_id: int | None,
        topic: str,
        direct_id: int | None,
        begun: DirectConversation | None,
    ) -> Iterable[AnyChange]:
        row, rendered = arriving_message.row, arriving_message.rendered
        message_id = int(row["id"])
        linked = []
        for file in arriving_message.files:
            if file.path not in self._known_files:
                added = replace(file, id=self._next_file)
                self._known_files[file.path] = self._next_file
                self._next_file += 1
                yield changes.AttachmentAdded(attachment=added)
        for paths in linked_paths(arriving_message.content):
            for path in paths:
                known = self._state.uploads.at_path(path)
                file_id = self._known_files.get(path) or (known.id if known else None)
                if file_id is not None:
                    linked.append(file_id)
                    break
        message = Message(
            id=message_id,
            sender_id=sender_id,
            sent_at=seconds(row, "timestamp") or int(self._context.now),
            channel_id=channel_id,
            topic=topic,
            direct_id=direct_id,
            content=arriving_message.content,
            rendered=rendered.html,
            client=text(row, "client")[:100],
            has_link=rendered.has_link or bool(linked),
            has_image=rendered.has_image,
            has_attachment=bool(linked),
            is_me=rendered.is_me,
            mentions_all=rendered.mentions_all and channel_id is not None,
        )
        parts = self._rows.parts(self._there, row, message_id)
        owner_id = self._there.owner_id
        is_live_read = not self._is_history and self._is_read(row) and owner_id in self._state.users
        yield changes.MessageSent(
            message=message,
            flags=self._flags(row, message, rendered, begun),
            read_by_sender=not self._is_history,
            read_by=(owner_id,) if is_live_read and owner_id != sender_id else (),
            widget=parts[0] if parts else None,
            new_conversation=begun,
            attachment_ids=tuple(dict.fromkeys(linked)),
            imported=True,
        )
        for part in parts[1:]:
            yield changes.SubmessageAdded(submessage=part, place=place_of(message))
        self._history(arriving_message, message_id)

    def _flags(
        self,
        row: Row,
        message: Message,
        rendered: Rendered,
        begun: DirectConversation | None,
    ) -> dict[int, Flag]:
        state = self._state
        if message.channel_id is not None:
            received = frozenset(state.subscribers(message.channel_id))
        else:
            conversation = begun or state.directs.get(message.direct_id)
            if conversation is None:  # The conversation begins in this commit.
                conversation = next(
                    conversation
                    for conversation in self._begun.values()
                    if conversation.id == message.direct_id
                )
            received = frozenset(conversation.members)
        context = CommandContext(state, self._context.now, message.sender_id)
        direct = message.channel_id is None
        flags = mentions(context, rendered, received, direct=direct)
        for user_id in state.alerts.alerted_by(message.content) & received:
            flags[user_id] = flags.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD
        given = row.get("flags")
        flag = Flag(0)
        for name in given if isinstance(given, list) else ():
            flag |= FLAGS.get(name, Flag(0)) if isinstance(name, str) else Flag(0)
        owner_id = self._there.owner_id
        if flag and owner_id in state.users:
            flags[owner_id] = flags.get(owner_id, Flag(0)) | flag
        return dict(sorted(flags.items()))

    def _history(self, arriving_message: ArrivingMessage, message_id: int) -> None:
        before = iter(arriving_message.before)
        for n, (edit, was) in enumerate(arriving_message.edits, 1):
            has_topic = "prev_topic" in edit
            self.edits.append(
                MessageEdit(
                    message_id=message_id,
                    seq=n,
                    at=seconds(edit, "timestamp"),
                    user_id=self._there.user(number(edit, "user_id")),
                    was_content=was,
                    was_rendered=None if was is None else next(before).html,
                    was_topic=self._rows.topic(text(edit, "prev_topic")) if has_topic else None,
                    topic=self._rows.topic(text(edit, "topic")) if has_topic else None,
                    was_channel_id=number(edit, "prev_stream"),
                    channel_id=number(edit, "stream"),
                )
            )
        self.reactions += self._rows.reactions(self._there, arriving_message.row, message_id)


def numbered(state: State, made: Iterable[AnyChange]) -> list[AnyChange]:
    """Give the parts of widgets their IDs."""
    next_id = widgets.next_submessage_id(state)
    result: list[AnyChange] = []
    for change in made:
        if isinstance(change, changes.SubmessageAdded):
            change = replace(change, submessage=replace(change.submessage, id=next_id))
            next_id += 1
        elif isinstance(change, changes.MessageSent) and change.widget is not None:
            change = replace(change, widget=replace(change.widget, id=next_id))
            next_id += 1
        result.append(change)
    return result


def mentions(
    context: CommandContext, rendered: Rendered, received: Collection[int], *, direct: bool
) -> dict[int, Flag]:
    """Return the flags of the people that a message mentions."""
    try:
        return sending.mentions(context, rendered, frozenset(), received, direct=direct)
    except Refused:  # The message was allowed when it was sent.
        return {mention: Flag.MENTIONED for mention in rendered.mentions if mention in received}
