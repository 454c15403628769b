"""Code playgrounds: where on the web code in some language can be tried."""

from typing import Final

from tertulia.domain import names, permissions
from tertulia.domain.organization import linkifiers
from tertulia.model.changes import PlaygroundAdded, PlaygroundRemoved
from tertulia.model.errors import Refused
from tertulia.model.organization import Playground
from tertulia.state.decision import CommandContext, Decision

MAX_NAME: Final = 100


def add(context: CommandContext, name: str, language: str, url_template: str) -> Decision[int]:
    """Add a playground. Returns its ID. For administrators.

    Refused for a name, a language or a template that is none, for a template with other variables
    than `code`, and for a name that the language's playgrounds have already.
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
    """Remove a playground. For administrators. Refused for one that is not there."""
    permissions.require_administrator(context.state, context.actor)
    if playground_id not in context.state.playgrounds:
        raise Refused("This playground doesn't exist.")
    return Decision(None, (PlaygroundRemoved(playground_id=playground_id),))


def _name(text: str) -> str:
    name = text.strip()
    if not 0 < len(name) <= MAX_NAME or not names.is_printable(name):
        raise Refused(f"A playground's name must have 1 to {MAX_NAME} visible characters.")
    return name
