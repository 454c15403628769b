"""Pages of messages: those of a narrow around an anchor, or some by their IDs."""

import functools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.messages import narrow
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model import narrow as model_narrow
from tertulia.model.errors import Refused
from tertulia.model.messages import Edit, Message
from tertulia.model.narrow import Search
from tertulia.model.users import User
from tertulia.service.messages.flags import unread_ids
from tertulia.service.messages.reading import may_read, read_unchanged, readable_message
from tertulia.service.node import Node
from tertulia.store import editing, message_details, message_search, queries
from tertulia.store.database import Connection

T = TypeVar("T")
Look = Callable[[Connection, Sequence[Message]], T]
"""Reads what else is wanted of the messages that were found."""

_NUMBER: Final = re.compile(r"-?[0-9]+")
NOTHING_UNREAD: Final = 10_000_000_000_000_000
"""The anchor that is answered where there is no first unread message."""
MAX_PAGE: Final = 5000


class Query(Struct, frozen=True, kw_only=True):
    """Which messages are asked for."""

    narrow: tuple[NarrowTerm, ...] = ()
    """Terms that must all hold; empty for all messages that the reader received."""
    ids: list[int] | None = None
    """These messages, instead of those around an anchor."""
    anchor: str | None = None
    """A message's ID, `newest`, `oldest`, `first_unread`, or `date` with `anchor_date`."""
    anchor_date: str | None = None
    """ISO 8601."""
    before: int | None = None
    after: int | None = None
    include_anchor: bool = True


class Found(Struct, Generic[T], frozen=True):
    """A page of messages, and what it was found by."""

    page: message_search.Page
    anchor: int | None
    """None where the messages were asked for by their IDs."""
    compiled: narrow.Compiled
    beside: T
    """What else was read, at the same moment."""


async def find_messages(node: Node, user: User | None, query: Query, look: Look[T]) -> Found[T]:
    """The messages that the query asks for and the user (None: a spectator) may read.

    Raises BadNarrow, and Refused for an anchor or a number that makes no sense.
    """
    reader = narrow.Reader(
        state=node.state,
        user=user,
        host=node.config.address_host,
        unread=await _unread(node, user, query),
        conversation=await _conversation(node, user, query.narrow),
    )
    compiled = narrow.compiled(reader, query.narrow)
    anchor: int | None = None
    if query.ids is not None:
        find = _by_ids(reader, compiled, query.ids)
    else:
        anchor = await _anchor(node, query, reader, compiled)
        find = functools.partial(message_search.find, search=_search(query, compiled, anchor))

    def read(connection: Connection) -> tuple[message_search.Page, T]:
        page = find(connection)
        return page, look(connection, page.messages)

    page, beside = await read_unchanged(node, read, lambda found: found[0].messages)
    # The reader's rights are those of now, and not those of before it was read.
    page.messages = [message for message in page.messages if may_read(node, user, message)]
    return Found(page, anchor, compiled, beside)


async def _unread(node: Node, user: User | None, query: Query) -> BitMap:
    """The reader's unread messages, where the query asks for them."""
    wants = query.anchor == "first_unread" or any(
        term.operator == "is" and term.operand == "unread" for term in query.narrow
    )
    if user is None or not wants:
        return BitMap()
    return await unread_ids(node, user.id)


async def _conversation(
    node: Node, user: User | None, terms: tuple[NarrowTerm, ...]
) -> Message | None:
    """The message that a `with` term names, if the reader may read it."""
    for term in terms:
        if term.operator == "with":
            message_id = narrow.message_id_of(term)
            return None if message_id is None else await readable_message(node, user, message_id)
    return None


async def _anchor(
    node: Node, query: Query, reader: narrow.Reader, compiled: narrow.Compiled
) -> int:
    match query.anchor:
        case None:
            raise Refused("The anchor is missing.")
        case "first_unread":
            return await _first_unread_in(node, reader, compiled)
        case "newest":
            return NOTHING_UNREAD
        case "oldest":
            return 0
        case "date":
            return await _anchor_at(node, query.anchor_date)
        case text:
            if not _NUMBER.fullmatch(text):
                raise Refused("The anchor is none that there can be.")
            # All beyond this many digits is beyond every message.
            return min(max(int(text[:20]), 0), NOTHING_UNREAD)


async def _first_unread_in(node: Node, reader: narrow.Reader, compiled: narrow.Compiled) -> int:
    terms = (
        *compiled.terms,
        *narrow.without_muted(reader, compiled),
        model_narrow.Term(model_narrow.IsUnread(reader.unread)),
    )
    search = Search(compiled.scope, terms, anchor=0, before=0, after=1)
    page = await node.store.read(message_search.find, search)
    return page.messages[0].id if page.messages else NOTHING_UNREAD


async def _anchor_at(node: Node, text: str | None) -> int:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        raise Refused("'anchor_date' is not an ISO 8601 date") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        seconds = moment.timestamp()
    except OverflowError:
        raise Refused("'anchor_date' is out of range") from None
    found = await node.store.read(queries.first_at_or_after, seconds)
    return NOTHING_UNREAD if found is None else found


def _search(query: Query, compiled: narrow.Compiled, anchor: int) -> Search:
    before, after = query.before, query.after
    if before is None or after is None:
        raise Refused("'num_before' and 'num_after' are required with an anchor.")
    if before + after > MAX_PAGE:
        raise Refused(f"At most {MAX_PAGE} messages come at once.")
    if not query.include_anchor and before and after:
        raise Refused("The anchor can be left out only at an end of the page.")
    return Search(
        scope=compiled.scope,
        terms=compiled.terms,
        anchor=anchor,
        before=before,
        after=after,
        include_anchor=query.include_anchor,
    )


def _by_ids(
    reader: narrow.Reader, compiled: narrow.Compiled, ids: list[int]
) -> Callable[[Connection], message_search.Page]:
    if len(ids) > MAX_PAGE:
        raise Refused(f"At most {MAX_PAGE} messages come at once.")
    search = Search(narrow.everything_readable(reader), compiled.terms, 0, 0, 0)

    def find(connection: Connection) -> message_search.Page:
        found = message_search.matching(connection, search, ids)
        return message_search.Page(found, found_oldest=False, found_newest=False)

    return find


class MessageExtras(Struct, frozen=True):
    """What is shown with messages, by their IDs."""

    relations: dict[int, queries.Relation]
    """The reader's; none of a spectator."""
    details: dict[int, message_details.MessageDetails]
    edits: dict[int, list[Edit]]


def beside(user: User | None) -> Look[MessageExtras]:
    """Reads what is shown to the user with messages."""

    def look(connection: Connection, messages: Sequence[Message]) -> MessageExtras:
        ids = [message.id for message in messages]
        return MessageExtras(
            relations={} if user is None else queries.relations(connection, user.id, ids),
            details=message_details.details_of(connection, ids),
            edits=editing.edits(connection, ids),
        )

    return look


def nothing_beside(_: Connection, __: Sequence[Message]) -> None:
    """Reads nothing more of messages."""


async def one_message(
    node: Node, user: User | None, message_id: int
) -> tuple[Message, MessageExtras] | None:
    """The message, with what is shown with it, if the user (None: a spectator) may read it."""
    look = beside(user)

    def read(connection: Connection) -> tuple[list[Message], MessageExtras]:
        found = queries.messages(connection, [message_id])
        return found, look(connection, found)

    found, more = await read_unchanged(node, read, lambda looked: looked[0])
    return (found[0], more) if found and may_read(node, user, found[0]) else None
