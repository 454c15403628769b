"""Who has read a message."""

from typing import Annotated

from tertulia.domain import permissions
from tertulia.domain.accounts import muting
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.messages.reading import readable_message
from tertulia.state.organization import State
from tertulia.store import message_details
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class OfMessage(Params, kw_only=True, frozen=True):
    """A message."""

    message_id: Annotated[Int, Path()]


class ReadReceipts(Answer, kw_only=True):
    """Who has read it, as far as they let others know."""

    user_ids: list[int]


async def get_read_receipts(call: Call, params: OfMessage) -> ReadReceipts:
    """Who has read a message: without its sender, bots, deactivated users, those who do not let
    others know, those whom the caller has muted, or who have muted the caller, and those of whom
    the caller may not know."""
    message = await readable_message(call.node, call.user, params.message_id)
    if message is None:
        raise NoSuchMessage
    if not call.state.realm.enable_read_receipts:
        raise Refused("This organization doesn't show read receipts.")
    holders = await call.node.store.read(message_details.holders, message.id)
    shown = _shown(call.state, message, call.user, holders)
    read = await call.node.store.read(message_details.have_read, message.id, shown)
    return ReadReceipts(user_ids=read)


def _shown(state: State, message: Message, viewer: User, holders: tuple[int, ...]) -> list[int]:
    """The people whose reading of the message the viewer may be told of."""
    if message.channel_id is None:
        received = set(state.directs[message.direct_id].members)
    else:
        ever = state.subscriptions.of_channel[message.channel_id]
        received = {u for u, subscription in ever.items() if subscription.covers(message.id)}
    apart = muting.kept_apart(state, viewer.id)
    return [
        user_id
        for user_id in sorted(received.union(holders) - apart - {message.sender_id})
        if state.users[user_id].is_active
        and not state.users[user_id].is_bot
        and (settings := state.settings.get(user_id)) is not None
        and settings.send_read_receipts
        and permissions.sees_user(state, viewer, state.users[user_id])
    ]
