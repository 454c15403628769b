"""Snippets: texts that their owner writes again and again."""

import msgspec

from tertulia.domain import names
from tertulia.model.changes import SnippetChanged, SnippetCreated, SnippetDeleted
from tertulia.model.drafts import Snippet
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.state.moment import Decision, Moment

MAX_SNIPPETS = 1000
"""Of one owner."""


def create(moment: Moment, title: str, content: str) -> Decision[int]:
    """Keep a snippet. Returns its ID. Refused for what is blank or too long."""
    state, actor = moment.state, moment.actor
    if state.snippets.of_user.count(actor.id) >= MAX_SNIPPETS:
        raise Refused(f"You can have at most {MAX_SNIPPETS} saved snippets.")
    snippet = Snippet(
        id=state.snippets.next_id(),
        user_id=actor.id,
        title=names.snippet_title(title),
        content=names.snippet_content(content),
        created_at=int(moment.now),
    )
    return Decision(snippet.id, (SnippetCreated(user_id=actor.id, snippet=snippet),))


def edit(moment: Moment, snippet_id: int, title: str | None, content: str | None) -> Decision[None]:
    """Give a snippet another title or text; what is None stays. NoSuchItem, or Refused as in
    `create`, and where there is nothing to change."""
    before = _own(moment, snippet_id)
    if title is None and content is None:
        raise Refused("Nothing to change: give a new title or new content.")
    snippet = msgspec.structs.replace(
        before,
        title=before.title if title is None else names.snippet_title(title),
        content=before.content if content is None else names.snippet_content(content),
    )
    return Decision(None, (SnippetChanged(user_id=moment.actor.id, snippet=snippet),))


def delete(moment: Moment, snippet_id: int) -> Decision[None]:
    """Delete a snippet. NoSuchItem."""
    snippet = _own(moment, snippet_id)
    return Decision(None, (SnippetDeleted(user_id=moment.actor.id, snippet_id=snippet.id),))


def _own(moment: Moment, snippet_id: int) -> Snippet:
    snippet = moment.state.snippets.get(snippet_id)
    if snippet is None or snippet.user_id != moment.actor.id:
        raise NoSuchItem("saved snippet")
    return snippet
