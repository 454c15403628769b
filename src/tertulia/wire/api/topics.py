"""The names of topics."""

import asyncio
from itertools import islice
from typing import Annotated, Final

from msgspec import Struct

from tertulia.domain.names import EMPTY_TOPIC_NAME
from tertulia.service.messages.reading import topics_of
from tertulia.state.state import State
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import array_items, fragmented, json_array
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse


class TopicLink(Struct, kw_only=True):
    """A link in the name of a topic."""

    text: str
    url: str


def topic_links(state: State, topic: str) -> list[TopicLink]:
    """What the name of a topic links, in its order."""
    if not len(state.linkifiers) and "://" not in topic:
        return []
    from tertulia.markup import linkifiers  # The parser of messages comes with it.

    return [TopicLink(text=text, url=url) for text, url in linkifiers.in_topic(state, topic)]


def topic_shown(topic: str, *, empty_topic_name: bool) -> str:
    """The topic; for the general chat, its display name where the client knows no empty topics."""
    return topic if topic or empty_topic_name else EMPTY_TOPIC_NAME


STEP: Final = 2000
"""Topics that are encoded in one turn of the event loop."""


class GetTopics(Params, kw_only=True, frozen=True):
    """The topics of a channel."""

    stream_id: Annotated[Int, Path()]
    allow_empty_topic_name: bool = False


class TopicEntry(Struct, kw_only=True):
    """A topic by its newest message."""

    name: str
    max_id: int


class Topics(ApiResponse, kw_only=True):
    """Topics, the most recent first."""

    topics: list[TopicEntry]


async def get_topics(call: Call, params: GetTopics) -> Topics:
    """The topics of a channel that the caller can read, the most recent first."""
    found, items = iter(await topics_of(call, params.stream_id)), list[bytes]()
    while some := array_items(
        TopicEntry(
            name=topic_shown(one.name, empty_topic_name=params.allow_empty_topic_name),
            max_id=one.newest_id,
        )
        for one in islice(found, STEP)
    ):
        items.append(some)
        await asyncio.sleep(0)
    return fragmented(Topics, {"topics": json_array(items)})
