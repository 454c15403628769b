"""Topics of a channel, and links in their names."""

import asyncio
from itertools import islice
from typing import Final

from msgspec import Struct

from tertulia.domain.names import EMPTY_TOPIC_NAME
from tertulia.service.messages.reading import topics_of
from tertulia.state.state import State
from tertulia.wire.http.parameters import IntPath
from tertulia.wire.http.responses import array_items, fragmented, json_array
from tertulia.wire.http.routing import ApiResponse, Call


class TopicLink(Struct, kw_only=True):
    """A link in a topic's name."""

    text: str
    url: str


def topic_links(state: State, topic: str) -> list[TopicLink]:
    """Return the links in a topic's name, in order."""
    if not len(state.linkifiers) and "://" not in topic:
        return []
    from tertulia.markup import links  # Loads the Markdown parser.

    return [TopicLink(text=text, url=url) for text, url in links.topic_links(state, topic)]


def display_topic(topic: str, *, empty_topic_name: bool) -> str:
    """Return the topic, or the display name of the general chat if the client doesn't support empty
    topics."""
    return topic if topic or empty_topic_name else EMPTY_TOPIC_NAME


STEP: Final = 2000
"""The number of topics encoded in one turn of the event loop."""


class TopicObject(Struct, kw_only=True):
    """A topic and the ID of its newest message."""

    name: str
    max_id: int


class TopicsResponse(ApiResponse, kw_only=True):
    """Topics, most recent first."""

    topics: list[TopicObject]


async def get_topics(
    call: Call, stream_id: IntPath, allow_empty_topic_name: bool = False
) -> TopicsResponse:
    """List the topics in a channel that you can read, most recent first."""
    topics, items = iter(await topics_of(call, stream_id)), list[bytes]()
    while some := array_items(
        TopicObject(
            name=display_topic(topic.name, empty_topic_name=allow_empty_topic_name),
            max_id=topic.newest_id,
        )
        for topic in islice(topics, STEP)
    ):
        items.append(some)
        await asyncio.sleep(0)
    return fragmented(TopicsResponse, {"topics": json_array(items)})
