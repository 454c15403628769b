"""Converting Slack's messages."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tertulia.domain import names
from tertulia.imports import references
from tertulia.imports.emoji_aliases import slack_emoji
from tertulia.imports.markdown import parts_of
from tertulia.imports.records import (
    MAX_REACTIONS,
    SourceEdit,
    SourceMessage,
    SourceReaction,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.slack import mrkdwn, values
from tertulia.imports.slack.blocks import BlockConverter
from tertulia.imports.slack.conversations import SlackConversation, pinned_times
from tertulia.imports.slack.files import SharedFiles
from tertulia.imports.slack.index import PARTS, IndexedMessage, SlackIndex
from tertulia.imports.slack.mrkdwn import MrkdwnConverter
from tertulia.imports.slack.organization import SlackRecords
from tertulia.imports.slack.senders import sender_of
from tertulia.imports.slack.values import MICROSECONDS, Record, record, records, text, texts
from tertulia.imports.threads import MAX_READ
from tertulia.model.messages import Flag
from tertulia.model.numbers import counted
from tertulia.model.reactions import EmojiKind

MAX_PART: Final = names.MAX_MESSAGE - 1000
"""Longest message, in characters of Markdown. Mentions get longer by their IDs."""
MAX_TEXT: Final = MAX_PART * PARTS // 2
"""The most characters of Markdown that a Slack message becomes. Slack allows 40,000."""
_LINK: Final = re.compile(
    r"https://[a-z0-9.-]+\.slack\.com/(?:archives/(?P<channel>[A-Z0-9]{2,20})"
    r"(?:/p(?P<at>[0-9]{16}))?|team/(?P<person>[A-Z0-9]{2,20}))/?(?:\?[^\s]*)?"
)
_ESCAPED_TWICE: Final = re.compile(r"&amp;(?:lt|gt|amp);")


class SlackMessages:
    """Converts the messages of an export. Implements `MrkdwnLookup`."""

    def __init__(
        self, known: SlackRecords, index: SlackIndex, files: SharedFiles, report: ImportReport
    ) -> None:
        self._known = known
        self._index = index
        self._files = files
        self._report = report
        self._pins: dict[int, frozenset[int]] = {}

    # MrkdwnLookup

    def person(self, key: str, label: str) -> str:
        key = self._known.apps.get(key, key)
        name = self._known.name_of(key) or label or key
        return references.person(key, mrkdwn.escaped(f"@{name}"))

    def group(self, key: str, label: str) -> str:
        group = self._known.groups.get(key, {})
        name = label.removeprefix("@") or text(group, "handle", "name") or key
        return references.group(key, mrkdwn.escaped(f"@{name}"))

    def channel(self, key: str, label: str) -> str:
        known = self._known.by_id.get(key)
        name = label or ("" if known is None else known.name) or key
        return references.channel(key, mrkdwn.escaped(f"#{name}"))

    def link(self, url: str, label: str) -> str | None:
        match = _LINK.fullmatch(url) if url.startswith("https://") else None
        if match is None:
            return None
        if match["person"]:
            key = match["person"]
            if key not in self._known.users:
                return None
            return references.person(key, f"@{self._known.name_of(key)}", silent=True)
        conversation = self._known.by_id.get(match["channel"])
        if conversation is None:
            return None
        if match["at"] is None:
            if conversation.is_direct:
                return None
            return self.channel(conversation.id, conversation.name)
        key_ = self._index.key_of(conversation.number, int(match["at"]))
        if key_ is None:
            return None
        shown = label if label and label != url else ""
        if not shown:
            shown = "💬" if conversation.is_direct else f"#{conversation.name} 💬"
        shown = mrkdwn.escaped(shown).replace("[", "(").replace("]", ")")
        return f"[{shown}]({references.message_url(key_, mrkdwn.url_of(url))})"

    # Messages

    def messages(self, place: IndexedMessage, content: bytes) -> Iterator[SourceMessage]:
        """Yield the messages that a Slack message becomes: none if it can't be read, several if
        it's long."""
        try:
            message = values.decoded(content, values.ANYTHING)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._report.skip("messages", "It can't be read.", place.key)
            return
        conversation = self._known.conversations[place.conversation]
        converter = MrkdwnConverter(self)
        sender = self._sender(message)
        shown = self._content(message, converter)
        files = self._files.of(message, sender, place.at // MICROSECONDS, self._report)
        shown = mrkdwn.joined([self._signed(message, sender, shown), *files.lines])
        if not shown.strip():
            self._report.skip("messages", "It's empty.", f"{conversation.name}: {place.at}")
            return
        people: tuple[str, ...] = ()
        if conversation.is_direct:
            people = tuple(dict.fromkeys((*conversation.members, sender)))
            if place.in_thread is not None or text(message, "thread_ts"):
                self._note_direct_thread(place)
        if len(shown) > MAX_TEXT:
            reason = f"It was shortened to {MAX_TEXT} characters."
            self._report.change("messages", reason, conversation.name)
        parts = parts_of(shown[:MAX_TEXT], MAX_PART)
        if len(parts) > 1:
            self._report.change("messages", "It was too long, so it was split.", conversation.name)
        for number, part in enumerate(parts):
            is_first, is_last = number == 0, number == len(parts) - 1
            yield SourceMessage(
                key=place.key * PARTS + number,
                sender=sender,
                sent_at=place.at // MICROSECONDS,
                channel=None if conversation.is_direct else conversation.id,
                topic="" if conversation.is_direct else place.topic or "",
                people=people,
                content=part,
                client="Slack",
                edits=self._edits(message) if is_first else (),
                reactions=tuple(self._reactions(message)) if is_first else (),
                flags=self._mentioned(converter) if is_first else {},
                attachments=files.attachments if is_last else (),
                is_pinned=is_first and self._is_pinned(conversation, message, place.at),
                is_linked=is_first and bool(place.is_linked),
            )

    def _sender(self, message: Record) -> str:
        key = sender_of(message).key
        return self._known.apps.get(key, key)

    def _signed(self, message: Record, sender: str, shown: str) -> str:
        """Return the content with the name that an app posted under, if it isn't the account's
        name."""
        name = " ".join(text(message, "username").split())[:100]
        is_app = bool(text(message, "bot_id")) or text(message, "subtype") == "bot_message"
        if not is_app or not name or name == self._known.name_of(sender):
            return shown
        return mrkdwn.joined([f"**{mrkdwn.escaped(name)}**" if "*" not in name else name, shown])

    def _content(self, message: Record, converter: MrkdwnConverter) -> str:
        match text(message, "subtype"):
            case "huddle_thread" | "sh_room_created" | "sh_room_shared":
                return self._huddle(message, converter)
            case "me_message":
                inline = converter.mrkdwn(text(message, "text"))
                return f"/me {inline}" if inline else ""
        given = text(message, "text")
        blocks = BlockConverter(converter, self._unknown_block)
        is_escaped = "&amp;" not in given or _ESCAPED_TWICE.search(given) is None
        shown = blocks.of(message, is_escaped=is_escaped) if "blocks" in message else ""
        shown = shown if shown.strip() else converter.mrkdwn(given)
        if "attachments" not in message:
            return shown
        return mrkdwn.joined([shown, *blocks.attachments(message, shown)])

    def _unknown_block(self, kind: str) -> None:
        self._report.skip("blocks of messages", "Blocks of this type aren't supported.", kind)

    def _huddle(self, message: Record, converter: MrkdwnConverter) -> str:
        room = record(message, "room")
        began, ended = values.seconds(room, "date_start"), values.seconds(room, "date_end")
        words = ["started a huddle" if not ended else "had a huddle"]
        if began and ended > began:
            words.append(f"of {counted(max(1, round((ended - began) / 60)), 'minute')}")
        people = [
            references.person(key, f"@{self._known.name_of(key) or key}", silent=True)
            for key in texts(room, "participant_history")[:50]
        ]
        if people:
            words.append(f"with {', '.join(people)}")
        if name := text(room, "name"):
            words.append(f"({mrkdwn.escaped(name)})")
        return f"/me {' '.join(words)}"

    def _note_direct_thread(self, place: IndexedMessage) -> None:
        self._report.change(
            "replies in direct messages",
            "Direct messages don't have threads here, so replies are in chronological order.",
        )

    def _edits(self, message: Record) -> tuple[SourceEdit, ...]:
        edited = record(message, "edited")
        at = values.seconds(edited, "ts")
        return (SourceEdit(at=at, user=text(edited, "user") or None),) if at else ()

    def _reactions(self, message: Record) -> Iterator[SourceReaction]:
        left = MAX_REACTIONS + 1  # One more, so that an excess is reported.
        for reaction in records(message, "reactions"):
            name = text(reaction, "name")
            kind, code, shown = self._emoji(name.partition("::")[0])
            users = dict.fromkeys(texts(reaction, "users"))
            missing = reaction.get("count")
            if isinstance(missing, int) and 0 < missing - len(users) < MAX_REACTIONS * 10:
                reason = "The export doesn't name the people."
                self._report.skip("reactions", reason, name, missing - len(users))
            if code is None:
                reason = "The export doesn't have the custom emoji's image."
                self._report.skip("reactions", reason, name, len(users))
                continue
            for user in list(users)[:left]:
                yield SourceReaction(self._known.apps.get(user, user), kind, code, shown)
            left -= min(left, len(users))

    def _emoji(self, name: str) -> tuple[EmojiKind, str | None, str]:
        for _ in range(8):  # An alias may refer to another one, or to itself.
            if name in self._known.emoji:
                return EmojiKind.CUSTOM, name, name
            if name not in self._known.aliases:
                break
            name = self._known.aliases[name]
        emoji = slack_emoji(name)
        if emoji is None:
            return EmojiKind.CUSTOM, None, name
        return emoji.kind, emoji.code, emoji.name

    def _mentioned(self, converter: MrkdwnConverter) -> Mapping[Any, Flag]:
        people = {self._known.apps.get(key, key) for key in converter.people}
        for key in converter.groups:
            people.update(texts(self._known.groups.get(key, {}), "users"))
        return dict.fromkeys(sorted(people), Flag.MENTIONED)

    def _is_pinned(self, conversation: SlackConversation, message: Record, at: int) -> bool:
        if conversation.id in texts(message, "pinned_to"):
            is_pinned = True
        else:
            pins = self._pins.get(conversation.number)
            if pins is None:
                pins = frozenset(pinned_times(conversation.record))
                self._pins[conversation.number] = pins
            is_pinned = at in pins
        if is_pinned and conversation.is_direct:
            self._report.skip("pins", "Direct messages can't be pinned here.", conversation.name)
        return is_pinned


def first_line(message: Any, known: SlackRecords) -> str:
    """Return the text that a thread's topic is named after: the first line with words of its first
    message, the name of its file, or its time."""
    message = message if isinstance(message, dict) else {}
    attachments = records(message, "attachments")
    files = (*records(message, "files"), record(message, "file"))
    given = [
        text(message, "text"),
        *(text(attachment, "title", "fallback", "text", "pretext") for attachment in attachments),
        *(text(file, "title", "name") for file in files),
    ]
    for line in "\n".join(given)[:MAX_READ].split("\n"):
        result = mrkdwn.plain(line, known)
        if any(sign.isalnum() for sign in result) and result != names.EMPTY_TOPIC_NAME:
            return result
    sent = datetime.fromtimestamp(values.seconds(message, "ts"), UTC)
    return f"{sent:%Y-%m-%d %H:%M}"
