"""The edits and reactions of imported messages, which are written next to the log."""

from tertulia.imports.context import ImportContext
from tertulia.imports.personal_records import MAX_CLIENT, topic_name
from tertulia.imports.preparation import PreparedMessage
from tertulia.imports.records import MAX_REACTIONS
from tertulia.imports.values import storable
from tertulia.model.messages import Message, MessageEdit
from tertulia.model.reactions import EmojiKind, Reaction
from tertulia.store.notes import MessageHistoryImported


class ImportedHistory:
    """The edits and reactions of a batch."""

    def __init__(self, context: ImportContext) -> None:
        self._ids = context.ids
        self._report = context.report
        self._edits: list[MessageEdit] = []
        self._reactions: list[Reaction] = []

    def note(self) -> MessageHistoryImported:
        """Return the note that stores the edits and reactions."""
        return MessageHistoryImported(tuple(self._edits), tuple(self._reactions))

    def add(self, prepared: PreparedMessage, message: Message) -> None:
        """Add the edits of a message, and its reactions."""
        source, message_id = prepared.source, message.id
        if not prepared.edits and not source.reactions:
            return
        for n, (edit, before) in enumerate(zip(prepared.edits, prepared.before, strict=True), 1):
            content, html = edit.was_content, None if before is None else before.html
            if {content, edit.topic, edit.channel} == {None}:
                # The previous text isn't known, only that the message was edited.
                content, html = message.content, message.rendered
            self._edits.append(
                MessageEdit(
                    message_id=message_id,
                    seq=n,
                    at=edit.at,
                    user_id=self._ids.find("user", edit.user),
                    was_content=content,
                    was_rendered=html,
                    was_topic=None if edit.was_topic is None else topic_name(edit.was_topic),
                    topic=None if edit.topic is None else topic_name(edit.topic),
                    was_channel_id=self._ids.find("channel", edit.was_channel),
                    channel_id=self._ids.find("channel", edit.channel),
                )
            )
        self._report.count("edits", len(prepared.edits))
        seen: set[tuple[int | None, EmojiKind, str]] = set()
        for reaction in source.reactions[:MAX_REACTIONS]:
            user_id = self._ids.find("user", reaction.user)
            code = storable(reaction.code)[:MAX_CLIENT]
            if reaction.kind is EmojiKind.CUSTOM:
                emoji_id = self._ids.find("emoji", int(code) if code.isdecimal() else code)
                if emoji_id is None:
                    self._report.skip("reactions", "The emoji isn't in the export.", reaction.name)
                    continue
                code = str(emoji_id)
            if user_id is None:
                self._report.skip("reactions", "The person isn't in the export.", reaction.name)
                continue
            if (user_id, reaction.kind, code) in seen:
                continue
            seen.add((user_id, reaction.kind, code))
            name = storable(reaction.name)[:MAX_CLIENT]
            self._reactions.append(
                Reaction(
                    message_id=message_id, user_id=user_id, kind=reaction.kind, code=code, name=name
                )
            )
        self._report.count("reactions", len(seen))
        if len(source.reactions) > MAX_REACTIONS:
            self._report.skip(
                "reactions", f"A message has more than {MAX_REACTIONS:,}.", source.key
            )
