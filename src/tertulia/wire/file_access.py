"""Who may open an uploaded file."""

from tertulia.domain import attachments, narrow
from tertulia.model.attachments import Attachment
from tertulia.model.users import User
from tertulia.store import finding
from tertulia.wire.call import Node


async def may_open(node: Node, user: User | None, attachment: Attachment) -> bool:
    """Whether the user may: the owner, and whoever can read a message that links the file. None is
    a spectator, who reads channels that are open to the public."""
    if user is not None and attachment.user_id == user.id:
        return True
    message_ids = node.state.uploads.message_ids(attachment.id)
    if not message_ids:
        return False
    reader = narrow.Reader(
        state=node.state, user=user, now=node.clock(), host=node.config.address_host
    )
    scope = narrow.everything_readable(reader)
    return await node.store.read(finding.any_in, scope, message_ids)


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
