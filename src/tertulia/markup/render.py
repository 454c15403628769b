"""The renderer of messages, which loads the parser on first use."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.former_names import FormerNames
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.state.decision import CommandContext

if TYPE_CHECKING:
    from tertulia.markup.markdown import Markdown


class Renderer:
    """Renders messages. `site` is the server's own URL, and links to it become relative.
    `external_media` decides which media of other servers are shown; by default, none.

    With `in_place`, code and formulas are rendered in this process without limits, for trusted
    text. Otherwise, they're plain text unless `rendered` was called before.
    """

    def __init__(
        self, site: str = "", external_media: ExternalMedia | None = None, *, in_place: bool = False
    ) -> None:
        self._site = site.rstrip("/")
        self._external_media = external_media or ExternalMedia()
        self._in_place = in_place

    @cached_property
    def _markdown(self) -> "Markdown":
        # Loaded for the first message, because the parser takes 3 MiB and 8% of the startup time.
        from tertulia.markup.markdown import Markdown

        return Markdown(self._site, self._external_media, in_place=self._in_place)

    async def rendered(
        self,
        context: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
    ) -> Rendered:
        """Render like `render`, in steps between which other tasks run. A worker renders code and
        formulas, which `render` then finds in the cache."""
        return await self._markdown.rendered(context, content, known)

    def render(
        self,
        context: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
        names: FormerNames | None = None,
    ) -> Rendered:
        """Render content as the context's actor. Every input renders: text that isn't markup is
        plain. `known` has the previews of fetched pages, and `names` the objects that names in an
        older text referred to."""
        return self._markdown.render(context, content, known, names)
