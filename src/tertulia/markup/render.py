"""Rendering messages: Markdown to HTML, and what the message refers to."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from tertulia.markup.external_media import ExternalMedia
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.state.decision import CommandContext

if TYPE_CHECKING:
    from tertulia.markup.markdown import Markdown


class Renderer:
    """Renders messages. `site` is the server's own URL: links to it become relative.
    `external_media` says what is shown of other servers; nothing by default.

    With `in_place`, code and formulas are computed while rendering, without a limit: for texts of
    our own. Otherwise they are plain text unless `prepare` was called before."""

    def __init__(
        self, site: str = "", external_media: ExternalMedia | None = None, *, in_place: bool = False
    ) -> None:
        self._site = site.rstrip("/")
        self._external_media = external_media or ExternalMedia()
        self._in_place = in_place

    @cached_property
    def _markdown(self) -> "Markdown":
        # The parser and its rules are loaded for the first message: they take 3 MiB, and a
        # twelfth of what a start takes.
        from tertulia.markup.markdown import Markdown

        return Markdown(self._site, self._external_media, in_place=self._in_place)

    async def prepare(self, context: CommandContext, content: str) -> None:
        """Have a worker render the code and formulas of the content, for `render` to find."""
        await self._markdown.prepare(context, content)

    def render(
        self,
        context: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
    ) -> Rendered:
        """The content, written by the moment's actor, as HTML. Every input renders; anything that
        is not markup is text. `known` has the previews of linked pages that were fetched."""
        return self._markdown.render(context, content, known)
