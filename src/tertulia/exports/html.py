"""Exports as HTML pages that can be read without a server: an index, channels, topics, and the
files that messages link."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote, unquote

from pyroaring import BitMap

from tertulia.exports.archive import ExportArchive
from tertulia.exports.files import UploadedFiles
from tertulia.exports.scope import ExportScope
from tertulia.model.channels import Channel, Topic
from tertulia.model.messages import DirectConversation, Message
from tertulia.model.reactions import Reaction
from tertulia.outbound.archive_pages import (
    Addressed,
    ArchiveLink,
    ArchivePages,
    archived,
    safe,
    styles,
)
from tertulia.store import message_details, queries, topics
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.message_details import NO_DETAILS
from tertulia.store.transfer import Progress

MESSAGES_PER_PAGE: Final = 200
TOPICS_PER_PAGE: Final = 500
_UPLOADED: Final = re.compile(r"/user_uploads/(?:download/|thumbnail/)?(\d+/[^/]+/[^/]+/[^/?#]+)")
_CHANNEL: Final = re.compile(r"/?#narrow/(?:channel|stream)/(\d{1,15})\b")


def write(
    archive: ExportArchive,
    scope: ExportScope,
    connection: Connection,
    files: Files,
    disk: DiskFiles,
    now: float,
    progress: Progress,
) -> tuple[int, list[str]]:
    """Write everything in scope. Return the number of messages, and the names of missing files."""
    uploaded = UploadedFiles(scope, connection, archive, files, disk)
    pages = Pages(scope, connection, archive, uploaded, now)
    pages.write(progress)
    asyncio.run(uploaded.write("files", progress, closing=True))
    return pages.messages, uploaded.missing


class Pages:
    def __init__(
        self,
        scope: ExportScope,
        connection: Connection,
        archive: ExportArchive,
        uploaded: UploadedFiles,
        now: float,
    ) -> None:
        self._scope = scope
        self._state = scope.state
        self._connection = connection
        self._archive = archive
        realm = scope.state.realm
        self._pages = ArchivePages(realm.name, realm.default_language, now)
        self._say = self._pages.say
        self._paths = {included.attachment.path for included in uploaded.included}
        self.messages = 0

    def write(self, progress: Progress) -> None:
        total = queries.count_messages(self._connection)
        channels = []
        for channel in sorted(self._scope.channels, key=lambda channel: channel.name.casefold()):
            channels.append(self._write_channel(channel))
            progress("messages", self.messages, total)
        directs = []
        for direct in self._scope.directs:
            directs.append(self._write_direct(direct))
            progress("messages", self.messages, total)
        description = safe(self._state.realm.rendered_description, self._addressed("./"))
        self._archive.add("index.html", self._pages.index(description, channels, directs))
        self._archive.add("style.css", styles())

    def _write_channel(self, channel: Channel) -> ArchiveLink:
        place = ArchiveLink(name=channel.name, address=f"../channels/{channel.id}.html")
        entries = []
        result = self._state.topics.of_channel[channel.id].values()
        for topic in sorted(result, key=lambda topic: topic.last_message_id, reverse=True):
            entry = self._write_topic(channel, place, topic)
            if entry.messages:
                entries.append(entry)
        pages = _numbered(entries, TOPICS_PER_PAGE)
        for page, some in enumerate(pages, 1):
            content = self._pages.channel(
                channel.name,
                safe(channel.rendered_description, self._addressed("../")),
                some,
                page,
                len(pages),
                lambda number: _name(channel.id, number),
            )
            self._archive.add(f"channels/{_name(channel.id, page)}", content)
        marks = (
            *((self._say("private"),) if channel.is_private else ()),
            *((self._say("archived"),) if channel.is_archived else ()),
        )
        return ArchiveLink(
            name=f"#{channel.name}",
            address=f"channels/{channel.id}.html",
            messages=sum(link.messages for link in entries),
            marks=marks,
        )

    def _write_topic(self, channel: Channel, place: ArchiveLink, topic: Topic) -> ArchiveLink:
        every, _ = topics.ids_of_topic(self._connection, channel.id, topic.key)
        ids = [
            message_id for message_id in every if self._scope.includes(message_id, channel.id, None)
        ]
        title = topic.name or self._say("general")
        self._write_messages("topics", topic.last_message_id, title, place, ids)
        address = f"../topics/{topic.last_message_id}.html"
        return ArchiveLink(name=title, address=address, messages=len(ids))

    def _write_direct(self, direct: DirectConversation) -> ArchiveLink:
        ids = queries.direct_messages(self._connection, [direct.id])[direct.id]
        names = [self._state.users[user_id].full_name for user_id in direct.members]
        title = ", ".join(names) if len(names) > 1 else f"{names[0]}: {self._say('note')}"
        self._write_messages("direct", direct.id, title, None, ids)
        return ArchiveLink(name=title, address=f"direct/{direct.id}.html", messages=len(ids))

    def _write_messages(
        self,
        directory: str,
        number: int,
        title: str,
        place: ArchiveLink | None,
        ids: Sequence[int] | BitMap,
    ) -> None:
        pages = (len(ids) + MESSAGES_PER_PAGE - 1) // MESSAGES_PER_PAGE
        addressed = self._addressed("../")
        for page in range(1, pages + 1):
            some = ids[(page - 1) * MESSAGES_PER_PAGE : page * MESSAGES_PER_PAGE]
            messages = [
                archived(
                    message, self._state.users[message.sender_id].full_name, reactions, addressed
                )
                for message, reactions in self._read(list(some))
            ]
            content = self._pages.messages(
                title, place, messages, page, pages, lambda other: _name(number, other)
            )
            self._archive.add(f"{directory}/{_name(number, page)}", content)
            self.messages += len(messages)

    def _read(self, ids: list[int]) -> Iterator[tuple[Message, Sequence[Reaction]]]:
        details = message_details.details_of(self._connection, ids)
        for message in queries.messages(self._connection, ids):
            yield message, details.get(message.id, NO_DETAILS).reactions

    def _addressed(self, root: str) -> Addressed:
        """Return the function that replaces URLs on pages whose path to the index is `root`."""

        def addressed(address: str) -> str | None:
            if match := _UPLOADED.match(address):
                path = unquote(match[1])
                return f"{root}files/{quote(path)}" if path in self._paths else None
            if match := _CHANNEL.match(address):
                channel_id = int(match[1])
                known = channel_id in self._scope.channel_ids
                return f"{root}channels/{channel_id}.html" if known else None
            is_web = address.startswith(("https://", "http://", "mailto:"))
            return address if is_web else None

        return addressed


def _name(number: int, page: int) -> str:
    """Return the file name of a page."""
    return f"{number}.html" if page == 1 else f"{number}-{page}.html"


def _numbered(entries: Sequence[ArchiveLink], size: int) -> list[Sequence[ArchiveLink]]:
    """Split entries into pages. There's at least one."""
    return [entries[first : first + size] for first in range(0, len(entries), size)] or [()]
