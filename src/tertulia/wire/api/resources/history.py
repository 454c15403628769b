"""Fetching messages: a page of them around an anchor, or one."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import permissions
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.messages.extras import MessageExtras
from tertulia.service.messages.history import Query, find_messages, one_message
from tertulia.store import message_details
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import highlight
from tertulia.wire.api.objects.message_flags import flags_of
from tertulia.wire.api.objects.messages import MessageObject, MessageObjects, add_history
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.routing import Answer


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
        Meta(description="Terms that must all hold; empty for all messages received."),
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
    found = await find_messages(call.node, user, params.query())
    page, anchor = found.page, found.anchor
    shown = shown_to(call, user, page.messages, found.extras, params)
    highlight(shown, found.terms)
    return MessagePage(
        messages=shown,
        anchor=UNSET if anchor is None else anchor,
        found_anchor=any(m.id == anchor for m in page.messages),
        found_newest=page.found_newest,
        found_oldest=page.found_oldest,
    )


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


def shown_to(
    call: Call, user: User | None, found: list[Message], extras: MessageExtras, params: GetMessages
) -> list[MessageObject]:
    """The messages as the user (None: a spectator) sees them, in the way that was asked for."""
    shown = []
    user = None if user is None else call.state.users[user.id]
    objects = MessageObjects(
        call.state,
        user,
        call.node.config.address_host,
        apply_markdown=params.apply_markdown,
        client_gravatar=params.client_gravatar and user is not None,
        empty_topic_name=params.allow_empty_topic_name,
    )
    for message in found:
        details = extras.details.get(message.id, message_details.NO_DETAILS)
        one = objects.of(message, details)
        one.flags = (
            ["read"]
            if user is None
            else flags_of(call.state, user.id, message, extras.relations[message.id])
        )
        if details.edits:
            add_history(
                call.state,
                one,
                permissions.history_open(call.state, user, details.edits),
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
    found = await one_message(call.node, user, params.message_id)
    if found is None:
        raise NoSuchMessage
    message, more = found
    (shown,) = shown_to(
        call,
        user,
        [message],
        more,
        GetMessages(
            apply_markdown=params.apply_markdown,
            allow_empty_topic_name=params.allow_empty_topic_name,
            client_gravatar=False,
        ),
    )
    return OneMessage(raw_content=message.content, message=shown)
