"""What a snapshot loads of the database into the state: what is unread of a reader."""

from typing import Any

from tertulia.state.organization import State
from tertulia.state.unread import ChannelMessages, DirectMessages, Reader
from tertulia.store import queries
from tertulia.store.database import Connection


def load_reading(state: State, connection: Connection, reader_id: int | None) -> Any:
    """What the state is missing to tell what is unread of the reader; None where it has all."""
    if reader_id is None:
        return None
    missing = state.unread.missing(state, reader_id)
    if not missing:
        return None
    return (
        (reader_id, queries.reader(connection, reader_id)) if missing.reader else None,
        queries.channel_messages(connection, missing.channel_ids),
        queries.direct_messages(connection, missing.direct_ids),
    )


def install_reading(state: State, loaded: Any) -> None:
    """Put into the state what `load_reading` found when it was at the same entry."""
    reader, channels, directs = loaded
    kept = state.unread
    if reader is not None:
        kept.readers[reader[0]] = Reader(*reader[1])
    for channel_id, messages in channels.items():
        kept.channels[channel_id] = ChannelMessages(
            messages.all, messages.topics, messages.wildcards
        )
    for direct_id, ids in directs.items():
        kept.directs[direct_id] = DirectMessages(ids)
