"""Rocket.Chat's messages."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tertulia.imports import references
from tertulia.imports.attachments import attachment_of
from tertulia.imports.cards import card, parts_in, text_in
from tertulia.imports.emoji_aliases import reaction_named
from tertulia.imports.markdown import in_link, parts_of, quoted
from tertulia.imports.records import (
    Key,
    SourceAttachment,
    SourceEdit,
    SourceFile,
    SourceMessage,
    SourceReaction,
)
from tertulia.imports.rocketchat.documents import RocketFile, RocketMessage, RocketPerson
from tertulia.imports.rocketchat.markup import RocketChatMarkup
from tertulia.imports.sorting import Findings, MessageSorter, milliseconds
from tertulia.model.messages import Flag

MAX_STRANGERS: Final = 50_000
MAX_FILES: Final = 100
_SKIPPED: Final = {
    "e2e": "They are end-to-end encrypted, and only their authors' devices can read them.",
    "otr": "They are encrypted, and were never stored as text.",
    "otr-ack": "They are encrypted, and were never stored as text.",
    "rm": "They were deleted.",
}
"""The reasons why messages of these kinds aren't imported."""
_NOTICE: Final = "Notices, for example that someone joined a channel, aren't imported."


class RoomPlace(Struct, frozen=True):
    """The conversation that a room's messages go to."""

    channel: str | None = None
    people: tuple[Key, ...] = ()
    """The participants, for direct messages."""
    discussion: str = ""
    """The ID of a discussion, which becomes a topic."""
    title: str = ""
    """The discussion's title."""
    members: frozenset[str] = frozenset()
    """The members of the channel or direct conversation."""
    is_private: bool = False
    skipped: str = ""
    """The reason why its messages aren't imported; empty if they are."""


FindFile = Callable[[RocketFile], tuple[SourceFile | None, str]]
"""Finds an uploaded file, or says why it isn't available."""


