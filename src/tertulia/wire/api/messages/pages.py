"""Messages as JSON for one viewer, most of it kept for all viewers of a kind."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages.narrow import NarrowTerm, needs_account
from tertulia.model.errors import NoSuchMessage, NotAuthenticated, Refused
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.messages.flags import ReaderFlags
from tertulia.service.messages.history import Found, Query, find_messages, one_message
from tertulia.state.state import State
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import Highlighter
from tertulia.wire.api.messages.flag_objects import encoded_flags
from tertulia.wire.api.messages.objects import (
    MessageObject,
    MessageObjects,
    add_history,
    subject_of,
)
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import Fragments, JsonParts, encode, fragmented, json_array
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.responses import making_large_answer
from tertulia.wire.http.routing import ApiResponse


class EncodedMessages:
    """Message objects as JSON, without what is the viewer's own (flags, what a search found) and
    without the brace at the end, for one viewer (None: a spectator).

    Of a message without reactions, widget and history, viewers of one role see the same, but for
    their own messages, and guests who may not know of everybody. So its JSON is kept, with the
    records that it was made of, until one of them is another.
    """

    def __init__(
        self,
        kept: Fragments,
        state: State,
        viewer: User | None,
        host: str,
        *,
        apply_markdown: bool,
        client_gravatar: bool,
        empty_topic_name: bool,
    ) -> None:
        self._kept, self._state = kept, state
        self._users, self._settings = state.users.rows, state.settings.rows
        self._channels, self._linkifiers = state.channels.rows, state.linkifiers.version
        self._objects = MessageObjects(
            state,
            viewer,
            host,
            apply_markdown=apply_markdown,
            client_gravatar=client_gravatar,
            empty_topic_name=empty_topic_name,
        )
        role = None if viewer is None else permissions.role_of(state, viewer)
        self._is_usual = viewer is None or permissions.sees_everybody(state, viewer)
        self._viewer_id = None if viewer is None else viewer.id
        self._kind = (role, host, apply_markdown, client_gravatar, empty_topic_name)
        self._empty_topic_name = empty_topic_name
        self._viewer = viewer

    def of(self, message: Message, details: MessageDetails) -> bytes:
        """The message's object, to be gone on with a comma, or ended."""
        sender_id, channel_id = message.sender_id, message.channel_id
        if (
            details is not NO_DETAILS
            or channel_id is None
            or not self._is_usual
            or sender_id == self._viewer_id
        ):
            return self._made(message, details)
        made_of = (
            message,
            self._users[sender_id],
            self._settings.get(sender_id),
            self._channels[channel_id].name,
            self._linkifiers,
        )
        key = (message.id, self._kind)
        found = self._kept.find(key, made_of)
        if found is None:
            found = self._kept.get(key, made_of, lambda: self._made(message, details))
        return found.content

    def _made(self, message: Message, details: MessageDetails) -> bytes:
        shown = self._objects.of(message, details)
        if details.edits:
            edits = channel_access.visible_edits(self._state, self._viewer, details.edits)
            add_history(self._state, shown, edits, empty_topic_name=self._empty_topic_name)
        return encode(shown)[:-1]


_READ_FLAG = encode(["read"])
"""What spectators see."""


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
        tuple[NarrowTerm, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Meta(
            description="Terms that must all hold; empty for all messages received. Without an"
            " account `channels:web-public` is one of them, and none is about the caller (`in`,"
            " `dm`, `dm-including`, `group-dm-with`, `is` but for `is:resolved`): 401 otherwise."
        ),
    ] = ()
    client_gravatar: bool = True
    apply_markdown: bool = True
    allow_empty_topic_name: bool = False

    def query(self) -> Query:
        """Which messages are asked for."""
        from_unread = self.use_first_unread_anchor and self.message_ids is None
        return Query(
            narrow=self.narrow,
            ids=self.message_ids,
            anchor="first_unread" if from_unread else self.anchor,
            anchor_date=self.anchor_date,
            before=self.num_before,
            after=self.num_after,
            include_anchor=self.include_anchor,
        )


class MessagePage(ApiResponse, kw_only=True):
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
    with making_large_answer(call.request):
        found = await find_messages(call.node, user, params.query())
        encoded = await _encoded(call, user, found, params)
    page, anchor = found.page, found.anchor
    fields = {
        "messages": json_array(encoded),
        "found_anchor": any(m.id == anchor for m in page.messages),
        "found_newest": page.found_newest,
        "found_oldest": page.found_oldest,
        "history_limited": False,
    }
    if anchor is not None:
        fields["anchor"] = anchor
    return fragmented(MessagePage, fields)


