"""The demo's content: `cafe.toml` has the organization, and the files in `talk` the messages.

A file in `talk` has conversations. Each begins with its channel and topic, or with its people:

    == kitchen > almond cake        a topic; `== june, iris` is a direct message
    @ -3 09:10                      three days ago at that time; `@ now-95` is 95 minutes ago
    june: The almond cake is        a message
      sold out.                     and its next line
    marco +20: Bake two?            20 minutes later
    & two                           a label that others refer to
    + yum: iris theo                they react
    = two -> three                  the author edits the message
    * iris                          she stars it
    ! vote iris 0                   she votes in the poll (or: option, task, strike)
    > iris +5: kitchen > cakes      she moves it (or: `iris all +5`, `iris later +5`)
    % marco +5                      he resolves the topic
    ? unread iris 3                 the last three are unread (or: follow iris, mute iris)

In a message, `{link:two}` links to another, `{quote:two}` quotes it, `{file:plan.png}` is a file
that is uploaded with it, `{time:+2 18:30}` is a time, and `{day:+2}` the name of a day.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec
from msgspec import Struct

_MESSAGE: Final = re.compile(r"([a-z]+)(?: \+([0-9]+))?: ?(.*)", re.DOTALL)
_TIME: Final = re.compile(r"now-([0-9]+)|([+-]?[0-9]+) ([0-9]{2}):([0-9]{2})")
_FILE: Final = re.compile(r"\{file:([^{}\n]+)\}")
_ANNOTATION: Final = re.compile(r"([a-z]+)(?: (all|later))?(?: \+([0-9]+))?(?:: (.*))?")
_FILES: Final = resources.files("tertulia.demo")


Entry = Mapping[str, Any]
"""An entry of `cafe.toml` with a few values."""


class Person(Struct, frozen=True, forbid_unknown_fields=True):
    """A member of the team."""

    name: str
    """Their name in `talk`, and the local part of their address."""
    full_name: str
    role: str = "member"
    timezone: str = "Europe/Madrid"
    status: tuple[str, str] | None = None
    """The status: emoji and text."""
    profile: Sequence[str] = ()
    """Values of the profile fields, in order."""
    away: int = 60
    introduced: bool = False
    """Whether the server prints how to sign in as this person."""
    joins: str = ""
    leaves: str = ""


class PlannedChannel(Struct, frozen=True, forbid_unknown_fields=True):
    """A channel. Without `members`, the whole team is subscribed."""

    name: str
    description: str
    created: str
    folder: str = ""
    members: Sequence[str] = ()
    is_private: bool = False
    archived: str = ""
    announced: bool = False


class Cafe(Struct, frozen=True, forbid_unknown_fields=True):
    """The organization."""

    organization: str
    description: str
    host: str
    founded: str
    alert_words: Sequence[str]
    emoji: Sequence[str]
    fields: Sequence[Entry]
    people: Sequence[Person]
    bots: Sequence[Entry]
    folders: Sequence[Entry]
    channels: Sequence[PlannedChannel]
    groups: Sequence[Entry]
    pinned: Sequence[Entry]
    muted: Sequence[Entry]
    snippets: Sequence[Entry]
    drafts: Sequence[Entry]
    scheduled: Entry
    reminder: Entry

    @property
    def owner(self) -> Person:
        return self.people[0]

    def address(self, person: Person) -> str:
        """Return the person's email address."""
        return f"{person.name}@{self.host}"


@cache
def cafe() -> Cafe:
    """Read `cafe.toml`."""
    return msgspec.toml.decode((_FILES / "cafe.toml").read_bytes(), type=Cafe)


def picture(name: str) -> bytes | None:
    """Return the file with this name in `pictures`, or None if it doesn't exist."""
    file = _FILES / "pictures" / name
    return file.read_bytes() if file.is_file() else None


class Calendar:
    """Times relative to the end of the story."""

    def __init__(self, end: float) -> None:
        self.end = end
        self._today = datetime.fromtimestamp(end).replace(hour=0, minute=0, second=0, microsecond=0)

    def time(self, text: str) -> float:
        """Turn `-3 09:10` or `now-95` into UNIX seconds."""
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} isn't a time")
        if match[1] is not None:
            return self.end - int(match[1]) * 60
        day = self._today + timedelta(days=int(match[2]))
        return day.replace(hour=int(match[3]), minute=int(match[4])).timestamp()

    def weekday(self, days: int) -> str:
        """Return the name of the day that is `days` after the last day."""
        return f"{self._today + timedelta(days=days):%A}"


