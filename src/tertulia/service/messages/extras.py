"""What is shown with messages besides themselves."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.messages import editing
from tertulia.domain.messages.editing import LoadedMessage
from tertulia.markup.external_media import ExternalMedia
from tertulia.model.messages import PendingPreview, Rendered
from tertulia.model.users import User
from tertulia.service.caller import retry_on_conflict
from tertulia.service.config import Config
from tertulia.service.links import Links
from tertulia.service.messages import preconditions
from tertulia.service.node import Node, Previews
from tertulia.state.unread import ReadState
from tertulia.store import message_marks
from tertulia.store.message_details import MessageDetails
from tertulia.store.message_marks import MessageMarks, Relation

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
        return await node.store.read(message_marks.relations, user.id, ids)
    return loaded_relations(reader, ids)


def loaded_relations(reader: ReadState, ids: Iterable[int]) -> dict[int, Relation]:
    """The reader's relation to each of the messages."""
    wanted = BitMap(ids)
    flags: dict[int, int] = defaultdict(int)
    for flag, flagged in reader.flagged.items():
        for message_id in flagged & wanted:
            flags[message_id] |= flag
    marks = MessageMarks(flags, reader.read)
    return {message_id: marks.relation(message_id) for message_id in wanted}


def external_media(config: Config, links: Links) -> ExternalMedia:
    """What messages show of other servers, by the settings."""
    if not config.external_content:
        return ExternalMedia()
    return ExternalMedia(proxy_address=links.external, fetches_pages=config.link_previews)


async def linked_pages(node: Node, pending: PendingPreview) -> Sequence[str]:
    """The URLs of the pages of which the message awaits previews. NoSuchMessage."""
    # Nothing is asked for because of a message that a crash could undo.
    await node.log.settled()
    return (await _rendered(node, pending, {}))[1].pages


async def show_previews(node: Node, pending: PendingPreview, known: Previews) -> None:
    """Show the message with these previews, as the server itself. NoSuchMessage."""

    async def attempt() -> None:
        found, rendered = await _rendered(node, pending, known)
        await node.log.submit(None, editing.show_preview, pending, found, rendered)

    await retry_on_conflict(attempt)


async def give_up_previews(node: Node, pending: PendingPreview) -> None:
    """The message awaits its previews no longer."""
    await node.log.submit(None, editing.give_up, pending)


async def _rendered(
    node: Node, pending: PendingPreview, known: Previews
) -> tuple[LoadedMessage, Rendered]:
    """The message, as it is rendered with what is known."""
    found = await preconditions.to_edit(node.log, pending.message_id)
    message = found.message
    return found, await node.rendered(message.content, message.sender_id, known)
