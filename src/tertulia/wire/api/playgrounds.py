"""Code playgrounds: websites where readers can run the code in a message."""

from typing import Annotated, Any, Final

from msgspec import Struct, convert, field

from tertulia.domain.organization import linkifiers
from tertulia.model import changes
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, to_everybody
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import CreatedResponse


class PlaygroundObject(Struct, kw_only=True):
    """A website where code in one language can be run."""

    id: int
    name: str
    language: str = field(name="pygments_language")
    url_template: str


def playground_objects(state: State) -> list[PlaygroundObject]:
    """All playgrounds, by ID."""
    playgrounds = sorted(state.playgrounds, key=lambda playground: playground.id)
    return convert(playgrounds, list[PlaygroundObject], from_attributes=True)


class PlaygroundsEvent(Event, kw_only=True, tag="realm_playgrounds"):
    """The playgrounds changed. Contains all of them."""

    realm_playgrounds: list[PlaygroundObject]


async def add_playground(
    call: Caller,
    name: str,
    pygments_language: str,
    url_template: Annotated[str, Doc("A URI template (RFC 6570) whose only variable is `code`.")],
) -> CreatedResponse:
    """Add a code playground. Requires an administrator."""
    playground_id = await call.submit(
        linkifiers.add_playground, name, pygments_language, url_template
    )
    return CreatedResponse(id=playground_id)


async def remove_playground(call: Caller, playground_id: IntPath) -> None:
    """Remove a code playground. Requires an administrator."""
    await call.submit(linkifiers.remove_playground, playground_id)


def _event(context: ProjectionContext, change: Any) -> Event:
    return PlaygroundsEvent(realm_playgrounds=playground_objects(context.state))


SECTIONS: Final[Sections] = {
    ("realm_playgrounds",): lambda context: {"realm_playgrounds": playground_objects(context.state)}
}


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.PlaygroundAdded, _event),
    to_everybody(changes.PlaygroundRemoved, _event),
)
