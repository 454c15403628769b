"""Fetching messages."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages.narrow import NarrowTerm, needs_account
from tertulia.model.errors import NoSuchMessage, NotAuthenticated, Refused
from tertulia.model.messages import Message
from tertulia.model.users import User, as_present
from tertulia.service.messages.flags import ReaderFlags
from tertulia.service.messages.history import (
    FoundMessages,
    MessageQuery,
    find_messages,
    one_message,
)
from tertulia.state.state import State
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import Highlighter
from tertulia.wire.api.messages.flag_objects import encoded_flags
from tertulia.wire.api.messages.objects import (
    MessageFormat,
    MessageObject,
    MessageObjects,
    add_history,
    subject_of,
)
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params, Reads
from tertulia.wire.http.responses import (
    Fragments,
    JsonParts,
    encode,
    fragmented,
    json_array,
    making_large_response,
)
from tertulia.wire.http.routing import ApiResponse, Call


class EncodedMessages:
    """Messages as JSON for one viewer (None: a spectator), without flags and search matches.

    Viewers with the same role see the same JSON of a message without reactions, widgets, or edits,
    except for their own messages and for guests who can't see everyone. Such JSON is cached, with
    the records that it was made from, until one of them changes.
    """

    def __init__(
        self,
        cache: Fragments,
        state: State,
        viewer: User | None,
        host: str,
        form: MessageFormat,
    ) -> None:
        self._cache, self._state, self._viewer, self._form = cache, state, viewer, form
        self._users, self._settings = state.users.rows, state.settings.rows
        self._channels, self._linkifiers = state.channels.rows, state.linkifiers.version
        self._objects = MessageObjects(state, viewer, host, form)
        role = None if viewer is None else permissions.role_of(state, viewer)
        self._sees_everyone = viewer is None or permissions.sees_everybody(state, viewer)
        self._viewer_id = None if viewer is None else viewer.id
        self._kind = (role, host, form)

    def of(self, message: Message, details: MessageDetails) -> bytes:
        """Return the message's JSON object without the closing brace."""
        sender_id, channel_id = message.sender_id, message.channel_id
        if (
            details is not NO_DETAILS
            or channel_id is None
            or not self._sees_everyone
            or sender_id == self._viewer_id
        ):
            return self._encoded(message, details)
        made_of = (
            message,
            self._users[sender_id],
            self._settings.get(sender_id),
            self._channels[channel_id].name,
            self._linkifiers,
        )
        key = (message.id, self._kind)
        cached = self._cache.find(key, made_of)
        if cached is None:
            cached = self._cache.get(key, made_of, lambda: self._encoded(message, details))
        return cached.content

    def _encoded(self, message: Message, details: MessageDetails) -> bytes:
        made = self._objects.of(message, details)
        if details.edits:
            edits = channel_access.visible_edits(self._state, self._viewer, details.edits)
            add_history(self._state, made, edits, empty_topic_name=self._form.empty_topic_name)
        return encode(made)[:-1]


_READ_FLAG = encode(["read"])
"""The flags that spectators see."""


