"""The changes that write a batch of messages, with the subscriptions between them."""

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain.messages import widgets
from tertulia.domain.names import MAX_MESSAGE, MAX_REMINDER_NOTE
from tertulia.imports.channels import AppliedMemberships, MembershipStep
from tertulia.imports.context import ImportContext
from tertulia.imports.history import ImportedHistory
from tertulia.imports.identifiers import MAX_KEPT
from tertulia.imports.personal_records import MAX_CLIENT, topic_name
from tertulia.imports.preparation import PreparedMessage
from tertulia.imports.progress import RetentionCheck
from tertulia.imports.records import Key, SourceMessage
from tertulia.imports.report import ImportReport
from tertulia.imports.values import storable
from tertulia.markup import addresses
from tertulia.model.attachments import ADDRESS, Attachment, linked_paths
from tertulia.model.changes import (
    AnyChange,
    AttachmentAdded,
    MessagePinned,
    MessageSent,
    ReminderSet,
    SubmessageAdded,
)
from tertulia.model.channels import topic_key
from tertulia.model.messages import (
    DirectConversation,
    Flag,
    Message,
    Submessage,
    place_of,
)
from tertulia.model.pins import MAX_PINS, Pin
from tertulia.model.scheduled import Reminder
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store.notes import FactSet, Note

LINK_FACT: Final = "import_link:"
"""Prefix of the keys of facts that hold the URLs of messages until the import ends."""
MAX_REMINDERS: Final = 10_000
"""The most reminders of a message that are imported."""
MAX_PARTS: Final = 10_000
"""The most votes and tasks of a message that are imported."""


class Written(Struct, frozen=True):
    """The result of writing a batch."""

    ids: tuple[int, ...]
    """The messages' IDs; 0 for skipped messages."""
    applied: int
    """The number of memberships applied so far."""
    report: ImportReport
    """Remarks about the messages, and counts of the other records that were written."""


class BatchChanges(Struct, frozen=True):
    """The changes that write a batch to a state."""

    state: State
    seq: int
    """The state's entry that they follow."""
    batch: Sequence[PreparedMessage]
    applied: int
    """The number of memberships applied before."""
    changes: Sequence[AnyChange]
    written: Written
    history: Note
    linked: dict[str, str]
    """The URLs of messages that may be linked, by key of their fact."""


class MessageWriter:
    """Writes batches of messages as verbs, because the state decides the IDs."""

    def __init__(
        self,
        context: ImportContext,
        plan: Sequence[MembershipStep],
        linked: dict[str, str],
        *,
        keep_ids: bool,
    ) -> None:
        """`linked` are the URLs of messages that may be linked, by `LINK_FACT` and the message's
        key. The writer adds more."""
        self._context = context
        self._linked = linked
        self._plan = plan
        self._retention = RetentionCheck(context)
        self._keep_ids = keep_ids

    def due(self, applied: int, batch: Sequence[SourceMessage]) -> int:
        """Return how many memberships are applied before the batch's first message."""
        key = next((message.key for message in batch), 0)
        if not isinstance(key, int):
            return applied
        return max(applied, bisect_left(self._plan, key, key=lambda step: step.after))

    def changes(self, state: State, batch: Sequence[PreparedMessage], applied: int) -> BatchChanges:
        """Return the changes that write the batch to the state, after the first `applied`
        memberships."""
        made = _Batch(self, state, applied)
        return made.changes(batch)

    def write(
        self,
        context: CommandContext,
        changes: BatchChanges,
        notes: list[Note],
        progress: Callable[[Written], list[Note]],
    ) -> Decision[Written]:
        """Decide on the changes, or, if others have changed the state since, on new ones. Once
        decided, it adds to the command's `notes`: those of the changes, and the notes that
        `progress` makes of the progress."""
        state = context.state
        if changes.state is not state or changes.seq != state.seq:
            changes = self.changes(state, changes.batch, changes.applied)
        self._linked.update(changes.linked)
        linked = [FactSet(key, url) for key, url in changes.linked.items()]
        notes[:] = [changes.history, *linked, *progress(changes.written)]
        return Decision(changes.written, changes.changes)

    def rest(
        self,
        context: CommandContext,
        applied: int,
        most: int,
        progress: Callable[[int, ImportReport], None],
    ) -> Decision[None]:
        """Apply at most `most` memberships after the newest message, and call `progress` with the
        number applied so far, and remarks and counts."""
        until = min(applied + most, len(self._plan))
        report = ImportReport()
        current = dataclasses.replace(
            self._context, current_state=lambda: context.state, report=report
        )
        memberships = AppliedMemberships(current)
        changes: list[AnyChange] = []
        for step in self._plan[applied:until]:
            changes += memberships.applied(step, context.state.last_message_id)
        progress(until, report)
        return Decision(None, changes)


