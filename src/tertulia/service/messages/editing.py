"""Editing and moving messages, and adding link previews to them."""

import contextlib
import hashlib
from collections.abc import Sequence

from tertulia.domain import names
from tertulia.domain.messages import editing, moving
from tertulia.domain.messages.editing import LoadedMessage
from tertulia.domain.messages.moving import Move
from tertulia.model.channels import topic_key
from tertulia.model.errors import Conflict, StaleExpectation
from tertulia.model.messages import Message, PendingPreview, Rendered
from tertulia.service.messages import preconditions
from tertulia.service.messages.sending import Topic, compose
from tertulia.service.node import Caller, Node, Previews, retry_on_conflict

DELETED = "(deleted)"
"""The content of a message that was edited to be empty."""
MAX_CONCURRENT_MOVES = 1000
"""The most moves in batches that a node runs at the same time. A job continues the others."""


async def edit_message(
    caller: Caller,
    message_id: int,
    text: str,
    *,
    expected_sha256: str | None = None,
    move: Move | None = None,
) -> tuple[int, ...]:
    """Edit one of the caller's messages and, in the same command, move it. Return the IDs of the
    files that it no longer links.

    `expected_sha256` is the hexadecimal digest of the content that the caller has seen. Raise as
    `tertulia.domain.messages.editing.edit` and `tertulia.domain.messages.moving.move`;
    StaleExpectation if the content has changed since. If anything is refused, nothing changes.
    """

    async def attempt() -> tuple[tuple[int, ...], int | None]:
        if move is None:
            loaded = await preconditions.to_edit(caller.node.log, message_id)
        else:
            loaded, excerpt = await preconditions.to_move(
                caller.node.log, caller.user, message_id, move
            )
        message = loaded.message
        content = names.message_content(text) if text.strip() else DELETED
        present = hashlib.sha256(message.content.encode()).hexdigest()
        if expected_sha256 is not None and expected_sha256.lower() != present:
            editing.require_readable(caller.context(), message)
            raise StaleExpectation("The message has been edited in the meantime.")
        composed = await compose(caller.node, caller.user, content, lambda: _topic(message))
        if move is None:
            return await caller.submit(editing.edit, loaded, composed), None
        return await caller.submit(
            moving.edit_and_move, loaded, composed, excerpt, move, caller.render
        )

    detached, move_id = await retry_on_conflict(attempt)
    await _finish_allowed(caller.node, move_id)
    return detached


def _topic(message: Message) -> Topic | None:
    return None if message.channel_id is None else (message.channel_id, topic_key(message.topic))


async def move_messages(caller: Caller, message_id: int, wanted: Move) -> None:
    """Move a message, and others of its topic. Raise as `tertulia.domain.messages.moving.move`."""

    async def attempt() -> int | None:
        loaded, excerpt = await preconditions.to_move(
            caller.node.log, caller.user, message_id, wanted
        )
        return await caller.submit(moving.move, loaded, excerpt, wanted, caller.render)

    await _finish_allowed(caller.node, await retry_on_conflict(attempt))


async def _finish_allowed(node: Node, move_id: int | None) -> None:
    """Finish a move in batches. If its topic changes too often for that, a job finishes it later.
    The move is stored, and nothing can refuse it anymore, so this isn't an error for the caller."""
    if move_id is not None:
        with contextlib.suppress(Conflict):
            await finish_move(node, move_id)


async def finish_move(node: Node, move_id: int) -> None:
    """Finish a move in batches, once for all concurrent callers. Raise Conflict, and Unavailable if
    `MAX_CONCURRENT_MOVES` other moves are in progress."""
    await node.topic_moves.do(move_id, lambda: _move_pieces(node, move_id), MAX_CONCURRENT_MOVES)


async def _move_pieces(node: Node, move_id: int) -> None:
    """Move each batch with a separate command, so that others can write in between."""

    async def piece() -> bool:
        move = node.state.topic_moves.get(move_id)
        if move is None:
            return False
        batch = await preconditions.to_move_next(node.log, move)
        # The move was permitted, even if the account was deactivated since.
        actor_id = move.user_id if node.state.users[move.user_id].is_active else None
        return await node.log.submit(actor_id, moving.move_batch, batch, node.renderer.render)

    while await retry_on_conflict(piece):
        pass


async def linked_pages(node: Node, pending: PendingPreview) -> Sequence[str]:
    """Return the URLs of the pages that the message needs previews of. Raise NoSuchMessage."""
    # A crash could undo a message that isn't on disk.
    await node.log.durability.settled()
    return (await _with_previews(node, pending, {}))[1].pages


async def show_previews(node: Node, pending: PendingPreview, known: Previews) -> None:
    """Add previews to the message, as the server. Raise NoSuchMessage."""

    async def attempt() -> None:
        loaded, rendered = await _with_previews(node, pending, known)
        await node.log.submit(None, editing.show_preview, pending, loaded, rendered)

    await retry_on_conflict(attempt)


async def _with_previews(
    node: Node, pending: PendingPreview, known: Previews
) -> tuple[LoadedMessage, Rendered]:
    """Return the message, and its HTML with these previews."""
    loaded = await preconditions.to_edit(node.log, pending.message_id)
    message = loaded.message
    return loaded, await node.rendered(message.content, message.sender_id, known)
