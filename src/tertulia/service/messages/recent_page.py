"""The newest page of a reader's messages or of a text search: from memory (`recent`), and continued
in the database if needed."""

from collections.abc import Sequence
from functools import partial
from itertools import islice

from msgspec import Struct

from tertulia.domain import channel_access
from tertulia.domain.messages import scopes
from tertulia.model.errors import Conflict
from tertulia.model.messages import Flag, Message
from tertulia.model.narrow import LARGEST, Matches, MessageSearch, Term
from tertulia.model.tokenizer import folded_contain
from tertulia.model.users import User
from tertulia.service.messages.reading import MessageExtras, is_loaded, readable, relations_now
from tertulia.service.messages.recent import RecentMessage
from tertulia.service.node import Node, retry_on_conflict
from tertulia.state.messages import entries_of, message_in
from tertulia.state.state import State
from tertulia.store import message_details, message_marks, message_search, search_text
from tertulia.store.database import Connection
from tertulia.store.message_marks import MessageMarks
from tertulia.store.message_search import Page
from tertulia.store.search_text import ScannedSample

_ESTIMATE = 250
"""The number of messages after which a search estimates whether to continue in the database."""
_MOST_WORDS = 10
"""Searches for more words use only the database, because each word takes milliseconds of the event
loop."""


def may_begin(terms: Sequence[Term], anchor: int, before: int) -> bool:
    """Whether a page can begin in memory: it has the newest messages that the reader received,
    perhaps with a short text search."""
    words = 0
    for term in terms:
        if not isinstance(term.condition, Matches):
            return False
        words += sum(len(phrase.words) for phrase in term.condition.phrases)
    return before > 0 and anchor >= LARGEST and words <= _MOST_WORDS


async def find(
    node: Node, user: User, terms: tuple[Term, ...], before: int
) -> tuple[Page, MessageExtras]:
    """Return up to `before` of the newest messages that the user received and that match the terms.
    Raise Unavailable, and Conflict if they keep changing."""
    return await retry_on_conflict(partial(_attempt, node, user.id, terms, before))


async def _attempt(
    node: Node, user_id: int, terms: tuple[Term, ...], before: int
) -> tuple[Page, MessageExtras]:
    recent = node.recent_messages
    await recent.bring_up_to_date(node.log)
    if not is_loaded(node, user_id):
        node.log.want_reader(user_id)
    first = recent.first
    marks = None
    begun = _begun(node, user_id, terms, before + 1, first, marks)
    if begun.needs_marks:
        marks = await node.store.read(message_marks.marks_since, user_id, first)
        begun = _begun(node, user_id, terms, before + 1, first, marks)
    state = node.state
    user, seq = state.users[user_id], state.seq
    result = begun.found[:before]
    messages = [recent.message for recent in reversed(result)]
    details = {recent.message.id: recent.details for recent in result}
    ids = [message.id for message in messages]
    has_more = len(begun.found) > before
    if not has_more and begun.last:
        older, extras = await _older(node, user, terms, before - len(result), begun)
        messages = older.messages + messages
        relations, details = extras.relations, {**details, **extras.details}
        has_more = not older.found_oldest
    elif marks is None:
        relations = await relations_now(node, user, ids, {})
    else:
        relations = {message_id: marks.relation(message_id) for message_id in ids}
    _require_unchanged(node.state, state, seq, messages)
    # Permissions may have changed.
    page = Page(readable(node, user, messages), found_oldest=not has_more, found_newest=True)
    return page, MessageExtras(relations, details)


def _require_unchanged(now: State, then: State, seq: int, messages: Sequence[Message]) -> None:
    """Raise Conflict if one of the messages was changed since that entry."""
    written = now.recent_writes.after(seq) if now is then else None
    if written is None:
        raise Conflict
    things = {thing for message in messages for thing in entries_of(message)} if written else ()
    if any(thing in things or message_in(thing) in things for thing in written):
        raise Conflict


class _Begun(Struct):
    """The part of the result that was found in memory."""

    found: list[RecentMessage]
    """The matches, newest first."""
    last: int
    """The ID from which on all messages were examined; 0 if there are no older ones."""
    seen: ScannedSample
    needs_marks: bool
    """Whether the result depends on the reader's marks in the database."""


