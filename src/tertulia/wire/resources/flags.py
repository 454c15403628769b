"""What a reader does with messages: read, star, collapse."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain import flags as flag_verbs
from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.model.messages import Flag, Message
from tertulia.store import reading
from tertulia.store.database import Connection
from tertulia.wire.call import Call
from tertulia.wire.objects.messages import (
    effective_flags,
    is_mention,
    is_read,
)
from tertulia.wire.parameters import Alias, Int, Params
from tertulia.wire.routing import Answer


class UpdateFlags(Params, kw_only=True, frozen=True):
    """A flag to set or clear on messages."""

    messages: Annotated[list[Int], Meta(max_length=10_000)]
    op: Annotated[Literal["add", "remove"], Alias("operation")]
    flag: str


class UpdatedFlags(Answer, kw_only=True):
    """The messages that have the flag as asked now."""

    messages: list[int]
    ignored_because_not_subscribed_channels: list[int]


_SETTABLE = {"starred": Flag.STARRED, "collapsed": Flag.COLLAPSED}


async def update_flags(call: Call, params: UpdateFlags) -> UpdatedFlags:
    """Mark messages as read or unread, starred, collapsed, or not."""
    if params.flag != "read" and params.flag not in _SETTABLE:
        raise Refused(f"There is no flag '{params.flag[:50]}' to set.")
    user = call.user
    ids = sorted(set(params.messages))

    def look(
        connection: Connection,
    ) -> tuple[list[Message], dict[int, reading.Relation]]:
        found = reading.messages(connection, ids)
        return found, reading.relations(connection, user.id, [message.id for message in found])

    found, relations = await call.node.store.read(look)
    state = call.state
    if len(found) != len(ids) or not all(
        permissions.reads_message(state, user, message, call.now) for message in found
    ):
        raise Refused("There is no such message.")
    known = [
        flag_verbs.Known(
            message=message,
            flags=relations[message.id].flags,
            is_read=is_read(state, user.id, message, relations[message.id]),
            is_mentioned=is_mention(
                effective_flags(state, user.id, message, relations[message.id])
            ),
        )
        for message in found
    ]
    add = params.op == "add"
    if params.flag == "read":
        ignored = await call.submit(flag_verbs.mark_read if add else flag_verbs.mark_unread, known)
    else:
        ignored = await call.submit(flag_verbs.change, known, _SETTABLE[params.flag], add)
    return UpdatedFlags(
        messages=params.messages, ignored_because_not_subscribed_channels=sorted(ignored)
    )
