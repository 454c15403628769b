"""Composing a message: its content rendered, with what its verb must know of it looked up."""

from collections.abc import Callable

from tertulia.domain.messages import attachments
from tertulia.domain.messages.sending import Composed
from tertulia.model.users import User
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.files.access import FileAccess
from tertulia.service.node import Node
from tertulia.store import queries
from tertulia.store.database import Connection

Topic = tuple[int, str]
"""The channel's ID and the topic's key."""


async def compose(
    node: Node, author: User, content: str, topic_of: Callable[[], Topic | None]
) -> Composed:
    """The content, which is final (`names.message_content`), of a message of the author's.

    `topic_of` returns the topic that the message is in, or is sent to; None for direct messages.
    It is called only for content that mentions the topic's participants.
    """
    rendered = await node.rendered(content, author.id)
    linked = [
        attachment
        for attachment in attachments.linked(node.state, content)
        if attachment.user_id != author.id
    ]
    topic = topic_of() if rendered.mentions_topic else None

    async def attempt() -> Composed:
        access = FileAccess(node, author, linked)
        if topic is None and not access.needs_look:
            return Composed(content=content, rendered=rendered)
        await node.log.settled()

        def look(connection: Connection) -> tuple[frozenset[int], frozenset[int]]:
            participants = (
                frozenset[int]() if topic is None else queries.topic_senders(connection, *topic)
            )
            return participants, access.opened(connection)

        participants, opened = await node.store.read(look)
        access.require_unchanged()
        return Composed(
            content=content,
            rendered=rendered,
            topic_participants=participants,
            opened_attachments=opened,
        )

    return await retry_on_conflict(attempt)
