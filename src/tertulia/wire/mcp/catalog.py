"""All tools, with the rights that each needs."""

from collections.abc import Mapping
from typing import Final

from tertulia.domain.accounts.agents import AgentCapability
from tertulia.wire.mcp import listing, reading, writing
from tertulia.wire.mcp.tool import Tool

_WRITE: Final = frozenset({AgentCapability.WRITE})
_DIRECTS: Final = frozenset({AgentCapability.DIRECTS})

_ALL: Final = (
    Tool("who_am_i", "Who am I", listing.who_am_i),
    Tool("list_channels", "List channels", listing.list_channels),
    Tool("list_topics", "List topics", listing.list_topics),
    Tool("list_people", "List people", listing.list_people),
    Tool("list_unread", "List unread messages", listing.list_unread),
    Tool("search_messages", "Search messages", reading.search_messages),
    Tool("read_topic", "Read a topic", reading.read_topic),
    Tool("read_message", "Read a message", reading.read_message),
    Tool(
        "read_direct_messages",
        "Read direct messages",
        reading.read_direct_messages,
        needs=_DIRECTS,
    ),
    Tool("send_message", "Send a message", writing.send_message, needs=_WRITE),
    Tool(
        "send_direct_message",
        "Send a direct message",
        writing.send_direct_message,
        needs=_WRITE | _DIRECTS,
    ),
    Tool("reply", "Reply", writing.reply, needs=_WRITE),
    Tool(
        "edit_own_message",
        "Edit your message",
        writing.edit_own_message,
        needs=_WRITE,
        repeatable=True,
    ),
    Tool("react", "React", writing.react, needs=_WRITE),
    Tool("mark_as_read", "Mark as read", writing.mark_as_read, needs=_WRITE, repeatable=True),
    Tool("follow_topic", "Follow a topic", writing.follow_topic, needs=_WRITE, repeatable=True),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
"""By name, in the order of `tools/list`."""