class RocketMessageConverter:
    """Converts messages, and gives them to a sorter. Adds to the findings what it can't convert."""

    def __init__(
        self,
        rooms: Mapping[str, RoomPlace],
        people: Mapping[str, str],
        users: frozenset[str],
        markup: RocketChatMarkup,
        findings: Findings,
        sorter: MessageSorter,
        find_file: FindFile,
        secret: str,
    ) -> None:
        """`people` are keys by user name, `users` the keys of those who are imported. `secret`
        makes the URLs of files unguessable."""
        self._rooms = rooms
        self._people = people
        self._users = users
        self._markup = markup
        self._findings = findings
        self._report = findings.report
        self._sorter = sorter
        self._find_file = find_file
        self._secret = secret

    def add(self, message: RocketMessage) -> None:
        """Add a message, unless it can't be imported."""
        text = message.msg or ""
        place = self._rooms.get(message.rid)
        at = milliseconds(message.ts)
        if message.hidden:
            reason = "They are previous versions of messages."
            self._report.skip("previous versions", reason, references.clean(text))
        elif place is None or place.skipped:
            reason = place.skipped if place else "The room isn't in the dump."
            self._report.skip("messages", reason, message.rid)
        elif message.t in _SKIPPED:
            self._report.skip("messages", _SKIPPED[message.t], message.u.username or "")
        elif message.t:
            self._report.skip("notices", _NOTICE, f"{message.t} {references.clean(text)}")
        elif at is None:
            self._report.skip("messages", "The time isn't valid.", references.clean(text))
        elif self._know(message.u) and all(self._know_key(person) for person in place.people):
            self._add(message, place, at)

    def _know(self, person: RocketPerson) -> bool:
        """Record a sender who isn't in the dump. Return False if there are too many."""
        name = person.name or person.username or person.id
        return self._know_key(person.id, name)

    def _know_key(self, key: Key, name: str = "") -> bool:
        strangers = self._findings.strangers
        if key in self._users or key in strangers:
            return True
        if len(strangers) >= MAX_STRANGERS:
            self._report.skip("messages", "Too many people aren't in the dump.", name)
            return False
        strangers[str(key)] = name or str(key)
        return True

    def _add(self, message: RocketMessage, place: RoomPlace, at: int) -> None:
        self._markup.begin()
        text = message.msg or ""
        quotes, others = self._attachments(message) if message.attachments else ([], [])
        files, links = self._files(message, at) if message.file or message.files else ([], [])
        written = self._markup.markdown(self._markup.without_quotes(text) if quotes else text)
        content = "\n".join(quote for quote in (*quotes, written, *others, *links) if quote.strip())
        if not content.strip():
            self._report.skip("messages", "The message is empty.", message.id)
            return
        if message.alias:
            alias = " ".join(references.clean(message.alias).replace("*", "").split())[:100]
            if alias and alias != message.u.name:
                content = f"**{alias}**\n{content}"
        people = (
            tuple(sorted({*place.people, message.u.id}, key=str)) if place.people else place.people
        )
        first, *further = parts_of(content)
        source = SourceMessage(
            key=0,
            sender=message.u.id,
            sent_at=at // 1000,
            channel=place.channel,
            people=people,
            content=first,
            client="Rocket.Chat",
            edits=self._edits(message),
            reactions=tuple(self._reactions(message)) if message.reactions else (),
            flags=self._flags(message, place),
            attachments=tuple(files),
            is_pinned=bool(message.pinned),
        )
        thread = place.discussion or message.tmid or (message.id if message.tcount else "")
        title = place.title or text or "\n".join(others or links)
        self._sorter.add(at, source, thread=thread, id_=message.id, text=title)
        if further:
            self._report.change("messages", "They were too long, so they were split.")
        for part in further:
            rest = replace(
                source,
                content=part,
                edits=(),
                reactions=(),
                flags={},
                attachments=(),
                is_pinned=False,
            )
            self._sorter.add(at, rest, thread=thread, text=title)

    def _flags(self, message: RocketMessage, place: RoomPlace) -> dict[Key, Flag]:
        if not self._markup.mentioned and not message.starred:
            return {}
        members = place.members
        flags: dict[Key, Flag] = dict.fromkeys(
            sorted(self._markup.mentioned & members), Flag.MENTIONED
        )
        for person in message.starred or ():
            if person.id in members:
                flags[person.id] = flags.get(person.id, Flag(0)) | Flag.STARRED
            elif not place.is_private:
                flags[person.id] = Flag.STARRED | Flag.RECORD
        return flags

    def _edits(self, message: RocketMessage) -> tuple[SourceEdit, ...]:
        at = milliseconds(message.edited_at)
        if at is None:
            return ()
        self._report.change(
            "edits", "The dump doesn't have the previous versions in a usable form."
        )
        editor = message.edited_by.id if message.edited_by else message.u.id
        return (SourceEdit(at=at // 1000, user=editor),)

    def _reactions(self, message: RocketMessage) -> Iterator[SourceReaction]:
        seen = set()
        for colons, given in (message.reactions or {}).items():
            name = colons.strip(":")
            usernames = given.get("usernames") if isinstance(given, dict) else None
            for username in usernames if isinstance(usernames, list) else ():
                key = self._people.get(username) if isinstance(username, str) else None
                if key is None:
                    self._report.skip("reactions", "The person isn't in the dump.", name)
                    continue
                reaction = reaction_named(key, name)
                if (key, reaction.code) not in seen:
                    seen.add((key, reaction.code))
                    yield reaction

    # Attachments

    def _attachments(self, message: RocketMessage) -> tuple[list[str], list[str]]:
        """Return the quotes of other messages, and the other attachments except files."""
        quotes: list[str] = []
        others: list[str] = []
        for fields in parts_in({"attachments": message.attachments}, "attachments"):
            if text_in(fields, "message_link"):
                quotes.append(self._quote(fields))
            elif text_in(fields, "type") == "file" or text_in(fields, "title_link").startswith(
                "/file-upload/"
            ):
                others.append(self._markup.markdown(text_in(fields, "description")))
            else:
                others.append(card(fields, self._markup.markdown))
        return quotes, others

    def _quote(self, attachment: Mapping[str, Any]) -> str:
        """Return a quoted message as a Markdown quote. Nested quotes are left out."""
        text = self._markup.without_quotes(text_in(attachment, "text"))
        nested = [
            text_in(fields, "description") or text_in(fields, "title")
            for fields in parts_in(attachment, "attachments")
            if not text_in(fields, "message_link")
        ]
        # People mentioned in a quote aren't mentioned by the message.
        mentioned = self._markup.mentioned.copy()
        inner = self._markup.markdown("\n".join(part for part in (text, *nested) if part.strip()))
        self._markup.mentioned.clear()
        self._markup.mentioned |= mentioned
        url = self._markup.message_url(references.clean(text_in(attachment, "message_link")))
        name = in_link(references.clean(text_in(attachment, "author_name")) or "Someone")
        key = self._people.get(name)
        author = name if key is None else references.person(key, name, silent=True)
        return f"{author} [said]({url}):\n{quoted(inner)}"

    def _files(self, message: RocketMessage, at: int) -> tuple[list[SourceAttachment], list[str]]:
        """Return a message's files, and the lines that link them."""
        given = message.files or ([message.file] if message.file else [])
        files: list[SourceAttachment] = []
        lines: list[str] = []
        for given_file in given[:MAX_FILES]:
            if given_file.type_group == "thumb":
                continue
            file, reason = self._find_file(given_file)
            if file is None:
                self._report.skip(
                    "files", reason, references.clean(given_file.name or given_file.id)
                )
                lines.append(
                    f"(missing file: {in_link(references.clean(given_file.name or given_file.id))})"
                )
                continue
            attachment, line = attachment_of(
                file, owner=message.u.id, created_at=at // 1000, secret=self._secret
            )
            files.append(attachment)
            lines.append(line)
        return files, lines
