"""Showing a message with previews of the pages that it links, when these have been fetched."""

import msgspec

from tertulia.domain.messages.editing import Found, read_by
from tertulia.model.changes import MessageEdited, PreviewsGivenUp
from tertulia.model.errors import Conflict
from tertulia.model.messages import Rendered
from tertulia.model.previews import PendingPreview
from tertulia.state.moment import Decision, Moment
from tertulia.state.recent_writes import touching


def show(
    moment: Moment, pending: PendingPreview, found: Found, rendered: Rendered
) -> Decision[None]:
    """Show the message as it is rendered with its previews, as the server itself. Nothing happens
    where it does not await these any more: it says something else now, or another node was faster.

    Conflict where the message has changed in another way since it was found.
    """
    state, message = moment.state, found.message
    if state.pending_previews.get(message.id) != pending:
        return Decision(None)
    if state.recent_writes.since(found.seq, touching(message)):
        raise Conflict
    if rendered.html == message.rendered or not state.realm.inline_url_embed_preview:
        return give_up(moment, pending)
    change = MessageEdited(
        # A file that it shows may have been deleted since it was written.
        message=msgspec.structs.replace(
            message,
            rendered=rendered.html,
            has_link=rendered.has_link,
            has_image=rendered.has_image,
        ),
        flags=dict(sorted(found.flags.items())),
        read_by=read_by(state, found),
        rendering_only=True,
    )
    return Decision(None, (change,))


def give_up(moment: Moment, pending: PendingPreview) -> Decision[None]:
    """The message awaits its previews no longer. Nothing happens where it does not anyway."""
    if moment.state.pending_previews.get(pending.message_id) != pending:
        return Decision(None)
    return Decision(None, (PreviewsGivenUp(message_id=pending.message_id),))
