"""Code playgrounds: websites that run code in a language."""

from typing import Final

from tertulia.domain import names, permissions
from tertulia.domain.organization import linkifiers
from tertulia.model.changes import PlaygroundAdded, PlaygroundRemoved
from tertulia.model.errors import Refused
from tertulia.model.organization import Playground
from tertulia.state.decision import CommandContext, Decision

MAX_NAME: Final = 100


def add(context: CommandContext, name: str, language: str, url_template: str) -> Decision[int]:
    """Add a playground and return its ID. For administrators.

    Raise Refused for an invalid name, language, or template, variables other than `code`, and a
    name that the language's playgrounds already have.
    """
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    template, variables = linkifiers.url_template(url_template)
    if variables != {"code"}:
        raise Refused("The URL template must contain the variable 'code', and no other.")
    playground = Playground(
        id=state.playgrounds.next_id(),
        name=_name(name),
        language=names.lexer_name(language),
        url_template=template,
    )
    if any(
        (one.name, one.language) == (playground.name, playground.language)
        for one in state.playgrounds
    ):
        raise Refused("This language already has a playground with this name.")
    return Decision(playground.id, (PlaygroundAdded(playground=playground),))


def remove(context: CommandContext, playground_id: int) -> Decision[None]:
    """Remove a playground. For administrators. Raise Refused if it doesn't exist."""
    permissions.require_administrator(context.state, context.actor)
    if playground_id not in context.state.playgrounds:
        raise Refused("This playground doesn't exist.")
    return Decision(None, (PlaygroundRemoved(playground_id=playground_id),))


def _name(text: str) -> str:
    name = text.strip()
    if not 0 < len(name) <= MAX_NAME or not names.is_printable(name):
        raise Refused(f"A playground's name must have 1 to {MAX_NAME} visible characters.")
    return name
