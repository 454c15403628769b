"""Fetching messages: a page of them around an anchor, or one."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from pyroaring import BitMap

from tertulia.domain import permissions
from tertulia.domain.messages import narrow
from tertulia.domain.messages.narrow import Asked
from tertulia.model import narrow as model_narrow
from tertulia.model.errors import Conflict, NoSuchMessage, Refused
from tertulia.model.messages import Edit, Message
from tertulia.model.narrow import Search
from tertulia.model.users import User
from tertulia.service.conflicts import retry_on_conflict
from tertulia.store import editing, message_details, message_search, queries
from tertulia.store.database import Connection
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import highlight
from tertulia.wire.api.objects.message_flags import flags_of
from tertulia.wire.api.objects.messages import MessageObject, Showing, add_history
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.routing import Answer

T = TypeVar("T")
R = TypeVar("R")
Look = Callable[[Connection, Sequence[Message]], T]
"""Reads what else is wanted of the messages that were found."""

_NUMBER = re.compile(r"-?[0-9]+")
NOTHING_UNREAD = 10_000_000_000_000_000
"""The anchor that is answered where there is no first unread message."""
MAX_PAGE = 5000


class GetMessages(Params, kw_only=True, frozen=True):
    """A page of messages."""

    anchor: Annotated[
        str | None,
        Meta(
            description="A message ID, `newest`, `oldest`, `first_unread`, or `date` with"
            " `anchor_date`."
        ),
    ] = None
    anchor_date: Annotated[str | None, Meta(description="ISO 8601.")] = None
    use_first_unread_anchor: Annotated[
        bool, Meta(description="The older way to say anchor=first_unread.")
    ] = False
    num_before: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    num_after: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    include_anchor: bool = True
    message_ids: Annotated[
        list[Int] | None, Meta(description="These messages, instead of those around an anchor.")
    ] = None
    narrow: Annotated[
        tuple[Asked, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Meta(description="Terms that must all hold; empty for all messages received."),
    ] = ()
    client_gravatar: bool = True
    apply_markdown: bool = True
    allow_empty_topic_name: bool = False


class MessagePage(Answer, kw_only=True):
    """Messages in ascending order of ID."""

    messages: list[MessageObject]
    anchor: int | UnsetType = UNSET
    found_anchor: bool
    found_newest: bool
    found_oldest: bool
    history_limited: bool = False


async def get_messages(call: Call, params: GetMessages) -> MessagePage:
    """Messages around an anchor, filtered by a narrow."""
    user = _spectator_or_user(call, params)
    found = await messages_asked_for(call, user, params, beside(user))
    page, anchor = found.page, found.anchor
    shown = shown_to(call, user, page.messages, found.beside, params)
    highlight(shown, found.compiled.terms)
    return MessagePage(
        messages=shown,
        anchor=UNSET if anchor is None else anchor,
        found_anchor=any(m.id == anchor for m in page.messages),
        found_newest=page.found_newest,
        found_oldest=page.found_oldest,
    )


class Found(Struct, Generic[T], frozen=True):
    """A page of messages, and what it was found by."""

    page: message_search.Page
    anchor: int | None
    """None where the messages were asked for by their IDs."""
    compiled: narrow.Compiled
    beside: T
    """What else was read, at the same moment."""


async def messages_asked_for(
    call: Call, user: User | None, params: GetMessages, look: Look[T]
) -> Found[T]:
    """The messages around an anchor, or of these IDs, that the user (None: a spectator) may read.

    Raises BadNarrow, and Refused for an anchor or a number that makes no sense.
    """
    reader = narrow.Reader(
        state=call.state,
        user=user,
        now=call.now,
        host=call.node.config.address_host,
        unread=await _unread(call, user, params),
        conversation=await _conversation(call, user, params.narrow),
    )
    compiled = narrow.compiled(reader, params.narrow)
    anchor: int | None = None
    if params.message_ids is not None:
        find = _by_ids(reader, compiled, params.message_ids)
    else:
        anchor = await _anchor(call, params, reader, compiled)
        search = _search(params, compiled, anchor)
        find = functools.partial(message_search.find, search=search)

    def read(connection: Connection) -> tuple[message_search.Page, T]:
        page = find(connection)
        return page, look(connection, page.messages)

    page, beside = await _as_they_are(call, read, lambda found: found[0].messages)
    # The reader's rights are those of now, and not those of before it was read.
    page.messages = [message for message in page.messages if _may_read(call, user, message)]
    return Found(page, anchor, compiled, beside)


async def _as_they_are(
    call: Call, look: Callable[[Connection], R], messages: Callable[[R], Iterable[Message]]
) -> R:
    """What is found in the database, where none of its messages was touched while it was read:
    so a message is in the channel where it was found. Conflict if that never ends."""

    async def attempt() -> R:
        seq = call.state.seq
        await call.node.log.settled()
        found = await call.node.store.read(look)
        if call.state.recent_writes.since(seq, [message.id for message in messages(found)]):
            raise Conflict
        return found

    return await retry_on_conflict(attempt)


def _spectator_or_user(call: Call, params: GetMessages) -> User | None:
    """Who asks; spectators must say that they mean public channels."""
    if call.user_id is not None:
        return call.user
    if not any(
        term.operator == "channels" and term.operand == "web-public" and not term.negated
        for term in params.narrow
    ):
        return call.user  # Raises: there is none.
    return None


async def _unread(call: Call, user: User | None, params: GetMessages) -> BitMap:
    """The reader's unread messages, where the request asks for them."""
    wants = _first_unread(params) or any(
        term.operator == "is" and term.operand == "unread" for term in params.narrow
    )
    if user is None or not wants:
        return BitMap()
    return await unread_ids(call, user.id)


