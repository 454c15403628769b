"""Rendering the conversations that people are notified about, for emails to one reader."""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.markup import addresses
from tertulia.model.errors import Unavailable
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.conversation_mails import QuotedMessage
from tertulia.outbound.mail_templates import InlinePicture
from tertulia.outbound.readable_html import pictures_in, readable
from tertulia.pictures import BadPicture
from tertulia.service.files.uploads import may_open, thumbnail
from tertulia.service.node import Node
from tertulia.store import notifications as notifications
from tertulia.texts import language_for, texts

logger = logging.getLogger("tertulia.notices")

PICTURES: Final = 5
"""Maximum number of images in an email; others become links."""
PICTURE_BYTES: Final = 500_000
"""Maximum size of one image."""
_FORM: Final = "840x560.webp"


class MailReader:
    """Renders conversations for one user, with their current permissions."""

    def __init__(self, node: Node, user: User, site: str, now: float) -> None:
        self._node = node
        self.user = user
        self.site = site.rstrip("/")
        self.settings = node.state.settings[user.id]
        self.language = language_for(node.state, user)
        self.words = texts(self.language, "conversations")
        self._now = now
        self._pictures: dict[str, InlinePicture] = {}

    @property
    def pictures(self) -> tuple[InlinePicture, ...]:
        """The images of all rendered messages."""
        return tuple(self._pictures.values())

    def name_of(self, user_id: int) -> str:
        """Return the account's name, as the reader can see it."""
        state, other = self._node.state, self._node.state.users[user_id]
        seen = permissions.sees_user(state, self.user, other)
        return other.full_name if seen else self.words("unknown")

    def conversation_name(self, message: Message) -> str:
        """Return the name of the message's conversation."""
        state = self._node.state
        if message.direct_id is not None:
            members = state.directs[message.direct_id].members
            others = [member_id for member_id in members if member_id != self.user.id] or [
                self.user.id
            ]
            return self.words("direct", names=", ".join(map(self.name_of, others)))
        channel = state.channels[message.channel_id]
        return f"#{channel.name} > {message.topic or self.words('general')}"

    def link_to(self, message: Message) -> str:
        return self.site + addresses.address_of(self._node.state, message)

    async def render(
        self, messages: Iterable[Message], own_ids: Iterable[int]
    ) -> list[QuotedMessage]:
        """Return the messages for the email. Messages that aren't in `own_ids` are context."""
        notified = set(own_ids)
        return [await self._render(message, message.id not in notified) for message in messages]

    async def _render(self, message: Message, is_before: bool) -> QuotedMessage:
        pictures = await self._pictures_of(message)
        text = readable(message.rendered, self.site, pictures)
        return QuotedMessage(
            sender=self.name_of(message.sender_id),
            time=self._time(message.sent_at),
            html=text.html,
            text=text.text,
            is_before=is_before,
        )

    def _time(self, at: int) -> str:
        zone = ZoneInfo(self.user.timezone) if self.user.timezone else UTC
        then, now = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(self._now, zone)
        is_half = self.settings.twenty_four_hour_time is False
        hours = f"{then:%I:%M %p}".lstrip("0") if is_half else f"{then:%H:%M}"
        day = "" if then.date() == now.date() else f"{then:%Y-%m-%d} "
        return day + hours + ("" if self.user.timezone else " UTC")

    async def _pictures_of(self, message: Message) -> dict[str, str]:
        """Return the `Content-ID` of each attached image of the message, by path. Images that the
        reader can't open, and those that aren't available, are left out."""
        result: dict[str, str] = {}
        if not message.has_image:
            return result
        for path in pictures_in(message.rendered):
            if path not in self._pictures and len(self._pictures) < PICTURES:
                content = await self._picture(path)
                if content is not None:
                    name = f"picture-{len(self._pictures) + 1}@tertulia"
                    self._pictures[path] = InlinePicture(
                        content_id=name, media_type="image/webp", content=content
                    )
            if path in self._pictures:
                result[path] = self._pictures[path].content_id
        return result

    async def _picture(self, path: str) -> bytes | None:
        node = self._node
        attachment = node.state.uploads.at_path(path)
        if attachment is None or not await may_open(node, self.user, attachment):
            return None
        try:
            small = await thumbnail(node, attachment, _FORM)
            content = await small.files.read(small.path)
        except (BadPicture, Unavailable) as error:
            logger.info("left an image out of an email: %s", error)
            return None
        return content if content is not None and len(content) <= PICTURE_BYTES else None


def sender_names(reader: MailReader, sender_ids: Sequence[int], most: int) -> str:
    """Return the senders' names without duplicates, at most `most` of them."""
    names = list(dict.fromkeys(map(reader.name_of, sender_ids)))
    listed = ", ".join(names[:most])
    if len(names) <= most:
        return listed
    return reader.words("digest_and_others", people=listed)


class Notification(Struct, frozen=True, kw_only=True):
    """A person, and unread messages of one conversation to notify them about now."""

    user_id: int
    conversation: str
    """The conversation's key, from `conversation_key`."""
    message_ids: tuple[int, ...]
    """Ascending."""


def conversation_key(message: Message) -> str:
    """Return a key that is equal for all messages of one conversation."""
    channel_id, key, direct_id = message.conversation
    return f"d{direct_id}" if direct_id is not None else f"c{channel_id}/{key}"


def channel_of_key(key: str) -> int | None:
    """Return the channel's ID from a conversation's key; None for direct messages."""
    return int(key[1:].partition("/")[0]) if key.startswith("c") else None
