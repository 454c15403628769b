"""The context of a message while it is rendered."""

from bisect import bisect_left
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.domain import channel_access, permissions
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.former_names import FormerNames
from tertulia.markup.worker_rendering import ExpensiveParts, PartsToRender
from tertulia.model.channels import Channel
from tertulia.model.groups import UserGroup
from tertulia.model.messages import MessagePlace
from tertulia.model.organization import Realm
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

_KEY: Final = "page"
MAX_NESTING: Final = 24
"""The most levels of nested blocks. Deeper blocks are shown as text."""


T = TypeVar("T")
Steps = Generator[PartsToRender | None, None, T]
"""Work with pauses in which other tasks may run. Before a pause that yields parts to render, a
worker may render them."""


def run_steps(steps: Steps[T]) -> T:
    """Do the work without pauses, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


@dataclass
class RenderContext:
    """A message being rendered: its author, and the objects that it refers to."""

    command: CommandContext
    site: str = ""
    """The server's URL without a trailing slash, or "" if unknown."""
    external_media: ExternalMedia = field(default_factory=ExternalMedia)
    mentioned_users: set[int] = field(default_factory=set)
    mentioned_groups: set[int] = field(default_factory=set)
    mentions_all: bool = False
    mentions_topic: bool = False
    has_link: bool = False
    has_image: bool = False
    pages_to_preview: list[str] = field(default_factory=list)
    """URLs of linked pages that should have previews."""
    in_quotation: bool = False
    """Whether the parser is in a quotation, where mentions are silent."""
    marks: "InlineDelimiters | None" = None
    """Delimiters of the current inline text."""
    expensive: ExpensiveParts = field(default_factory=ExpensiveParts)
    lone_markers: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Whether only quotation markers (`>`) follow until an empty line, by line and column."""
    quotation_checks: int = 0
    """The number of attempts to parse a quotation so far."""
    table_cells: int = 0
    next_empty: dict[int, int] = field(default_factory=dict)
    """The next empty line, by line number."""
    is_plain: bool = False
    """Whether to leave emoji and formulas as typed."""
    names: FormerNames | None = None
    """The people and channels that names in the text referred to when it was written, for text that
    isn't new."""

    @property
    def state(self) -> State:
        return self.command.state

    @property
    def realm(self) -> Realm | None:
        """The organization; None while it's being created."""
        return self.state.realm if len(self.state.realms) else None

    @property
    def author(self) -> User | None:
        """The author; None for the server's own messages."""
        return None if self.command.actor_id is None else self.command.actor

    def may_link(self, channel: Channel) -> bool:
        """Return whether the author can see the channel."""
        author = self.author
        if author is None:
            return not channel.is_private
        return channel_access.sees_channel(self.state, author, channel)

    def may_read(self, channel: Channel, message_id: int) -> bool:
        """Return whether the author can read this message of the channel."""
        author = self.author
        if author is None:
            return not channel.is_private
        place = MessagePlace(id=message_id, channel_id=channel.id)
        return channel_access.reads_message(self.state, author, place)

    def may_name(self, user: User) -> bool:
        """Return whether the author can see the user."""
        author = self.author
        return author is None or permissions.sees_user(self.state, author, user)

    def may_mention(self, group: UserGroup) -> bool:
        """Return whether the author may notify the group."""
        author = self.author
        return author is not None and permissions.may_mention_group(self.state, author, group)


def context_of(state: StateInline | StateBlock | StateCore) -> RenderContext:
    context: RenderContext = state.env[_KEY]
    return context


def environment(context: RenderContext) -> dict[str, RenderContext]:
    """Return the parser's `env`, which gives rules the context."""
    return {_KEY: context}


@dataclass
class InlineDelimiters:
    """Matching brackets and runs of backticks in a text, found in linear time."""

    text: str
    closing: Mapping[int, int]
    """Closing brackets by opening ones."""
    backticks: Mapping[int, list[int]]
    """Ascending positions of runs of backticks, by length."""

    def next_backticks(self, length: int, after: int) -> int | None:
        """Return the position of the next run of exactly that length."""
        narrow_links = self.backticks.get(length, [])
        index = bisect_left(narrow_links, after)
        return narrow_links[index] if index < len(narrow_links) else None


def delimiters_of(state: StateInline) -> InlineDelimiters:
    context = context_of(state)
    if context.marks is None or context.marks.text is not state.src:
        context.marks = _marks(state.src)
    return context.marks


def _marks(text: str) -> InlineDelimiters:
    backticks: dict[int, list[int]] = {}
    closing: dict[int, int] = {}
    pending: list[int] = []
    position, end = 0, len(text)
    while position < end:
        match text[position]:
            case "`":
                begin = position
                while position < end and text[position] == "`":
                    position += 1
                backticks.setdefault(position - begin, []).append(begin)
                continue
            case "\\":
                position += 1
            case "[":
                pending.append(position)
            case "]" if pending:
                closing[pending.pop()] = position
        position += 1
    return InlineDelimiters(text, closing, backticks)


def add_html(state: StateInline, html: str, **meta: object) -> None:
    """Add a token with finished HTML."""
    token = state.push("html", "", 0)
    token.content = html
    token.meta = meta


def html_token(html: str, kind: str = "html") -> Token:
    token = Token(kind, "", 0)
    token.content = html
    return token
