"""Drafts and saved snippets, which are synced between a person's devices."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tertulia.domain import channel_access, names, permissions, quotas
from tertulia.model.changes import (
    DraftChanged,
    DraftDeleted,
    DraftsCreated,
    SnippetChanged,
    SnippetCreated,
    SnippetDeleted,
)
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.model.errors import KeyInsufficient, NoSuchItem, Refused
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


class DraftContent(Struct, frozen=True, kw_only=True):
    kind: DraftKind
    to: tuple[int, ...]
    """The channel or the people; ignored if the draft has no destination."""
    topic: str
    content: str
    edited_at: float | None = None
    """UNIX seconds; None for the current time."""


def create(context: CommandContext, writings: Sequence[DraftContent]) -> Decision[tuple[int, ...]]:
    """Save drafts, all or none. Return their IDs, in order.

    Raise QuotaReached; Refused if syncing drafts is turned off, and for invalid content.
    """
    _require_synchronized(context)
    state, actor = context.state, context.actor
    if not writings:
        return Decision(())
    quotas.check(state, actor, quotas.DRAFTS, len(writings))
    first = state.drafts.next_id()
    drafts = tuple(_draft(context, first + n, writing) for n, writing in enumerate(writings))
    ids = tuple(draft.id for draft in drafts)
    return Decision(ids, (DraftsCreated(user_id=actor.id, drafts=drafts),))


def edit(context: CommandContext, draft_id: int, writing: DraftContent) -> Decision[None]:
    """Replace a draft. Raise NoSuchItem, or Refused as `create`."""
    _require_synchronized(context)
    before = _own(context, draft_id)
    draft = _draft(context, before.id, writing)
    return Decision(None, (DraftChanged(user_id=context.actor.id, draft=draft),))


def delete(context: CommandContext, draft_id: int) -> Decision[None]:
    """Delete a draft. Raise NoSuchItem; Refused if syncing drafts is turned off."""
    _require_synchronized(context)
    draft = _own(context, draft_id)
    return Decision(None, (DraftDeleted(user_id=context.actor.id, draft_id=draft.id),))


def list_drafts(context: CommandContext) -> Decision[list[SavedDraft]]:
    """Return the actor's drafts, last edited first. Raise Refused if syncing drafts is turned
    off."""
    _require_synchronized(context)
    actor = context.actor
    drafts = drafts_of(context.state, actor.id)
    return Decision([draft for draft in drafts if _is_reached(actor, draft)])


def drafts_of(state: State, user_id: int) -> list[SavedDraft]:
    """Return a user's drafts, last edited first."""
    return sorted(
        state.drafts.of_user[user_id], key=lambda draft: (draft.edited_at, draft.id), reverse=True
    )


def deletion_changes(state: State, user_id: int) -> list[DraftDeleted]:
    """Return the changes that delete a user's drafts, because the user turns draft syncing off."""
    return [
        DraftDeleted(user_id=user_id, draft_id=draft.id, unsynchronized=True)
        for draft in state.drafts.of_user[user_id]
    ]


def _require_synchronized(context: CommandContext) -> None:
    settings = context.state.settings.get(context.actor.id)
    permissions.require(
        settings is None or settings.enable_drafts_synchronization,
        "Saving drafts on the server is turned off in your settings.",
    )


def _own(context: CommandContext, draft_id: int) -> SavedDraft:
    draft = context.state.drafts.get(draft_id)
    if draft is None or draft.user_id != context.actor.id or not _is_reached(context.actor, draft):
        raise NoSuchItem("draft")
    return draft


def _is_reached(actor: User, draft: SavedDraft) -> bool:
    """Whether the actor's access key reaches the draft. Drafts without a destination are
    reached only by keys that reach everything."""
    if actor.reach is None:
        return True
    match draft.kind:
        case DraftKind.CHANNEL:
            return actor.reaches(draft.to[0])
        case DraftKind.DIRECT:
            return actor.reaches(None)
        case DraftKind.NOTHING:
            return False


def _draft(context: CommandContext, draft_id: int, writing: DraftContent) -> SavedDraft:
    edited_at = context.now if writing.edited_at is None else writing.edited_at
    if edited_at < 0:
        raise Refused("A draft's timestamp can't be negative.")
    is_channel = writing.kind is DraftKind.CHANNEL
    draft = SavedDraft(
        id=draft_id,
        user_id=context.actor.id,
        kind=writing.kind,
        to=_addressed(context, writing),
        topic=names.topic_name(writing.topic) if is_channel else "",
        content=names.message_content(writing.content),
        edited_at=int(edited_at),
    )
    if not _is_reached(context.actor, draft):
        raise KeyInsufficient("This key can save only drafts to conversations that it can access.")
    return draft


def _addressed(context: CommandContext, writing: DraftContent) -> tuple[int, ...]:
    state, actor = context.state, context.actor
    match writing.kind:
        case DraftKind.CHANNEL:
            if len(writing.to) != 1:
                raise Refused("A draft of a channel message must have exactly one channel ID.")
            channel = state.channels.get(writing.to[0])
            if channel is None or not channel_access.sees_channel(state, actor, channel):
                raise Refused(f"No channel with ID {writing.to[0]} exists.")
            return (channel.id,)
        case DraftKind.DIRECT:
            people = dict.fromkeys(writing.to)
            return tuple(permissions.visible_user(state, actor, u).id for u in people)
        case DraftKind.NOTHING:
            return ()


MAX_SNIPPETS = 1000
"""Per account."""


def create_snippet(context: CommandContext, title: str, content: str) -> Decision[int]:
    """Save a snippet and return its ID. Raise Refused if it's empty or too long."""
    state, actor = context.state, context.actor
    if state.snippets.of_user.count(actor.id) >= MAX_SNIPPETS:
        raise Refused(f"You can have at most {MAX_SNIPPETS} saved snippets.")
    snippet = Snippet(
        id=state.snippets.next_id(),
        user_id=actor.id,
        title=names.snippet_title(title),
        content=names.snippet_content(content),
        created_at=int(context.now),
    )
    return Decision(snippet.id, (SnippetCreated(user_id=actor.id, snippet=snippet),))


def edit_snippet(
    context: CommandContext, snippet_id: int, title: str | None, content: str | None
) -> Decision[None]:
    """Change a snippet's title or content; None keeps the current value. Raise NoSuchItem; Refused
    as `create_snippet`, and if both are None."""
    before = _own_snippet(context, snippet_id)
    if title is None and content is None:
        raise Refused("Nothing to change: give a new title or new content.")
    snippet = msgspec.structs.replace(
        before,
        title=before.title if title is None else names.snippet_title(title),
        content=before.content if content is None else names.snippet_content(content),
    )
    return Decision(None, (SnippetChanged(user_id=context.actor.id, snippet=snippet),))


def delete_snippet(context: CommandContext, snippet_id: int) -> Decision[None]:
    """Delete a snippet. Raise NoSuchItem."""
    snippet = _own_snippet(context, snippet_id)
    return Decision(None, (SnippetDeleted(user_id=context.actor.id, snippet_id=snippet.id),))


def _own_snippet(context: CommandContext, snippet_id: int) -> Snippet:
    snippet = context.state.snippets.get(snippet_id)
    if snippet is None or snippet.user_id != context.actor.id:
        raise NoSuchItem("saved snippet")
    return snippet
