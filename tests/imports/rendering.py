"""Rendering imported messages without other processes, which take long to start."""

from collections.abc import Sequence

from tertulia.imports.rendering import Text
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.render import Renderer
from tertulia.model.messages import Rendered
from tertulia.state.decision import CommandContext
from tertulia.state.state import State


class SameProcess:
    """Stand-in for `RenderPool` in the same process."""

    def __init__(
        self,
        state: State,
        site: str,
        _: int | None = None,
        media: ExternalMedia | None = None,
    ) -> None:
        self._state = state
        self._renderer = Renderer(site, media)

    async def render(self, texts: Sequence[Text]) -> list[Rendered]:
        context = CommandContext(self._state, 0, None)
        return [self._renderer.render(context, text, names=names) for _, text, names in texts]

    def close(self) -> None:
        pass
