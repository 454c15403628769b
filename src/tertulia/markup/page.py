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
from tertulia.markup.costly import Costly
from tertulia.markup.elsewhere import Elsewhere
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
class Page:
    """A message that is being rendered."""

    moment: Moment
    site: str = ""
    """The server's own address, without a slash at its end; empty where it is not known."""
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    users: set[int] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)
    all: bool = False
    topic: bool = False
    has_link: bool = False
    has_image: bool = False
    pages: list[str] = field(default_factory=list)
    """Linked pages of which there shall be previews."""
    quoted: bool = False
    """Whether what is being parsed stands in a quotation, which notifies nobody."""
    marks: "Marks | None" = None
    """Of the text that is being parsed."""
    costly: Costly = field(default_factory=Costly)
    lone: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Whether nothing but signs of quotation follow, by line and column."""
    quotation_checks: int = 0
    """How often it was looked whether a line begins a quotation."""
    cells: int = 0
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


def page_of(state: StateInline | StateBlock | StateCore) -> Page:
    """The message that the parser is in."""
    page: Page = state.env[_KEY]
    return page


def environment(page: Page) -> dict[str, Page]:
    """What the parser carries along."""
    return {_KEY: page}


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
        places = self.backticks.get(length, [])
        index = bisect_left(places, after)
        return places[index] if index < len(places) else None


def marks_of(state: StateInline) -> Marks:
    """The pairs of the text that is being parsed."""
    page = page_of(state)
    if page.marks is None or page.marks.text is not state.src:
        page.marks = _marks(state.src)
    return page.marks


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


def made(state: StateInline, html: str, **meta: object) -> None:
    """Add HTML that is made already to the text that is being parsed."""
    token = state.push("made", "", 0)
    token.content = html
    token.meta = meta


def made_token(html: str, kind: str = "made") -> Token:
    """The same as a token, for where tokens are put in later."""
    token = Token(kind, "", 0)
    token.content = html
    return token
