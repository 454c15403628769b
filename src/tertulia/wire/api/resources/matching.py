"""Holding messages against a narrow."""

from typing import Annotated

from msgspec import Struct

from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.service.messages.history import Query, find_messages
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.highlighting import Highlighter
from tertulia.wire.api.objects.messages import subject_of
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Reads
from tertulia.wire.http.routing import Answer


class MatchesNarrow(Params, kw_only=True, frozen=True):
    """Messages, and a narrow in which they may be."""

    msg_ids: list[Int]
    narrow: Annotated[tuple[NarrowTerm, ...], Reads(wire_narrow.read, wire_narrow.SCHEMA)]


class Match(Struct, kw_only=True):
    """A message's HTML and topic, with what a search found in them marked."""

    match_content: str
    match_subject: str


class MatchingMessages(Answer, kw_only=True):
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
