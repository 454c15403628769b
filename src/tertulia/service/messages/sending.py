"""Sending a message now."""

from collections.abc import Collection
from typing import Final

import msgspec

from tertulia.domain import names
from tertulia.domain.channels import user_topics
from tertulia.domain.channels.user_topics import Sent
from tertulia.domain.messages import widgets
from tertulia.domain.messages.sending import Draft, ToChannel, ToPeople
from tertulia.log.forwarding import Errand
from tertulia.model.channels import topic_key
from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.service.caller import Caller
from tertulia.service.messages.composing import Topic, compose
from tertulia.service.node import Node
from tertulia.state.organization import State


def _marked(draft: Draft, mark: str) -> Draft:
    """The draft with an idempotency key of ours where its client has none."""
    if draft.queue_id and draft.local_id:
        return draft
    return msgspec.structs.replace(draft, queue_id="node", local_id=mark)


SENDING: Final = Errand(user_topics.send, Draft, Sent, _marked)
"""Sending, as another node does it for this one."""


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
    """Send a message as the caller, by the program `client`. `queue_id` and `local_id` say which
    attempt this is: sent twice, it is one message. `form` is JSON text (`widgets.form`). `files`
    are attachments that came with the message, which it opens whosever they are. `identity`
    identifies the request if the content differs between attempts.

    Raises as `tertulia.domain.messages.sending.send`; Refused for content that cannot be.
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
    return await caller.submit(user_topics.send, draft)


def sent_before(
    caller: Caller, to: ToChannel | ToPeople, queue_id: str, local_id: str, identity: str
) -> int | None:
    """Return the ID of the message that the same request sent before, if any."""
    draft = Draft(
        to=to,
        content="",
        rendered=Rendered(html=""),
        queue_id=queue_id,
        local_id=local_id,
        identity=identity,
    )
    return user_topics.sent_before(caller.moment(), draft)


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
) -> Draft:
    """The finished draft of a message of this content, which is final (`names.message_content`)."""
    composed = await compose(node, author, content, lambda: _topic(node.state, to))
    return Draft(
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
    """The topic that a message goes to. None for direct messages, and where there is no such
    channel."""
    if isinstance(to, ToPeople):
        return None
    channel = (
        state.channels.get(to.channel_id)
        if to.channel_id is not None
        else state.channel_named(to.name or "")
    )
    return None if channel is None else (channel.id, topic_key(names.topic_name(to.topic)))