class _Batch:
    def __init__(self, writer: MessageWriter, state: State, applied: int) -> None:
        self._report = ImportReport()
        context = dataclasses.replace(
            writer._context, current_state=lambda: state, report=self._report
        )
        self._writer = writer
        self._context = context
        self._ids = context.ids
        self._state = state
        self._was_applied = self._applied = applied
        self._last_id = state.last_message_id
        self._next_direct = state.directs.next_id()
        self._begun: dict[tuple[int, ...], DirectConversation] = {}
        self._next_file = state.tables["attachments"].next_id()
        self._files: dict[str, Attachment] = {}
        """New files by path."""
        self._file_ids: set[int] = set()
        self._next_part = widgets.next_submessage_id(state)
        self._next_reminder = state.tables["reminders"].next_id()
        self._memberships = AppliedMemberships(context)
        self._links: dict[str, str] = {}
        """The URLs of the batch's messages that may be linked, by key of their fact."""
        self._pins: dict[int, int] = {}
        self._topics: set[tuple[int, str]] = set()
        """New topics by channel and topic key."""
        self._history = ImportedHistory(context)

    def changes(self, batch: Sequence[PreparedMessage]) -> BatchChanges:
        changes: list[AnyChange] = []
        ids: list[int] = []
        plan = self._writer._plan
        for prepared in batch:
            key = prepared.source.key
            while self._applied < len(plan) and isinstance(key, int):
                if plan[self._applied].after >= key:
                    break
                changes += self._memberships.applied(plan[self._applied], self._last_id)
                self._applied += 1
            message_id = self._last_id + 1
            if self._writer._keep_ids and isinstance(key, int) and key <= MAX_KEPT:
                message_id = max(key, message_id)
            made = self._message(prepared, message_id)
            if made:
                self._last_id = message_id
                ids.append(message_id)
                changes += made
            else:
                ids.append(0)
        return BatchChanges(
            self._state,
            self._state.seq,
            batch,
            self._was_applied,
            changes,
            Written(tuple(ids), self._applied, self._report),
            self._history.note(),
            self._links,
        )

    def _message(self, prepared: PreparedMessage, message_id: int) -> list[AnyChange]:
        """Return the changes that write the message, or an empty list if its conversation wasn't
        imported."""
        source = prepared.source
        sender_id = self._ids.find("user", source.sender)
        if sender_id is None:
            self._report.skip("messages", "The sender isn't in the export.", source.key)
            return []
        changes: list[AnyChange] = []
        place = self._place(source)
        if place is None:
            self._report.skip("messages", "The conversation isn't in the export.", source.key)
            return []
        channel_id, topic, direct_id, begun = place
        if channel_id is not None:
            self._count_topic(channel_id, topic_key(topic))
        self._writer._retention.check(source, self._report)
        for file in prepared.files:
            if self._known(file.path) is None:
                changes.append(AttachmentAdded(attachment=self._file(file)))
                self._report.count("files")
        rendered, content, html = prepared.rendered, prepared.content, prepared.rendered.html
        for link in prepared.links:
            key = _link_key(link.key)
            url = self._links.get(key) or self._writer._linked.get(key)
            content = link.replaced(content, url)
            html = link.replaced(html, url, is_html=True)
        linked = self._linked(source, sender_id, content)
        message = Message(
            id=message_id,
            sender_id=sender_id,
            sent_at=prepared.sent_at,
            channel_id=channel_id,
            topic=topic,
            direct_id=direct_id,
            content=content,
            rendered=html,
            client=storable(source.client)[:MAX_CLIENT],
            has_link=rendered.has_link or bool(linked),
            has_image=rendered.has_image,
            has_attachment=bool(linked) or source.has_attachment,
            is_me=rendered.is_me,
            mentions_all=rendered.mentions_all and channel_id is not None,
        )
        if (
            message.mentions_all
            and channel_id is not None
            and not self._mentions_everyone(source, channel_id)
        ):
            message = replace(message, mentions_all=False)
        parts = self._parts(source, message)
        changes.append(
            MessageSent(
                message=message,
                flags=self._flags(source, message),
                widget=parts[0] if parts else None,
                new_conversation=begun,
                attachment_ids=linked,
                imported=True,
            )
        )
        changes += [SubmessageAdded(submessage=part, place=place_of(message)) for part in parts[1:]]
        if source.is_pinned and channel_id is not None:
            changes += self._pin(message, sender_id)
        if source.reminders:
            changes += self._reminders(source, message_id)
        self._history.add(prepared, message)
        if source.is_linked:
            self._links[_link_key(source.key)] = self._url(message)
        return changes

    def _count_topic(self, channel_id: int, key: str) -> None:
        if (channel_id, key) not in self._topics and (channel_id, key) not in self._state.topics:
            self._topics.add((channel_id, key))
            self._report.count("topics")

    def _url(self, message: Message) -> str:
        for members, begun in self._begun.items():
            if message.direct_id == begun.id:
                return addresses.direct_message_address(members, message.id)
        return addresses.address_of(self._state, message)

    def _place(
        self, source: SourceMessage
    ) -> tuple[int | None, str, int | None, DirectConversation | None] | None:
        """Return the channel, the topic, and the ID of the direct conversation of the message, and
        the direct conversation itself if it's new."""
        if source.channel is not None:
            channel_id = self._ids.find("channel", source.channel)
            return (
                None if channel_id is None else (channel_id, topic_name(source.topic), None, None)
            )
        people = [self._ids.find("user", key) for key in source.people]
        if None in people or not people:
            return None
        members = tuple(sorted({user_id for user_id in people if user_id is not None}))
        known = self._state.directs.by_members.get(members)
        if known is not None:
            return None, "", known, None
        if members in self._begun:
            return None, "", self._begun[members].id, None
        begun = DirectConversation(id=self._next_direct, members=members)
        self._next_direct += 1
        self._begun[members] = begun
        return None, "", begun.id, begun

    def _file(self, file: Attachment) -> Attachment:
        number, known = file.id, self._state.tables["attachments"]
        taken = number in known or number in self._file_ids
        if not self._writer._keep_ids or not 0 < number <= MAX_KEPT or taken:
            number = self._next_file
        self._next_file = max(self._next_file, number + 1)
        self._file_ids.add(number)
        self._files[file.path] = replace(file, id=number)
        return self._files[file.path]

    def _known(self, path: str) -> Attachment | None:
        return self._files.get(path) or self._state.uploads.at_path(path)

    def _linked(self, source: SourceMessage, sender_id: int, content: str) -> tuple[int, ...]:
        """Return the files that the message links: those that the source names, and the sender's.
        In an existing organization, the source may name only new files, because an export must not
        give access to other people's files."""
        if not source.attachments and ADDRESS not in content:
            return ()
        attachments = []
        for attachment in source.attachments:
            file = self._known(attachment.path)
            if file is not None and (
                self._writer._keep_ids
                or attachment.path in self._files
                or file.user_id == sender_id
            ):
                attachments.append(file.id)
        for paths in linked_paths(content):
            file = next((file for path in paths if (file := self._known(path))), None)
            if file is not None and file.user_id == sender_id:
                attachments.append(file.id)
        return tuple(dict.fromkeys(attachments))

    def _flags(self, source: SourceMessage, message: Message) -> dict[int, Flag]:
        """Return the sparse flags by user. People who received a message that mentions everyone
        have no flag for that. People who have it unread without having received it have a
        record."""
        if not source.flags and not source.unread_by:
            return {}
        flags: dict[int, Flag] = {}
        for key, flag in source.flags.items():
            user_id = self._ids.find("user", key)
            if user_id is None:
                continue
            if message.mentions_all and self._receives(user_id, message):
                flag &= ~Flag.CHANNEL_WILDCARD_MENTIONED
            if flag:
                flags[user_id] = flag
        for user_id in self._ids.several("user", source.unread_by):
            if not self._receives(user_id, message):
                flags[user_id] = flags.get(user_id, Flag(0)) | Flag.RECORD
        return dict(sorted(flags.items()))

    def _mentions_everyone(self, source: SourceMessage, channel_id: int) -> bool:
        """Whether the message mentions everyone who received it. People to whom a message was moved
        aren't mentioned."""
        if not source.flags_wildcards:
            return True
        mentioned = {
            self._ids.find("user", key)
            for key, flag in source.flags.items()
            if flag & Flag.CHANNEL_WILDCARD_MENTIONED
        }
        return mentioned.issuperset(self._memberships.people(channel_id))

    def _receives(self, user_id: int, message: Message) -> bool:
        if message.channel_id is None:
            return True
        return self._memberships.has(message.channel_id, user_id)

    def _parts(self, source: SourceMessage, message: Message) -> list[Submessage]:
        given = [
            (submessage.user, submessage.kind, submessage.content)
            for submessage in source.submessages or ()
        ]
        if source.submessages is None:
            begun = widgets.first_submessage(message.content)
            if begun is not None:
                given = [(source.sender, widgets.WIDGET, begun)]
        if not given:
            return []
        parts = []
        for user, kind, content in given[:MAX_PARTS]:
            user_id = self._ids.find("user", user)
            if user_id is None or not _is_part(content):
                self._report.skip("parts of polls", "It isn't valid.", source.key)
                continue
            number, self._next_part = self._next_part, self._next_part + 1
            parts.append(
                Submessage(
                    id=number,
                    message_id=message.id,
                    sender_id=user_id,
                    kind=storable(kind)[:MAX_CLIENT],
                    content=content,
                )
            )
        if len(given) > MAX_PARTS:
            self._report.skip(
                "parts of polls", f"A message has more than {MAX_PARTS:,}.", source.key
            )
        return parts

    def _pin(self, message: Message, user_id: int) -> Iterator[AnyChange]:
        assert message.channel_id is not None  # noqa: S101 (only channels have pins)
        fresh = self._pins[message.channel_id] = self._pins.get(message.channel_id, 0) + 1
        if self._state.pins.of_channel.count(message.channel_id) + fresh > MAX_PINS:
            self._report.skip("pins", f"A channel can have at most {MAX_PINS}.", message.id)
            return
        self._report.count("pins")
        yield MessagePinned(
            pin=Pin(
                message_id=message.id,
                channel_id=message.channel_id,
                topic=message.topic,
                pinned_by=user_id,
                pinned_at=message.sent_at,
            )
        )

    def _reminders(self, source: SourceMessage, message_id: int) -> Iterator[AnyChange]:
        for reminder in source.reminders[:MAX_REMINDERS]:
            user_id = self._ids.find("user", reminder.user)
            if user_id is None:
                continue
            number, self._next_reminder = self._next_reminder, self._next_reminder + 1
            content = storable(reminder.content)[:MAX_MESSAGE]
            yield ReminderSet(
                user_id=user_id,
                reminder=Reminder(
                    id=number,
                    user_id=user_id,
                    message_id=message_id,
                    note=storable(reminder.note)[:MAX_REMINDER_NOTE],
                    content=content,
                    rendered=self._context.checks.html(content, user_id),
                    deliver_at=self._context.checks.due(reminder.deliver_at),
                ),
            )
            self._report.count("reminders")


def _link_key(key: Key) -> str:
    return f"{LINK_FACT}{key}"


def _is_part(content: str) -> bool:
    """Whether the content is JSON as clients send it."""
    if len(content) > widgets.MAX_SUBMESSAGE or "\\u0000" in content or "\0" in content:
        return False
    try:
        msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True
