"""Sending messages."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from tertulia.domain import names
from tertulia.domain.messages import attachments, sending, widgets
from tertulia.domain.messages.sending import (
    ComposedMessage,
    MessageDraft,
    Sent,
    ToChannel,
    ToPeople,
)
from tertulia.log.forwarding import ForwardableCommand
from tertulia.model.channels import topic_key
from tertulia.model.errors import Refused
from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.service.files.uploads import FileAccess
from tertulia.service.node import Caller, Node, retry_on_conflict
from tertulia.state.state import State
from tertulia.store import topics
from tertulia.store.database import Connection

Topic = tuple[int, str]
"""The channel's ID and the topic's key."""


async def compose(
    node: Node, author: User, content: str, topic_of: Callable[[], Topic | None]
) -> ComposedMessage:
    """Render final content (`names.message_content`) of the author, and look up what its verb
    needs.

    `topic_of` returns the message's topic (None for direct messages). It is called only for content
    that mentions the topic's participants.
    """
    rendered = await node.rendered(content, author.id, reach=author.reach)
    linked = [
        attachment
        for attachment in attachments.linked(node.state, content)
        if attachment.user_id != author.id or author.reach is not None
    ]
    topic = topic_of() if rendered.mentions_topic else None
    if topic is None and not linked:
        return ComposedMessage(content=content, rendered=rendered)

    async def attempt() -> ComposedMessage:
        access = FileAccess(node, author, linked)
        if topic is None and not access.needs_look:
            return ComposedMessage(
                content=content, rendered=rendered, opened_attachments=access.own
            )
        await node.log.durability.settled()

        def look(connection: Connection) -> tuple[frozenset[int], frozenset[int]]:
            participants = (
                frozenset[int]() if topic is None else topics.topic_senders(connection, *topic)
            )
            return participants, access.opened(connection)

        participants, opened = await node.store.read(look)
        access.require_unchanged()
        return ComposedMessage(
            content=content,
            rendered=rendered,
            topic_participants=participants,
            opened_attachments=opened,
        )

    return await retry_on_conflict(attempt)


def _marked(draft: MessageDraft, mark: str) -> MessageDraft:
    """Add an idempotency key if the client sent none."""
    if draft.queue_id and draft.local_id:
        return draft
    return msgspec.structs.replace(draft, queue_id="node", local_id=mark)


SENDING: Final = ForwardableCommand(sending.send, MessageDraft, Sent, _marked)
"""Sending, when another node does it for this one."""


async def send_message(
    caller: Caller,
    to: ToChannel | ToPeople,
    content: str,
    *,
    client: str,
    read_by_sender: bool,
    queue_id: str | None = None,
    local_id: str | None = None,
    form: str | None = None,
    files: Collection[int] = (),
    identity: str | None = None,
) -> Sent:
    """Send a message as the caller with the client `client`. `queue_id` and `local_id` are the
    idempotency key: sent twice, it is one message. `form` is JSON text (`widgets.form`). `files`
    are attachments that the message may link regardless of their owner. `identity` identifies the
    request if the content differs between attempts.

    Raises as `tertulia.domain.messages.sending.send`; Refused for invalid content.
    """
    draft = await draft_of(
        caller.node,
        caller.user,
        to,
        names.message_content(content),
        client=client,
        read_by_sender=read_by_sender,
        queue_id=queue_id,
        local_id=local_id if queue_id else None,
        form=None if form is None else widgets.form(form),
        files=files,
        identity=identity,
    )
    return await caller.submit(sending.send, draft)


def sent_before(
    caller: Caller, to: ToChannel | ToPeople, queue_id: str, local_id: str, identity: str
) -> int | None:
    """Return the ID of the message that the same request sent before, if any."""
    draft = MessageDraft(
        to=to,
        content="",
        rendered=Rendered(html=""),
        queue_id=queue_id,
        local_id=local_id,
        identity=identity,
    )
    return sending.sent_before(caller.context(), draft)


async def draft_of(
    node: Node,
    author: User,
    to: ToChannel | ToPeople,
    content: str,
    *,
    client: str,
    read_by_sender: bool,
    queue_id: str | None = None,
    local_id: str | None = None,
    form: str | None = None,
    files: Collection[int] = (),
    identity: str | None = None,
) -> MessageDraft:
    """The draft of a message with final content (`names.message_content`)."""
    composed = await compose(node, author, content, lambda: _topic(node.state, to))
    return MessageDraft(
        to=to,
        content=composed.content,
        rendered=composed.rendered,
        topic_participants=composed.topic_participants,
        opened_attachments=composed.opened_attachments.union(files),
        client=client,
        read_by_sender=read_by_sender,
        queue_id=queue_id,
        local_id=local_id,
        form=form,
        identity=identity,
    )


def _topic(state: State, to: ToChannel | ToPeople) -> Topic | None:
    """The topic that a message goes to; None for direct messages and unknown channels."""
    if isinstance(to, ToPeople):
        return None
    channel = (
        state.channels.get(to.channel_id)
        if to.channel_id is not None
        else state.channel_named(to.name or "")
    )
    return None if channel is None else (channel.id, topic_key(names.topic_name(to.topic)))


def people_addressed(caller: Caller, named: Iterable[int | str]) -> list[int]:
    """The IDs of users given by ID or email address. Raises Refused for unknown addresses."""
    result: list[int] = []
    for one in named:
        if isinstance(one, int):
            result.append(one)
            continue
        user = caller.account_with(one)
        if user is None:
            raise Refused(f"No user has the email address '{one[:100]}'.")
        result.append(user.id)
    return result


def to_people(user_ids: Sequence[int]) -> ToPeople:
    """Raises Refused without recipients."""
    if not user_ids:
        raise Refused("A message needs at least one recipient.")
    return ToPeople(frozenset(user_ids))


def to_topic(channel: int | str, topic: str | None) -> ToChannel:
    """Raises Refused without a topic."""
    if topic is None:
        raise Refused("The topic is missing.")
    if isinstance(channel, int):
        return ToChannel(topic=topic, channel_id=channel)
    return ToChannel(topic=topic, name=channel)


def default_channel(caller: Caller) -> int:
    """The bot's default channel. Raises Refused for other callers."""
    bot = caller.user.bot
    if bot is None or bot.default_sending_channel_id is None:
        raise Refused("A channel message needs a channel.")
    return bot.default_sending_channel_id
