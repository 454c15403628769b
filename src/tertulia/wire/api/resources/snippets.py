"""Snippets: texts that their owner writes again and again."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.messages import snippets
from tertulia.wire.api.objects.drafts import SnippetObject, snippet_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

_TITLE = Meta(description="At most 60 characters.")
_CONTENT = Meta(description="Markdown, at most max_message_length characters.")


class GetSnippets(Params, kw_only=True, frozen=True):
    """No parameters."""


class Snippets(Answer, kw_only=True):
    """The caller's snippets, the oldest first."""

    saved_snippets: list[SnippetObject]


async def get_snippets(call: Call, params: GetSnippets) -> Snippets:
    """The caller's snippets, the oldest first."""
    own = call.state.snippets.of_user[call.user.id]
    return Snippets(saved_snippets=[snippet_object(snippet) for snippet in own])


class CreateSnippet(Params, kw_only=True, frozen=True):
    """A snippet to keep."""

    title: Annotated[str, _TITLE]
    content: Annotated[str, _CONTENT]


class NewSnippet(Answer, kw_only=True):
    """The new snippet's ID."""

    saved_snippet_id: int


async def create_snippet(call: Call, params: CreateSnippet) -> NewSnippet:
    """Keep a snippet."""
    made = await call.submit(snippets.create, params.title, params.content)
    return NewSnippet(saved_snippet_id=made)


class EditSnippet(Params, kw_only=True, frozen=True):
    """What a snippet shall be; what is not sent stays."""

    saved_snippet_id: Annotated[Int, Path()]
    title: Annotated[str | None, _TITLE] = None
    content: Annotated[str | None, _CONTENT] = None


async def edit_snippet(call: Call, params: EditSnippet) -> Answer:
    """Give a snippet another title or text."""
    await call.submit(snippets.edit, params.saved_snippet_id, params.title, params.content)
    return Answer()


class DeleteSnippet(Params, kw_only=True, frozen=True):
    """A snippet to delete."""

    saved_snippet_id: Annotated[Int, Path()]


async def delete_snippet(call: Call, params: DeleteSnippet) -> Answer:
    """Delete a snippet."""
    await call.submit(snippets.delete, params.saved_snippet_id)
    return Answer()
