"""What arrives from other websites, when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tertulia.domain.messages import editing
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import LinkPreview
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import StreamedResponse
from tertulia.service.messages import preconditions
from tertulia.state.decision import CommandContext

if TYPE_CHECKING:
    from tests.property.histories import History

PAGE = "https://example.com"


class SilentWeb(Web):
    """A web where no server ever answers."""

    @asynccontextmanager
    async def opened(
        self,
        url: str,
        *,
        accept: str,
        seconds: float,
        since: Mapping[str, str] | None = None,
        bearer: str = "",
    ) -> AsyncIterator[StreamedResponse]:
        await asyncio.Event().wait()
        raise AssertionError(f"{url} was waited for")
        yield


async def a_page_answers(history: History) -> None:
    """Add previews to one of the messages that wait for them, or mark them as failed."""
    awaited = list(history.state.pending_previews)
    if not awaited:
        return
    pending, node = history.rng.choice(awaited), history.org.node
    try:
        found = await preconditions.to_edit(node.log, pending.message_id)
    except NoSuchMessage:
        raise AssertionError("a message that is gone awaits previews") from None
    said = LinkPreview(title="Example", image=history.rng.choice(["", "https://example.com/i.png"]))
    context = CommandContext(node.state, node.clock(), found.message.sender_id)
    rendered = node.renderer.render(context, found.message.content, {PAGE: said})
    await node.log.submit(None, editing.show_preview, pending, found, rendered)


WEB_STEPS: dict[Callable[[History], Awaitable[None]], int] = {a_page_answers: 3}