@dataclass(eq=False)
class ScriptedMessage:
    """A message, with its later changes."""

    who: str
    text: str
    at: float
    talk: "Conversation"
    label: str = ""
    reactions: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    """Emoji names, and the people who react with each."""
    corrections: list[tuple[str, str]] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    widget_actions: list[tuple[str, str, str]] = field(default_factory=list)
    """Actions in a poll or to-do list: the kind (vote, option, task, or strike), person, and
    value."""
    moves: "list[ScriptedMove]" = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """Return the names of the files that are uploaded with the message."""
        return _FILE.findall(self.text)


@dataclass(frozen=True)
class ScriptedMove:
    """A move of a message and, for `later` and `all`, of others in its topic."""

    who: str
    at: float
    how: str
    channel: str
    topic: str


@dataclass
class Conversation:
    """The messages of a topic or of a direct conversation, in order."""

    channel: str = ""
    """Empty for direct messages."""
    topic: str = ""
    people: tuple[str, ...] = ()
    messages: list[ScriptedMessage] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    """The number of the last messages that are unread, by person, where it isn't the default."""
    followed: list[str] = field(default_factory=list)
    muted: list[str] = field(default_factory=list)


def conversations(calendar: Calendar) -> Iterator[Conversation]:
    """Yield all conversations, file by file."""
    files = (file for file in (_FILES / "talk").iterdir() if file.name.endswith(".txt"))
    for file in sorted(files, key=lambda item: item.name):
        yield from parsed(file.read_text("utf-8"), calendar)


def parsed(text: str, calendar: Calendar) -> Iterator[Conversation]:
    """Yield the conversations of one file. Raises ValueError for an invalid line."""
    conversation: Conversation | None = None
    at = 0.0
    for line in _lines(text):
        mark, rest = line[:1], line[1:].strip()
        if line.startswith("=="):
            if conversation is not None:
                yield conversation
            conversation = _conversation_in(line[2:].strip())
            continue
        if conversation is None:
            raise ValueError(f"{line!r} is in no conversation")
        if mark == "@":
            at = max(at, calendar.time(rest)) if conversation.messages else calendar.time(rest)
        elif match := _MESSAGE.fullmatch(line):
            if conversation.messages:
                pause = int(match[2]) * 60 if match[2] else _pause(match[3])
                # No message is later than the end.
                at = min(max(at, conversation.messages[-1].at + pause), calendar.end - 20)
            conversation.messages.append(
                ScriptedMessage(match[1], match[3].rstrip(), at, conversation)
            )
        else:
            _annotate(conversation, mark, rest)
    if conversation is not None:
        yield conversation


def _lines(text: str) -> Iterator[str]:
    """Yield the lines, each joined with the indented lines after it."""
    line = ""
    for raw in text.splitlines():
        if raw.startswith("  ") or not raw.strip():
            line += "\n" + raw[2:]
            continue
        if line.strip():
            yield line.rstrip()
        line = raw
    if line.strip():
        yield line.rstrip()


def _conversation_in(place: str) -> Conversation:
    if ">" in place:
        channel, _, topic = place.partition(">")
        return Conversation(channel=channel.strip(), topic=topic.strip())
    return Conversation(people=tuple(name.strip() for name in place.split(",")))


def _pause(text: str) -> int:
    """Return the seconds that typing the text takes."""
    return 35 + len(text) % 71 + min(len(text), 400) // 3


def _annotate(conversation: Conversation, mark: str, rest: str) -> None:
    """Apply a line about the last message or the conversation."""
    last = conversation.messages[-1]
    words = rest.split()
    match mark:
        case "&":
            last.label = rest
        case "+":
            emoji, _, people = rest.partition(":")
            last.reactions.append((emoji.strip(), people.split()))
        case "=":
            before, _, after = rest.partition(" -> ")
            if before not in last.text:
                raise ValueError(f"{before!r} is not in {last.text!r}")
            last.corrections.append((before, after))
        case "*":
            last.stars += words
        case "!":
            last.widget_actions.append((words[0], words[1], " ".join(words[2:])))
        case ">" | "%":
            last.moves.append(_move(conversation, mark, rest))
        case "?" if words[0] == "unread":
            conversation.unread[words[1]] = int(words[2])
        case "?" if words[0] in {"follow", "mute"}:
            (conversation.followed if words[0] == "follow" else conversation.muted).extend(
                words[1:]
            )
        case _:
            raise ValueError(f"'{mark} {rest}' can't be read")


def _move(conversation: Conversation, mark: str, rest: str) -> ScriptedMove:
    match = _ANNOTATION.fullmatch(rest)
    if match is None:
        raise ValueError(f"'{mark} {rest}' can't be read")
    who, how, minutes, place = match.groups()
    at = conversation.messages[-1].at + int(minutes or 2) * 60
    if mark == "%":
        return ScriptedMove(who, at, "all", conversation.channel, f"✔ {conversation.topic}")
    channel, _, topic = place.partition(">")
    return ScriptedMove(who, at, how or "one", channel.strip(), topic.strip())
