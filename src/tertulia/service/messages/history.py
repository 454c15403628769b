"""Pages of messages: around an anchor in a narrow, or by ID."""

import functools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.messages import narrow, scopes
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model import narrow as model_narrow
from tertulia.model.errors import Refused
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch, Term
from tertulia.model.users import User
from tertulia.service.messages import recent_page
from tertulia.service.messages.flags import unread_ids
from tertulia.service.messages.reading import (
    NO_EXTRAS,
    MessageExtras,
    Relations,
    is_loaded,
    read_unchanged,
    readable,
    readable_message,
    relations_now,
)
from tertulia.service.node import Node
from tertulia.store import message_details, message_marks, message_search, queries
from tertulia.store.database import Connection
from tertulia.store.message_search import Page

_NUMBER: Final = re.compile(r"-?[0-9]+")
NOTHING_UNREAD: Final = 10_000_000_000_000_000
"""The anchor in responses if no message is unread."""
MAX_PAGE: Final = 5000


class MessageQuery(Struct, frozen=True, kw_only=True):
    """A request for a page of messages."""

    narrow: tuple[NarrowTerm, ...] = ()
    """Terms that messages must match; empty for all messages that the reader received."""
    ids: list[int] | None = None
    """Message IDs, instead of an anchor."""
    anchor: str | None = None
    """A message's ID, `newest`, `oldest`, `first_unread`, or `date` with `anchor_date`."""
    anchor_date: str | None = None
    """A date or time in ISO 8601, for the anchor `date`."""
    before: int | None = None
    after: int | None = None
    include_anchor: bool = True


class FoundMessages(Struct, frozen=True):
    """A page of messages, and its anchor and terms."""

    page: Page
    anchor: int | None
    """The anchor's message ID; None for messages by ID."""
    terms: tuple[Term, ...]
    extras: MessageExtras
    """Additional data; empty unless requested."""


async def find_messages(
    node: Node, user: User | None, query: MessageQuery, *, extras: bool = True
) -> FoundMessages:
    """Return the messages that match the query and that the user (None: a spectator) can read, with
    their `extras` if requested. Raise BadNarrow, and Refused for an invalid anchor or number."""
    reader = scopes.NarrowReader(
        state=node.state,
        user=user,
        host=node.config.address_host,
        unread=await _unread(node, user, query),
        conversation=await _conversation(node, user, query.narrow),
    )
    terms = narrow.terms_of(reader, query.narrow)
    anchor: int | None = None
    search: MessageSearch | None = None
    if query.ids is not None:
        find = _by_ids(reader, terms, query)
    else:
        anchor = await _anchor(node, query, reader, terms)
        before, after = _numbers(query)
        if (
            extras
            and user is not None
            and user.reach is None
            and recent_page.may_begin(terms, anchor, before)
        ):
            page, shown = await recent_page.find(node, user, terms, before)
            return FoundMessages(page, anchor, terms, shown)
        search = MessageSearch(
            scope=scopes.scope_of(reader, terms, node.received_scopes.of),
            terms=terms,
            anchor=anchor,
            before=before,
            after=after,
            include_anchor=query.include_anchor,
        )
        find = functools.partial(message_search.find, search=search)

    page, shown = await _read(node, user, find, search, extras=extras)
    return FoundMessages(page, anchor, terms, shown)


async def _read(
    node: Node,
    user: User | None,
    find: Callable[[Connection], Page],
    search: MessageSearch | None = None,
    *,
    extras: bool,
) -> tuple[Page, MessageExtras]:
    """Return the part of `find`'s result that the user can read. `search` is None for messages by
    ID."""
    reads_relations = extras and user is not None and not is_loaded(node, user.id)

    def read(connection: Connection) -> tuple[Page, MessageExtras]:
        page = find(connection)
        if not extras:
            return page, NO_EXTRAS
        ids = [message.id for message in page.messages]
        relations: Relations = {}
        if user is not None and reads_relations:
            relations = message_marks.relations(connection, user.id, ids)
        return page, MessageExtras(relations, message_details.details_of(connection, ids))

    page, shown = await read_unchanged(node, read, lambda result: result[0].messages, search)
    if extras:
        ids = [message.id for message in page.messages]
        shown = MessageExtras(await relations_now(node, user, ids, shown.relations), shown.details)
    # Permissions may have changed while reading.
    page.messages = readable(node, user, page.messages)
    return page, shown


