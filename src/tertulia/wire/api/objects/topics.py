"""The names of topics."""

from msgspec import Struct

from tertulia.domain.names import EMPTY_TOPIC_NAME
from tertulia.state.organization import State


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