def _begun(
    node: Node,
    user_id: int,
    terms: Sequence[Term],
    limit: int,
    first: int,
    marks: MessageMarks | None,
) -> _Begun:
    """Return up to `limit` of the newest matches from message `first` on. `marks` are the user's,
    if they were read."""
    recent, state = node.recent_messages, node.state
    received = _Received(state, state.users[user_id], first, marks)
    texts, _ = search_text.split_terms(terms)
    said = [phrase for phrases, negated in texts if not negated for phrase in phrases]
    wanted = max((word for phrase in said for word in phrase.words), key=len, default="")
    result: list[RecentMessage] = []
    looked = matched = passed = 0
    last = start = state.last_message_id + 1
    # Check the text first, which excludes most messages.
    for passed, item in recent.newest_first(state, wanted):
        message = item.message
        if message.id < first:
            last = first
            break
        last = message.id + 1
        if len(result) == limit or (
            # Memory won't have enough matches.
            texts and looked >= _ESTIMATE and len(result) * len(recent) < limit * passed
        ):
            break
        looked += 1
        if texts:
            words = item.folded()
            if not all(folded_contain(words, phrases) is not negated for phrases, negated in texts):
                continue
            matched += 1
        if message not in received:
            continue
        result.append(item)
    else:
        passed, last = len(recent), max(first, recent.first)
    newest = recent.newest_first(state) if len(said) > 1 else ()
    sample = [recent.message for _, recent in islice(newest, search_text.SAMPLE)]
    seen = ScannedSample(passed, matched, len(result), start - last, state.last_message_id, sample)
    return _Begun(result, last, seen, received.is_unsure)


async def _older(
    node: Node, user: User, terms: tuple[Term, ...], before: int, begun: _Begun
) -> tuple[Page, MessageExtras]:
    """Return older matches from the database, and the user's relations to all matches."""
    reader = scopes.NarrowReader(state=node.state, user=user, host=node.config.address_host)
    search = MessageSearch(
        scope=scopes.scope_of(reader, terms, node.received_scopes.of),
        terms=terms,
        anchor=begun.last,
        before=max(before, 1),
        after=0,
        include_anchor=False,
    )
    is_known = is_loaded(node, user.id)
    newer = [recent.message.id for recent in begun.found]

    def look(connection: Connection) -> tuple[Page, MessageExtras]:
        page = message_search.find(connection, search, begun.seen)
        if not before:
            page = Page([], found_oldest=not page.messages, found_newest=False)
        ids = [message.id for message in page.messages]
        relations = {} if is_known else message_marks.relations(connection, user.id, ids + newer)
        return page, MessageExtras(relations, message_details.details_of(connection, ids))

    await node.log.durability.settled()
    page, extras = await node.store.search(search, look)
    ids = [message.id for message in page.messages]
    relations = await relations_now(node, user, ids + newer, extras.relations)
    return page, MessageExtras(relations, extras.details)


class _Received:
    """Decides whether a reader received a message, or has a record of it: the scope of a narrow
    without channels (`scopes.scope_of`), message by message."""

    def __init__(self, state: State, user: User, first: int, marks: MessageMarks | None) -> None:
        """Prepare for messages from `first` on. `is_unsure` becomes true if the user's marks are
        needed but unknown."""
        self._state, self._user = state, user
        self.is_unsure = False
        flags = {} if marks is None else marks.flags
        self._recorded = {flag for flag, value in flags.items() if value & int(Flag.RECORD)}
        self._knows = marks is not None or _has_no_records(state, user.id, first)
        self._directs = state.directs.of_user[user.id]
        self._channels: dict[int, tuple[Sequence[tuple[int, int | None]], bool]] = {}
        """Spans of each channel that the reader received, and whether the reader can read its whole
        history."""

    def __contains__(self, message: Message) -> bool:
        channel_id = message.channel_id
        if channel_id is None:
            return message.direct_id in self._directs
        known = self._channels.get(channel_id)
        if known is None:
            known = self._channels[channel_id] = self._channel(channel_id)
        for after, until in known[0]:
            if after < message.id and (until is None or message.id <= until):
                return True
        if known[1] and not self._knows:
            self.is_unsure = True
        return known[1] and message.id in self._recorded

    def _channel(self, channel_id: int) -> tuple[Sequence[tuple[int, int | None]], bool]:
        channel = self._state.channels.get(channel_id)
        if channel is None:
            return (), False  # Another node has just created it.
        spans = scopes.spans_received(self._state, self._user, channel_id)
        return spans, channel_access.reads_whole_history(self._state, self._user, channel)


def _has_no_records(state: State, user_id: int, first: int) -> bool:
    """Whether the state has no records of the user for messages from `first` on."""
    reader = state.unread.readers.get(user_id)
    recorded = None if reader is None else reader.flagged.get(Flag.RECORD)
    return reader is not None and (not recorded or recorded.max() < first)