async def unread_ids(call: Call, user_id: int) -> BitMap:
    """All that the user has not read."""
    return await call.node.log.with_unread(
        user_id, lambda state: state.unread.unread_ids(state, user_id)
    )


def _first_unread(params: GetMessages) -> bool:
    return params.anchor == "first_unread" or (
        params.use_first_unread_anchor and params.message_ids is None
    )


async def _conversation(
    call: Call, user: User | None, terms: tuple[narrow.Asked, ...]
) -> Message | None:
    """The message that a `with` term names, if the reader may read it."""
    for term in terms:
        if term.operator == "with":
            message_id = narrow.message_id_of(term)
            return None if message_id is None else await readable(call, user, message_id)
    return None


async def readable(call: Call, user: User | None, message_id: int) -> Message | None:
    """The message, if there is one and the user (None: a spectator) may read it."""
    found = await _as_they_are(
        call, lambda connection: queries.messages(connection, [message_id]), lambda found: found
    )
    if not found or not _may_read(call, user, found[0]):
        return None
    return found[0]


def _may_read(call: Call, user: User | None, message: Message) -> bool:
    """Whether the user may read the message, as both are by now."""
    if user is not None:
        present = call.state.users[user.id]
        return present.is_active and permissions.reads_message(
            call.state, present, message, call.now
        )
    channel = call.state.channels.get(message.channel_id)
    return (
        call.node.admits_spectators
        and channel is not None
        and permissions.open_to_spectators(channel)
    )


async def _anchor(
    call: Call,
    params: GetMessages,
    reader: narrow.Reader,
    compiled: narrow.Compiled,
) -> int:
    if _first_unread(params):
        return await _first_unread_in(call, reader, compiled)
    match params.anchor:
        case None:
            raise Refused("The anchor is missing.")
        case "newest":
            return NOTHING_UNREAD
        case "oldest":
            return 0
        case "date":
            return await _anchor_at(call, params.anchor_date)
        case text:
            if not _NUMBER.fullmatch(text):
                raise Refused("The anchor is none that there can be.")
            # All beyond this many digits is beyond every message.
            return min(max(int(text[:20]), 0), NOTHING_UNREAD)