class GetMessages(Params, kw_only=True, frozen=True):
    anchor: Annotated[
        str | None,
        Doc("A message ID, `newest`, `oldest`, `first_unread`, or `date` with `anchor_date`."),
    ] = None
    anchor_date: Annotated[str | None, Doc("ISO 8601.")] = None
    use_first_unread_anchor: Annotated[bool, Doc("Older form of `anchor=first_unread`.")] = False
    num_before: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    num_after: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    include_anchor: bool = True
    message_ids: Annotated[list[Int] | None, Doc("Return these messages instead of a page.")] = None
    narrow: Annotated[
        tuple[NarrowTerm, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Doc(
            "Terms that messages have to match; empty for all messages you received. Without an"
            " account, `channels:web-public` is required, and operators about your own messages"
            " (`in`, `dm`, `dm-including`, `group-dm-with`, and `is` except `is:resolved`) are"
            " refused with status 401."
        ),
    ] = ()
    client_gravatar: bool = True
    apply_markdown: bool = True
    allow_empty_topic_name: bool = False

    def query(self) -> MessageQuery:
        """Return the query. Raises Refused if both messages and a page are requested."""
        from_unread = self.use_first_unread_anchor
        paged = (self.anchor, self.anchor_date, self.num_before, self.num_after)
        if self.message_ids is not None and (
            from_unread or not self.include_anchor or any(given is not None for given in paged)
        ):
            raise Refused("'message_ids' can't be used with an anchor or a number of messages.")
        return MessageQuery(
            narrow=self.narrow,
            ids=self.message_ids,
            anchor="first_unread" if from_unread else self.anchor,
            anchor_date=self.anchor_date,
            before=self.num_before,
            after=self.num_after,
            include_anchor=self.include_anchor,
        )


class MessagesResponse(ApiResponse, kw_only=True):
    """Messages in ascending order of ID."""

    messages: list[MessageObject]
    anchor: int | UnsetType = UNSET
    found_anchor: bool
    found_newest: bool
    found_oldest: bool
    history_limited: bool = False


async def get_messages(call: Call, params: GetMessages) -> MessagesResponse:
    """Get messages around an anchor that match a narrow."""
    user = _spectator_or_user(call, params)
    with making_large_response(call.request):
        matches = await find_messages(call.node, user, params.query())
        form = MessageFormat(
            apply_markdown=params.apply_markdown,
            client_gravatar=params.client_gravatar and user is not None,
            empty_topic_name=params.allow_empty_topic_name,
        )
        encoded = await _encoded(call, user, matches, form)
    page, anchor = matches.page, matches.anchor
    fields = {
        "messages": json_array(encoded),
        "found_anchor": any(m.id == anchor for m in page.messages),
        "found_newest": page.found_newest,
        "found_oldest": page.found_oldest,
        "history_limited": False,
    }
    if anchor is not None:
        fields["anchor"] = anchor
    return fragmented(MessagesResponse, fields)


async def _encoded(
    call: Call, user: User | None, matches: FoundMessages, form: MessageFormat
) -> list[bytes]:
    """Return the messages as JSON for the user (None: a spectator)."""
    state, extras = call.state, matches.extras
    user = None if user is None else as_present(user, state.users[user.id])
    host = call.node.config.address_host
    messages = EncodedMessages(call.node.encoded_messages, state, user, host, form)
    reader_flags = None if user is None else ReaderFlags(state, user.id)
    highlighter = Highlighter(matches.terms)
    encoded: list[bytes] = []
    for message in matches.page.messages:
        flags = _READ_FLAG
        if reader_flags is not None:
            flags = encoded_flags(*reader_flags.of(message, extras.relations[message.id]))
        fields = b'%b,"flags":%b' % (
            messages.of(message, extras.details.get(message.id, NO_DETAILS)),
            flags,
        )
        if highlighter:
            content = message.rendered if form.apply_markdown else message.content
            content = await highlighter.content(content, is_html=form.apply_markdown)
            subject = subject_of(message, empty_topic_name=form.empty_topic_name)
            fields = b'%b,"match_content":%b,"match_subject":%b' % (
                fields,
                encode(content),
                encode(await highlighter.topic(subject)),
            )
        encoded.append(fields + b"}")
    return encoded


def _spectator_or_user(call: Call, params: GetMessages) -> User | None:
    """Return the caller, or None for a spectator. Spectators must ask for public channels and can't
    use operators about themselves."""
    if call.user_id is not None:
        return call.user
    if not any(
        term.operator == "channels" and term.operand == "web-public" and not term.negated
        for term in params.narrow
    ):
        return call.user  # Raises NotAuthenticated.
    for term in params.narrow:
        if needs_account(term):
            raise NotAuthenticated(f"You need to sign in to use '{term.operator}'.")
    return None


class MessageResponse(ApiResponse, kw_only=True):
    """A message. `raw_content` is the legacy form of its Markdown source."""

    raw_content: str
    message: MessageObject


async def get_message(
    call: Call,
    message_id: IntPath,
    apply_markdown: bool = True,
    allow_empty_topic_name: bool = False,
) -> MessageResponse:
    """Get a message that you can read."""
    user = call.user if call.user_id is not None else None
    match = await one_message(call.node, user, message_id)
    if match is None:
        raise NoSuchMessage
    message = match.page.messages[0]
    form = MessageFormat(
        apply_markdown=apply_markdown,
        client_gravatar=False,
        empty_topic_name=allow_empty_topic_name,
    )
    (encoded,) = await _encoded(call, user, match, form)
    return fragmented(
        MessageResponse, {"raw_content": message.content, "message": JsonParts([encoded])}
    )


class MessageMatch(Struct, kw_only=True):
    """A message's HTML content and topic, with the search matches highlighted."""

    match_content: str
    match_subject: str


class MatchesNarrowResponse(ApiResponse, kw_only=True):
    """The messages that match, by ID."""

    messages: dict[str, MessageMatch]


async def get_matches(
    call: Call,
    msg_ids: list[Int],
    narrow: Annotated[tuple[NarrowTerm, ...], Reads(wire_narrow.read, wire_narrow.SCHEMA)],
) -> MatchesNarrowResponse:
    """Check which of the given messages match a narrow."""
    query = MessageQuery(ids=msg_ids, narrow=narrow)
    matches = await find_messages(call.node, call.user, query, extras=False)
    highlighter = Highlighter(matches.terms)
    return MatchesNarrowResponse(
        messages={
            str(message.id): MessageMatch(
                match_content=await highlighter.content(message.rendered, is_html=True),
                match_subject=await highlighter.topic(subject_of(message, empty_topic_name=False)),
            )
            for message in matches.page.messages
        }
    )
