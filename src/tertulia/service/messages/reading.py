"""Reading messages for a user, with the rights that the user has when they have been read."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from tertulia.domain import permissions
from tertulia.model.errors import Conflict
from tertulia.model.messages import Message
from tertulia.model.narrow import Search
from tertulia.model.users import User
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.node import Node
from tertulia.state.recent_writes import touching
from tertulia.store import queries
from tertulia.store.database import Connection

R = TypeVar("R")


async def read_unchanged(
    node: Node,
    look: Callable[[Connection], R],
    messages: Callable[[R], Iterable[Message]],
    search: Search | None = None,
) -> R:
    """What `look` finds in the database, where none of its messages was touched while it was read:
    so a message is in the channel where it was found. Conflict if that never ends.

    `search` is what it looks for, unless it knows the IDs."""

    async def attempt() -> R:
        seq = node.state.seq
        await node.log.settled()
        found = await (node.store.read(look) if search is None else node.store.search(search, look))
        things = {thing for message in messages(found) for thing in touching(message)}
        if node.state.recent_writes.since(seq, things):
            raise Conflict
        return found

    return await retry_on_conflict(attempt)


def may_read(node: Node, user: User | None, message: Message) -> bool:
    """Whether the user (None: a spectator) may read the message, as both are by now."""
    if user is not None:
        present = node.state.users[user.id]
        return present.is_active and permissions.reads_message(node.state, present, message)
    channel = node.state.channels.get(message.channel_id)
    return (
        node.admits_spectators and channel is not None and permissions.open_to_spectators(channel)
    )


def readable(node: Node, user: User | None, messages: Iterable[Message]) -> list[Message]:
    """Those of the messages that `may_read` is true of; what follows from their channel is found
    once."""
    if user is None:
        return [message for message in messages if may_read(node, user, message)]
    state, present = node.state, node.state.users[user.id]
    if not present.is_active:
        return []
    is_open: dict[int | None, bool] = {None: False}
    found = []
    for message in messages:
        channel_id = message.channel_id
        if channel_id not in is_open:
            is_open[channel_id] = permissions.reads_whole_history(
                state, present, state.channels[channel_id]
            )
        if is_open[channel_id] or permissions.reads_message(state, present, message):
            found.append(message)
    return found


async def readable_message(node: Node, user: User | None, message_id: int) -> Message | None:
    """The message, if there is one and the user (None: a spectator) may read it."""
    found = await read_unchanged(
        node, lambda connection: queries.messages(connection, [message_id]), lambda found: found
    )
    return found[0] if found and may_read(node, user, found[0]) else None


async def stored_message(node: Node, message_id: int) -> Message | None:
    """The message as it is stored, for a verb that looks at its actor's rights to it."""
    found = await node.store.read(queries.messages, [message_id])
    return found[0] if found else None