async def _first_unread_in(call: Call, reader: narrow.Reader, compiled: narrow.Compiled) -> int:
    terms = (
        *compiled.terms,
        *narrow.without_muted(reader, compiled),
        model_narrow.Term(model_narrow.IsUnread(reader.unread)),
    )
    search = Search(compiled.scope, terms, anchor=0, before=0, after=1)
    page = await call.node.store.read(message_search.find, search)
    return page.messages[0].id if page.messages else NOTHING_UNREAD


async def _anchor_at(call: Call, text: str | None) -> int:
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
    found = await call.node.store.read(queries.first_at_or_after, seconds)
    return NOTHING_UNREAD if found is None else found


def _search(params: GetMessages, compiled: narrow.Compiled, anchor: int) -> Search:
    before, after = params.num_before, params.num_after
    if before is None or after is None:
        raise Refused("'num_before' and 'num_after' are required with an anchor.")
    if before + after > MAX_PAGE:
        raise Refused(f"At most {MAX_PAGE} messages come at once.")
    if not params.include_anchor and before and after:
        raise Refused("The anchor can be left out only at an end of the page.")
    return Search(
        scope=compiled.scope,
        terms=compiled.terms,
        anchor=anchor,
        before=before,
        after=after,
        include_anchor=params.include_anchor,
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


class Beside(Struct, frozen=True):
    """What else is shown with messages, by their IDs."""

    relations: dict[int, queries.Relation]
    """The reader's; none of a spectator."""
    attached: dict[int, message_details.MessageDetails]
    edits: dict[int, list[Edit]]


def beside(user: User | None) -> Look[Beside]:
    """Reads what is shown to the user with messages."""

    def look(connection: Connection, messages: Sequence[Message]) -> Beside:
        ids = [message.id for message in messages]
        return Beside(
            relations={} if user is None else queries.relations(connection, user.id, ids),
            attached=message_details.details_of(connection, ids),
            edits=editing.edits(connection, ids),
        )

    return look


def shown_to(
    call: Call, user: User | None, found: list[Message], beside: Beside, params: GetMessages
) -> list[MessageObject]:
    """The messages as the user (None: a spectator) sees them, in the way that was asked for."""
    shown = []
    user = None if user is None else call.state.users[user.id]
    showing = Showing(
        call.state,
        user,
        call.node.config.address_host,
        call.node.clock(),
        apply_markdown=params.apply_markdown,
        client_gravatar=params.client_gravatar and user is not None,
        empty_topic_name=params.allow_empty_topic_name,
    )
    for message in found:
        one = showing.shown(message, beside.attached.get(message.id, message_details.NO_DETAILS))
        one.flags = (
            ["read"]
            if user is None
            else flags_of(call.state, user.id, message, beside.relations[message.id])
        )
        if message.id in beside.edits:
            add_history(
                call.state,
                one,
                permissions.history_open(call.state, user, beside.edits[message.id], call.now),
                empty_topic_name=params.allow_empty_topic_name,
            )
        shown.append(one)
    return shown


class GetMessage(Params, kw_only=True, frozen=True):
    """One message."""

    message_id: Annotated[Int, Path()]
    apply_markdown: bool = True
    allow_empty_topic_name: bool = False


class OneMessage(Answer, kw_only=True):
    """A message, and its source under the name of old."""

    raw_content: str
    message: MessageObject


async def get_message(call: Call, params: GetMessage) -> OneMessage:
    """One message that the caller can read."""
    user = call.user if call.user_id is not None else None
    look = beside(user)

    def read(connection: Connection) -> tuple[list[Message], Beside]:
        found = queries.messages(connection, [params.message_id])
        return found, look(connection, found)

    found, more = await _as_they_are(call, read, lambda looked: looked[0])
    if not found or not _may_read(call, user, found[0]):
        raise NoSuchMessage
    (shown,) = shown_to(
        call,
        user,
        found,
        more,
        GetMessages(
            apply_markdown=params.apply_markdown,
            allow_empty_topic_name=params.allow_empty_topic_name,
            client_gravatar=False,
        ),
    )
    return OneMessage(raw_content=found[0].content, message=shown)
