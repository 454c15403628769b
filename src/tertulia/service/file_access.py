"""Who may open an uploaded file."""

from tertulia.domain.messages import attachments, narrow
from tertulia.model.attachments import Attachment
from tertulia.model.errors import Conflict
from tertulia.model.narrow import Scope
from tertulia.model.users import User
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.node import Node
from tertulia.store import message_search


async def may_open(node: Node, user: User | None, attachment: Attachment) -> bool:
    """Whether the user may: the owner, and whoever can read a message that links the file. None is
    a spectator, who reads channels that are open to the public."""
    if user is not None and attachment.user_id == user.id:
        return True
    message_ids = node.state.uploads.message_ids(attachment.id)
    if not message_ids:
        return False

    async def attempt() -> bool:
        seq, scope = node.state.seq, _scope(node, user)
        await node.log.settled()
        found = await node.store.read(message_search.any_in, scope, message_ids)
        # Rights may have gone while it was read, and messages may have been moved.
        if _scope(node, user) != scope or node.state.touched.since(seq, message_ids):
            raise Conflict
        return found

    return await retry_on_conflict(attempt)


def _scope(node: Node, user: User | None) -> Scope:
    """All that the user may read, as they are by now."""
    reader = narrow.Reader(
        state=node.state,
        user=None if user is None else node.state.users[user.id],
        now=node.clock(),
        host=node.config.address_host,
    )
    return narrow.everything_readable(reader)


async def opened_by(node: Node, user: User, content: str) -> frozenset[int]:
    """Those of the files that a message of this content links which are not the user's, and which
    the user may open."""
    linked = attachments.linked(node.state, content)
    return frozenset(
        [
            attachment.id
            for attachment in linked
            if attachment.user_id != user.id and await may_open(node, user, attachment)
        ]
    )
