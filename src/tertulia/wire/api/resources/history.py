"""Fetching messages: a page of them around an anchor, or one."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain.messages.narrow import NarrowTerm, needs_account
from tertulia.model.errors import NoSuchMessage, NotAuthenticated
from tertulia.model.users import User
from tertulia.service.messages.flags import ReaderFlags
from tertulia.service.messages.history import Found, Query, find_messages, one_message
from tertulia.store.message_details import NO_DETAILS
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import Highlighter
from tertulia.wire.api.objects.message_flags import encoded_flags
from tertulia.wire.api.objects.message_pages import EncodedMessages
from tertulia.wire.api.objects.messages import MessageObject, subject_of
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import JsonParts, encode, fragmented, json_array
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.responses import making_large_answer
from tertulia.wire.http.routing import Answer

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


class OneMessage(Answer, kw_only=True):
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
