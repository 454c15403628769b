"""One message while it is rendered: who writes, and what is gathered on the way."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.domain import permissions
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.worker_rendering import ExpensiveParts
from tertulia.model.channels import Channel
from tertulia.model.groups import UserGroup
from tertulia.model.messages import MessagePlace
from tertulia.model.realm import Realm
from tertulia.model.users import User
from tertulia.state.moment import Moment
from tertulia.state.organization import State

_KEY: Final = "page"
MAX_NESTING: Final = 24
"""Blocks inside of blocks; what is deeper is shown as text."""


@dataclass
class RenderContext:
    """A message that is being rendered."""

    moment: Moment
    site: str = ""
    """The server's own address, without a slash at its end; empty where it is not known."""
    external_media: ExternalMedia = field(default_factory=ExternalMedia)
    mentioned_users: set[int] = field(default_factory=set)
    mentioned_groups: set[int] = field(default_factory=set)
    mentions_all: bool = False
    mentions_topic: bool = False
    has_link: bool = False
    has_image: bool = False
    pages_to_preview: list[str] = field(default_factory=list)
    """Linked pages of which there shall be previews."""
    in_quotation: bool = False
    """Whether what is being parsed stands in a quotation, which notifies nobody."""
    marks: "Marks | None" = None
    """Of the text that is being parsed."""
    expensive: ExpensiveParts = field(default_factory=ExpensiveParts)
    lone_markers: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Whether nothing but signs of quotation follow, by line and column."""
    quotation_checks: int = 0
    """How often it was looked whether a line begins a quotation."""
    table_cells: int = 0
    """Of its tables so far."""
    next_empty: dict[int, int] = field(default_factory=dict)
    """The next empty line, by line."""

    @property
    def state(self) -> State:
        return self.moment.state

    @property
    def realm(self) -> Realm | None:
        """The organization; None while it is being founded."""
        return self.state.realm if len(self.state.realms) else None

    @property
    def author(self) -> User | None:
        """Who writes; None where it is the server itself."""
        return None if self.moment.actor_id is None else self.moment.actor

    def may_link(self, channel: Channel) -> bool:
        """Whether the author may say that the channel exists."""
        author = self.author
        if author is None:
            return not channel.is_private
        return permissions.sees_channel(self.state, author, channel)

    def may_read(self, channel: Channel, message_id: int) -> bool:
        """Whether the author may read that message of the channel."""
        author = self.author
        if author is None:
            return not channel.is_private
        place = MessagePlace(id=message_id, channel_id=channel.id)
        return permissions.reads_message(self.state, author, place)

    def may_name(self, user: User) -> bool:
        """Whether the author may say that the user exists."""
        author = self.author
        return author is None or permissions.sees_user(self.state, author, user)

    def may_mention(self, group: UserGroup) -> bool:
        """Whether the author may notify the group's members by naming it."""
        author = self.author
        return author is not None and permissions.may_mention_group(self.state, author, group)


def context_of(state: StateInline | StateBlock | StateCore) -> RenderContext:
    """The message that the parser is in."""
    context: RenderContext = state.env[_KEY]
    return context


def environment(context: RenderContext) -> dict[str, RenderContext]:
    """What the parser carries along."""
    return {_KEY: context}


@dataclass
class Marks:
    """Where the brackets and backticks of a text pair up. Found in one pass, so that no number of
    them makes a text slow."""

    text: str
    closing: Mapping[int, int]
    """Where the bracket is closed that is opened there."""
    backticks: Mapping[int, list[int]]
    """Where the runs of so many backticks begin, ascending."""

    def next_backticks(self, length: int, after: int) -> int | None:
        """Where the next run of exactly so many begins."""
        narrow_links = self.backticks.get(length, [])
        index = bisect_left(narrow_links, after)
        return narrow_links[index] if index < len(narrow_links) else None


def marks_of(state: StateInline) -> Marks:
    """The pairs of the text that is being parsed."""
    context = context_of(state)
    if context.marks is None or context.marks.text is not state.src:
        context.marks = _marks(state.src)
    return context.marks


def _marks(text: str) -> Marks:
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
    return Marks(text, closing, backticks)


def add_html(state: StateInline, html: str, **meta: object) -> None:
    """Add HTML that is made already to the text that is being parsed."""
    token = state.push("html", "", 0)
    token.content = html
    token.meta = meta


def html_token(html: str, kind: str = "html") -> Token:
    """The same as a token, for where tokens are put in later."""
    token = Token(kind, "", 0)
    token.content = html
    return token