async def _unread(node: Node, user: User | None, query: MessageQuery) -> BitMap:
    """Return the reader's unread messages, if the query needs them."""
    wants = query.anchor == "first_unread" or any(
        term.operator == "is" and term.operand == "unread" for term in query.narrow
    )
    if user is None or not wants:
        return BitMap()
    return await unread_ids(node, user.id)


async def _conversation(
    node: Node, user: User | None, terms: tuple[NarrowTerm, ...]
) -> Message | None:
    """Return the message of a `with` term, if the reader can read it."""
    for term in terms:
        if term.operator == "with":
            message_id = narrow.message_id_of(term)
            return None if message_id is None else await readable_message(node, user, message_id)
    return None


async def _anchor(
    node: Node, query: MessageQuery, reader: scopes.NarrowReader, terms: Sequence[Term]
) -> int:
    match query.anchor:
        case None:
            raise Refused("The anchor is missing.")
        case "first_unread":
            return await _first_unread_in(node, reader, terms)
        case "newest":
            return NOTHING_UNREAD
        case "oldest":
            return 0
        case "date":
            return await _anchor_at(node, query.anchor_date)
        case text:
            if not _NUMBER.fullmatch(text):
                raise Refused(
                    "Invalid anchor: expected a message ID, `newest`, `oldest`, or `first_unread`."
                )
            # Longer numbers are larger than any ID.
            return min(max(int(text[:20]), 0), NOTHING_UNREAD)


async def _first_unread_in(node: Node, reader: scopes.NarrowReader, terms: Sequence[Term]) -> int:
    wanted = (
        *terms,
        *narrow.without_muted(reader, terms),
        Term(model_narrow.IsUnread(reader.unread)),
    )
    scope = scopes.scope_of(reader, terms, node.received_scopes.of)
    search = MessageSearch(scope, wanted, anchor=0, before=0, after=1)
    find = functools.partial(message_search.find, search=search)
    page = await node.store.search(search, find)
    return page.messages[0].id if page.messages else NOTHING_UNREAD


async def _anchor_at(node: Node, text: str | None) -> int:
    try:
        since = datetime.fromisoformat(text or "")
    except ValueError:
        raise Refused("'anchor_date' must be a valid ISO 8601 date.") from None
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    try:
        seconds = since.timestamp()
    except OverflowError:
        raise Refused("'anchor_date' is out of range.") from None
    result = await node.store.read(queries.first_at_or_after, seconds)
    return NOTHING_UNREAD if result is None else result


def _numbers(query: MessageQuery) -> tuple[int, int]:
    """Return the numbers of messages before and after the anchor."""
    before, after = query.before, query.after
    if before is None or after is None:
        raise Refused("'num_before' and 'num_after' are required with an anchor.")
    if before + after > MAX_PAGE:
        raise Refused(f"You can request at most {MAX_PAGE} messages at a time.")
    if not query.include_anchor and before and after:
        raise Refused(
            "The anchor can be excluded only when either 'num_before' or 'num_after' is 0."
        )
    return before, after


def _by_ids(
    reader: scopes.NarrowReader, terms: tuple[Term, ...], query: MessageQuery
) -> Callable[[Connection], Page]:
    ids = query.ids or []
    if len(ids) > MAX_PAGE:
        raise Refused(f"You can request at most {MAX_PAGE} messages at a time.")
    scope = scopes.everything_readable(reader)
    search = MessageSearch(scope, terms, 0, 0, 0)

    def find(connection: Connection) -> Page:
        messages = message_search.matching(connection, search, ids)
        return Page(messages, found_oldest=False, found_newest=False)

    return find


async def one_message(node: Node, user: User | None, message_id: int) -> FoundMessages | None:
    """Return one message, if the user (None: a spectator) can read it."""

    def find(connection: Connection) -> Page:
        messages = queries.messages(connection, [message_id])
        return Page(messages, found_oldest=False, found_newest=False)

    page, extras = await _read(node, user, find, extras=True)
    return FoundMessages(page, None, (), extras) if page.messages else None
