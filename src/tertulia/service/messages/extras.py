"""What is shown with messages besides themselves."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.users import User
from tertulia.service.node import Node
from tertulia.state.unread import Reader
from tertulia.store import queries
from tertulia.store.message_details import MessageDetails
from tertulia.store.queries import Marks, Relation

Relations = Mapping[int, Relation]
"""A reader's relation to messages, by their IDs."""
Details = Mapping[int, MessageDetails]
"""The details of those messages that have any, by their IDs."""


class MessageExtras(Struct, frozen=True):
    """What is shown with messages."""

    relations: Relations
    """The reader's; none of a spectator."""
    details: Details


NO_EXTRAS = MessageExtras({}, {})


def is_loaded(node: Node, user_id: int) -> bool:
    """Whether the state knows what the user has done with messages."""
    return user_id in node.state.unread.readers


async def relations_now(
    node: Node, user: User | None, ids: Sequence[int], read: Relations
) -> Relations:
    """The user's relation to each of the messages, as of now where that is loaded. `read` is what
    was read of the database: empty where it was loaded then."""
    if user is None or read or not ids:
        return read
    reader = node.state.unread.readers.get(user.id)
    if reader is None:
        return await node.store.read(queries.relations, user.id, ids)
    return loaded_relations(reader, ids)


def loaded_relations(reader: Reader, ids: Iterable[int]) -> dict[int, Relation]:
    """The reader's relation to each of the messages."""
    wanted = BitMap(ids)
    flags: dict[int, int] = defaultdict(int)
    for flag, flagged in reader.flagged.items():
        for message_id in flagged & wanted:
            flags[message_id] |= flag
    marks = Marks(flags, reader.read)
    return {message_id: marks.relation(message_id) for message_id in wanted}