async def _encoded(call: Call, user: User | None, found: Found, params: GetMessages) -> list[bytes]:
    """The messages as the user (None: a spectator) sees them, in the way that was asked for."""
    state, extras = call.state, found.extras
    user = None if user is None else state.users[user.id]
    messages = EncodedMessages(
        call.node.encoded_messages,
        state,
        user,
        call.node.config.address_host,
        apply_markdown=params.apply_markdown,
        client_gravatar=params.client_gravatar and user is not None,
        empty_topic_name=params.allow_empty_topic_name,
    )
    own = None if user is None else ReaderFlags(state, user.id)
    highlighter = Highlighter(found.terms)
    parts: list[bytes] = []
    is_html = params.apply_markdown
    for message in found.page.messages:
        flags = _READ_FLAG
        if own is not None:
            flags = encoded_flags(*own.of(message, extras.relations[message.id]))
        encoded = messages.of(message, extras.details.get(message.id, NO_DETAILS))
        part = b'%b,"flags":%b' % (encoded, flags)
        if highlighter:
            content = await highlighter.content(
                message.rendered if is_html else message.content, is_html=is_html
            )
            subject = subject_of(message, empty_topic_name=params.allow_empty_topic_name)
            part = b'%b,"match_content":%b,"match_subject":%b' % (
                part,
                encode(content),
                encode(await highlighter.topic(subject)),
            )
        parts.append(part + b"}")
    return parts


def _spectator_or_user(call: Call, params: GetMessages) -> User | None:
    """Who asks; spectators must say that they mean public channels, and can ask for nothing that
    is about oneself."""
    if call.user_id is not None:
        return call.user
    if not any(
        term.operator == "channels" and term.operand == "web-public" and not term.negated
        for term in params.narrow
    ):
        return call.user  # Raises: there is none.
    for term in params.narrow:
        if needs_account(term):
            raise NotAuthenticated(f"You need to sign in to use '{term.operator}'.")
    return None


class GetMessage(Params, kw_only=True, frozen=True):
    """One message."""

    message_id: Annotated[Int, Path()]
    apply_markdown: bool = True
    allow_empty_topic_name: bool = False


class OneMessage(ApiResponse, kw_only=True):
    """A message, and its source under the name of old."""

    raw_content: str
    message: MessageObject


async def get_message(call: Call, params: GetMessage) -> OneMessage:
    """One message that the caller can read."""
    user = call.user if call.user_id is not None else None
    found = await one_message(call.node, user, params.message_id)
    if found is None:
        raise NoSuchMessage
    message = found.page.messages[0]
    asked = GetMessages(
        apply_markdown=params.apply_markdown,
        allow_empty_topic_name=params.allow_empty_topic_name,
        client_gravatar=False,
    )
    (shown,) = await _encoded(call, user, found, asked)
    return fragmented(OneMessage, {"raw_content": message.content, "message": JsonParts([shown])})


class MatchesNarrow(Params, kw_only=True, frozen=True):
    """Messages, and a narrow in which they may be."""

    msg_ids: list[Int]
    narrow: Annotated[tuple[NarrowTerm, ...], Reads(wire_narrow.read, wire_narrow.SCHEMA)]


class Match(Struct, kw_only=True):
    """A message's HTML and topic, with what a search found in them marked."""

    match_content: str
    match_subject: str


class MatchingMessages(ApiResponse, kw_only=True):
    """Those of the messages that are in the narrow, by ID."""

    messages: dict[str, Match]


async def get_matches(call: Call, params: MatchesNarrow) -> MatchingMessages:
    """Which of the messages are in a narrow."""
    query = Query(ids=params.msg_ids, narrow=params.narrow)
    found = await find_messages(call.node, call.user, query, extras=False)
    highlighter = Highlighter(found.terms)
    return MatchingMessages(
        messages={
            str(message.id): Match(
                match_content=await highlighter.content(message.rendered, is_html=True),
                match_subject=await highlighter.topic(subject_of(message, empty_topic_name=False)),
            )
            for message in found.page.messages
        }
    )


class GetSummary(Params, kw_only=True, frozen=True):
    """The conversation to summarize."""

    narrow: str


async def get_summary(call: Call, params: GetSummary) -> ApiResponse:
    """Refused: `server_can_summarize_topics` is false."""
    raise Refused("This server doesn't offer topic summaries.")
