"""Showing messages with previews of the pages that they link."""

from collections.abc import Sequence

from tertulia.domain.messages import previews
from tertulia.domain.messages.editing import Found
from tertulia.markup.external_media import ExternalMedia
from tertulia.model.messages import Rendered
from tertulia.model.previews import PendingPreview
from tertulia.service.config import Config
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.links import Links
from tertulia.service.messages import preconditions
from tertulia.service.node import Node, Previews


def external_media(config: Config, links: Links) -> ExternalMedia:
    """What messages show of other servers, by the settings."""
    if not config.external_content:
        return ExternalMedia()
    return ExternalMedia(proxy_address=links.external, fetches_pages=config.link_previews)


async def linked_pages(node: Node, pending: PendingPreview) -> Sequence[str]:
    """The URLs of the pages of which the message awaits previews. NoSuchMessage."""
    # Nothing is asked for because of a message that a crash could undo.
    await node.log.settled()
    return (await _rendered(node, pending, {}))[1].pages


async def show_previews(node: Node, pending: PendingPreview, known: Previews) -> None:
    """Show the message with these previews, as the server itself. NoSuchMessage."""

    async def attempt() -> None:
        found, rendered = await _rendered(node, pending, known)
        await node.log.submit(None, previews.show, pending, found, rendered)

    await retry_on_conflict(attempt)


async def give_up_previews(node: Node, pending: PendingPreview) -> None:
    """The message awaits its previews no longer."""
    await node.log.submit(None, previews.give_up, pending)


async def _rendered(node: Node, pending: PendingPreview, known: Previews) -> tuple[Found, Rendered]:
    """The message, as it is rendered with what is known."""
    found = await preconditions.to_edit(node.log, pending.message_id)
    message = found.message
    return found, await node.rendered(message.content, message.sender_id, known)
