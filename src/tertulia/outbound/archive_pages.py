"""Pages of an archive: channels, topics, and messages as plain HTML, without scripts."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct

from tertulia.model.emoji import text_of
from tertulia.model.messages import Message
from tertulia.model.reactions import EmojiKind, Reaction
from tertulia.outbound.mail_templates import templates
from tertulia.outbound.readable_html import page_html
from tertulia.texts import language_of, texts

Addressed = Callable[[str], str | None]
"""Returns the URL that replaces a URL in a message, or None to leave it out."""
STYLES: Final = "archive.css"


class ArchiveLink(Struct, frozen=True, kw_only=True):
    """A link to a channel, a topic, or a conversation."""

    name: str
    address: str
    messages: int = 0
    marks: tuple[str, ...] = ()


class ArchivedMessage(Struct, frozen=True, kw_only=True):
    """A message on a page."""

    id: int
    sender: str
    at: datetime
    html: Markup
    """Safe HTML from `page_html`."""
    reactions: tuple[tuple[str, int], ...] = ()


class ArchivePages:
    """Renders an organization's pages in its language."""

    def __init__(self, organization: str, language: str, now: float) -> None:
        self.say = texts(language_of(language), "archive")
        self._common = {
            "organization": organization,
            "say": self.say,
            "date": datetime.fromtimestamp(now, UTC).date().isoformat(),
        }

    def index(
        self, description: Markup, channels: Sequence[ArchiveLink], directs: Sequence[ArchiveLink]
    ) -> bytes:
        return self._page(
            "archive_index.html",
            root="",
            description=description,
            channels=channels,
            directs=directs,
        )

    def channel(
        self,
        name: str,
        description: Markup,
        topics: Sequence[ArchiveLink],
        page: int,
        pages: int,
        page_address: Callable[[int], str],
    ) -> bytes:
        return self._page(
            "archive_channel.html",
            root="../",
            channel=name,
            description=description,
            topics=topics,
            page=page,
            pages=pages,
            page_address=page_address,
        )

    def messages(
        self,
        title: str,
        channel: ArchiveLink | None,
        messages: Sequence[ArchivedMessage],
        page: int,
        pages: int,
        page_address: Callable[[int], str],
    ) -> bytes:
        """Return a page of a topic or of a direct conversation."""
        return self._page(
            "archive_messages.html",
            root="../",
            title=title,
            channel=channel,
            messages=messages,
            page=page,
            pages=pages,
            page_address=page_address,
        )

    def _page(self, template: str, **facts: Any) -> bytes:
        text = templates().get_template(template).render(**self._common, **facts)
        return text.encode()


def styles() -> bytes:
    """Return the pages' style sheet."""
    environment = templates()
    assert environment.loader is not None  # noqa: S101
    return environment.loader.get_source(environment, STYLES)[0].encode()


def archived(
    message: Message, sender: str, reactions: Sequence[Reaction], addressed: Addressed
) -> ArchivedMessage:
    counts: dict[str, int] = {}
    for reaction in reactions:
        text = (
            text_of(reaction.code) if reaction.kind is EmojiKind.UNICODE else f":{reaction.name}:"
        )
        counts[text] = counts.get(text, 0) + 1
    return ArchivedMessage(
        id=message.id,
        sender=sender,
        at=datetime.fromtimestamp(message.sent_at, UTC),
        html=safe(message.rendered, addressed),
        reactions=tuple(counts.items()),
    )


def safe(rendered: str, addressed: Addressed) -> Markup:
    """Return HTML that the server rendered, converted for a page."""
    return Markup(page_html(rendered, addressed)) if rendered else Markup()  # noqa: S704
