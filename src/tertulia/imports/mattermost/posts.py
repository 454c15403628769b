"""Mattermost's posts as messages."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tertulia.domain.messages.attachments import display_name
from tertulia.imports.attachments import attachment_of
from tertulia.imports.cards import card, parts_in, text_in
from tertulia.imports.emoji_aliases import reaction_named
from tertulia.imports.markdown import in_link, parts_of
from tertulia.imports.mattermost.lines import BulkPost, BulkReaction
from tertulia.imports.mattermost.markup import MattermostMarkup
from tertulia.imports.mattermost.organization import KnownPeople
from tertulia.imports.records import (
    Key,
    SourceAttachment,
    SourceEdit,
    SourceFile,
    SourceMessage,
    SourceReaction,
)
from tertulia.imports.references import clean
from tertulia.imports.sorting import Findings, MessageSorter, milliseconds
from tertulia.model.messages import Flag

MAX_STRANGERS: Final = 50_000
"""The most people who wrote messages but aren't in the export."""
MAX_FILES: Final = 100
"""The most files of a message."""


class PostConverter:
    """Converts posts, and gives them to a sorter. Adds to the findings what it can't convert."""

    def __init__(
        self,
        people: KnownPeople,
        findings: Findings,
        sorter: MessageSorter,
        place: Callable[[str], str | None],
        secret: str,
    ) -> None:
        """`place` finds a file of the export. `secret` makes the URLs of files unguessable."""
        self._people = people
        self._findings = findings
        self._report = findings.report
        self._sorter = sorter
        self._place = place
        self._secret = secret
        self._converter = MattermostMarkup(people.known, people.channels)

    def add_channel_post(self, post: BulkPost, number: int) -> None:
        """Add a post and its replies, as the thread with this number."""
        channel = f"{post.team}/{post.channel}"
        if not self._people.has_team(post.team):
            self._report.skip("messages", "They are in other teams.", number=_count(post))
            return
        if channel not in self._people.channels:
            reason = "The channel isn't in the export."
            self._report.skip("messages", reason, channel, _count(post))
            return
        replies = post.replies or []
        thread = str(number) if replies else ""
        for reply in (post, *replies):
            self._add(reply, post.team, channel=channel, thread=thread)

    def add_direct_post(self, post: BulkPost) -> None:
        """Add a direct message and its replies."""
        people = tuple(sorted({*(post.channel_members or ()), post.user}))
        if not all(self._people.has(person) for person in people):
            reason = "They are between people in other teams."
            self._report.skip("direct messages", reason, number=_count(post))
            return
        if not all(self._know(person) for person in people):
            return
        if post.replies:
            self._report.change(
                "threads of direct messages",
                "Direct messages don't have threads here, so replies are in chronological order.",
            )
        for reply in (post, *(post.replies or ())):
            self._add(reply, "", people=people)

    def _know(self, name: str) -> bool:
        """Record a person who isn't in the export. Return False if there are too many."""
        if name in self._people.members or name in self._findings.strangers:
            return True
        if len(self._findings.strangers) >= MAX_STRANGERS:
            self._report.skip("messages", "Too many people aren't in the export.", name)
            return False
        self._findings.strangers[name] = name
        return True

    def _add(
        self,
        post: BulkPost,
        team: str,
        *,
        channel: Key | None = None,
        people: tuple[Key, ...] = (),
        thread: str = "",
    ) -> None:
        at = milliseconds(post.create_at)
        kind = post.type or ""
        if kind.startswith("system_"):
            reason = "Notices, for example that someone joined a channel, aren't imported."
            self._report.skip("notices", reason, clean(post.message or ""))
            return
        if at is None:
            self._report.skip("messages", "The time isn't valid.", post.message or "")
            return
        if not self._know(post.user):
            return
        props = post.props or {}
        self._converter.begin()
        texts = [self._text(post, kind, team)]
        texts += [
            card(fields, lambda text: self._converter.markdown(text, team))
            for fields in parts_in(props, "attachments")
        ]
        files, links = self._files(post, at)
        content = "\n".join(text for text in (*texts, *links) if text.strip())
        if not content.strip():
            self._report.skip("messages", "The message is empty.", kind)
            return
        if self._converter.permalinks:
            self._report.change(
                "links to messages",
                "Mattermost's export doesn't say which messages they link to, so they still lead"
                " to the previous server.",
                number=self._converter.permalinks,
            )
        members = self._people.members_of.get(str(channel), frozenset()) if channel else people
        flags: dict[Key, Flag] = {}
        for name in self._converter.mentioned.intersection(members):
            flags[name] = Flag.MENTIONED
        for name in post.flagged_by or ():
            if name in members:
                flags[name] = flags.get(name, Flag(0)) | Flag.STARRED
            elif channel is not None and channel not in self._people.private:
                flags[name] = Flag.STARRED | Flag.RECORD
        first, *further = parts_of(_named(props, content))
        message = SourceMessage(
            key=0,
            sender=post.user,
            sent_at=at // 1000,
            channel=channel,
            people=people,
            content=first,
            client="Mattermost",
            edits=self._edits(post),
            reactions=self._reactions(post.reactions or ()),
            flags=flags,
            attachments=tuple(files),
            is_pinned=bool(post.is_pinned),
        )
        title = post.message or texts[-1]
        self._sorter.add(at, message, thread=thread, text=title)
        if further:
            self._report.change("messages", "They were too long, so they were split.")
        for part in further:
            rest = SourceMessage(
                key=0,
                sender=post.user,
                sent_at=at // 1000,
                channel=channel,
                people=people,
                content=part,
                client="Mattermost",
            )
            self._sorter.add(at, rest, thread=thread, text=title)

    def _text(self, post: BulkPost, kind: str, team: str) -> str:
        text = self._converter.markdown(post.message or "", team)
        if kind == "me":
            return f"/me {text.strip().removeprefix('*').removesuffix('*')}"
        return text

    def _edits(self, post: BulkPost) -> tuple[SourceEdit, ...]:
        at = milliseconds(post.edit_at)
        if at is None:
            return ()
        self._report.change("edits", "The export doesn't have the previous versions.")
        return (SourceEdit(at=at // 1000, user=post.user),)

    def _reactions(self, given: Sequence[BulkReaction]) -> tuple[SourceReaction, ...]:
        reactions: dict[tuple[str, str], SourceReaction] = {}
        for bulk_reaction in given:
            reaction = reaction_named(bulk_reaction.user, bulk_reaction.emoji_name)
            reactions.setdefault((bulk_reaction.user, reaction.code), reaction)
        return tuple(reactions.values())

    def _files(self, post: BulkPost, at: int) -> tuple[list[SourceAttachment], list[str]]:
        """Return a post's files, and the lines that link them."""
        files: list[SourceAttachment] = []
        lines: list[str] = []
        for bulk_file_reference in (post.attachments or ())[:MAX_FILES]:
            name = display_name(clean(bulk_file_reference.path))
            place = self._place(bulk_file_reference.path)
            if place is None:
                reason = "The file isn't in the export. Create the export with attachments."
                self._report.skip("files", reason, name)
                lines.append(f"(missing file: {in_link(name)})")
                continue
            attachment, line = attachment_of(
                SourceFile(place=place, name=name),
                owner=post.user,
                created_at=at // 1000,
                secret=self._secret,
            )
            files.append(attachment)
            lines.append(line)
        return files, lines


def _named(props: dict[str, Any], content: str) -> str:
    """Return the content, preceded by the name that a webhook posted under."""
    name = " ".join(clean(text_in(props, "override_username")).replace("*", "").split())[:100]
    is_webhook = text_in(props, "from_webhook").lower() == "true"
    return f"**{name}**\n{content}" if name and is_webhook else content


def _count(post: BulkPost) -> int:
    return 1 + len(post.replies or ())
