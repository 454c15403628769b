"""Sending messages."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Required, TypedDict, Unpack

import msgspec

from tertulia.domain import names
from tertulia.domain.messages import sending, widgets
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
    """Render an author's normalized content (`names.message_content`), and look up the data that
    its verb needs. `topic_of` returns the message's topic (None for direct messages). It's called
    only for content that mentions the topic's participants."""
    rendered = await node.rendered(content, author.id, reach=author.reach)
    linked = [
        attachment
        for attachment in node.state.uploads.linked_files(content)
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
"""The command that sends a message, in the form in which another node can run it."""


class DraftOptions(TypedDict, total=False):
    """Fields of a `MessageDraft` in addition to destination and content."""

    client: Required[str]
    read_by_sender: Required[bool]
    queue_id: str | None
    """The idempotency key, together with `local_id`: a message that is sent twice with the same key
    is sent once."""
    local_id: str | None
    form: str | None
    """JSON of a form (`widgets.checked_form`)."""
    identity: str | None
    """The content that identifies the request, if the message's content differs between
    attempts."""


async def send_message(
    caller: Caller,
    to: ToChannel | ToPeople,
    content: str,
    *,
    files: Collection[int] = (),
    **options: Unpack[DraftOptions],
) -> Sent:
    """Send a message as the caller. `files` are attachments that the message can link regardless of
    their owner. Raise as `tertulia.domain.messages.sending.send`; Refused for invalid content."""
    if not options.get("queue_id"):
        options["local_id"] = None
    if (form := options.get("form")) is not None:
        options["form"] = widgets.checked_form(form)
    text = names.message_content(content)
    draft = await draft_of(caller.node, caller.user, to, text, files=files, **options)
    return await caller.submit(sending.send, draft)


def sent_before(
    caller: Caller, to: ToChannel | ToPeople, queue_id: str, local_id: str, identity: str
) -> int | None:
    """Return the ID of the message that the same request already sent, if any."""
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
    files: Collection[int] = (),
    **options: Unpack[DraftOptions],
) -> MessageDraft:
    """Return the draft of a message with normalized content (`names.message_content`)."""
    composed = await compose(node, author, content, lambda: _topic(node.state, to))
    return MessageDraft(
        to=to,
        content=composed.content,
        rendered=composed.rendered,
        topic_participants=composed.topic_participants,
        opened_attachments=composed.opened_attachments.union(files),
        **options,
    )


def _topic(state: State, to: ToChannel | ToPeople) -> Topic | None:
    """Return the topic that a message goes to; None for direct messages and unknown channels."""
    if isinstance(to, ToPeople):
        return None
    channel = (
        state.channels.get(to.channel_id)
        if to.channel_id is not None
        else state.channel_named(to.name or "")
    )
    return None if channel is None else (channel.id, topic_key(names.topic_name(to.topic)))


def people_addressed(caller: Caller, named: Iterable[int | str]) -> list[int]:
    """Return the IDs of users given by ID or email address. Raise Refused for unknown addresses."""
    user_ids: list[int] = []
    for name in named:
        if isinstance(name, int):
            user_ids.append(name)
            continue
        user = caller.account_with(name)
        if user is None:
            raise Refused(f"No user has the email address '{name[:100]}'.")
        user_ids.append(user.id)
    return user_ids


def to_people(user_ids: Sequence[int]) -> ToPeople:
    """Return the destination. Raise Refused without recipients."""
    if not user_ids:
        raise Refused("A message needs at least one recipient.")
    return ToPeople(frozenset(user_ids))


def to_topic(channel: int | str, topic: str | None) -> ToChannel:
    """Return the destination. Raise Refused without a topic."""
    if topic is None:
        raise Refused("The topic is missing.")
    if isinstance(channel, int):
        return ToChannel(topic=topic, channel_id=channel)
    return ToChannel(topic=topic, name=channel)


def default_channel(caller: Caller) -> int:
    """Return the bot's default channel. Raise Refused for other callers."""
    bot = caller.user.bot
    if bot is None or bot.default_sending_channel_id is None:
        raise Refused("A channel message needs a channel.")
    return bot.default_sending_channel_id
