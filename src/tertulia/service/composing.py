"""Preparing a message to be sent."""

from tertulia.domain import names
from tertulia.domain.messages import sending
from tertulia.model.channels import topic_key
from tertulia.model.users import User
from tertulia.service.file_access import opened_by
from tertulia.service.node import Node
from tertulia.store import queries


async def prepare_message(
    node: Node,
    sender: User,
    to: sending.ToChannel | sending.ToPeople,
    content: str,
    *,
    author_id: int,
    client: str,
    read_by_sender: bool,
    queue_id: str | None = None,
    local_id: str | None = None,
    form: str | None = None,
) -> sending.Draft:
    """A message that can be sent now: its content, which is final, rendered, and with all that
    must be looked up for it."""
    rendered = await node.rendered(content, author_id)
    participants: frozenset[int] = frozenset()
    if rendered.mentions_topic and isinstance(to, sending.ToChannel):
        participants = await _topic_senders(node, to)
    return sending.Draft(
        to=to,
        content=content,
        rendered=rendered,
        client=client,
        read_by_sender=read_by_sender,
        queue_id=queue_id,
        local_id=local_id,
        form=form,
        topic_participants=participants,
        opened_attachments=await opened_by(node, sender, content),
    )


async def _topic_senders(node: Node, to: sending.ToChannel) -> frozenset[int]:
    channel = (
        node.state.channels.get(to.channel_id)
        if to.channel_id is not None
        else node.state.channel_named(to.name or "")
    )
    if channel is None:
        return frozenset()
    key = topic_key(names.topic_name(to.topic))
    return await node.store.read(queries.topic_senders, channel.id, key)
