"""How a message would look."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain import names
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import Answer


class RenderMessage(Params, kw_only=True, frozen=True):
    """A text to look at."""

    content: Annotated[str, Meta(description="Markdown, at most max_message_length characters.")]


class RenderedMessage(Answer, kw_only=True):
    """The text as HTML."""

    rendered: str


async def render_message(call: Call, params: RenderMessage) -> RenderedMessage:
    """How a message of this content would be shown."""
    content = names.message_content(params.content)
    return RenderedMessage(rendered=(await call.node.rendered(content, call.user.id)).html)
