"""Parser of the files in `talk`, which have the messages of the demonstration.

A file has conversations. Each begins with its channel and topic, or its people:

    == kitchen > almond cake        a topic; `== june, iris` are people
    @ -3 09:10                      three days ago at that time; `@ now-95` is minutes ago
    june: The almond cake is        a message
      sold out.                     and the rest of it
    marco +20: Bake two?            twenty minutes later
    & two                           by this name others refer to it
    + yum: iris theo                they react
    = two -> three                  its author corrects it
    * iris                          she stars it
    ! vote iris 0                   she votes in the poll (also: option, task, strike)
    > iris +5: kitchen > cakes      she moves it (also: `iris all +5`, `iris later +5`)
    % marco +5                      he resolves the topic
    ? unread iris 3                 the last three are unread (also: follow iris, mute iris)

In a text, `{link:two}` leads to a message, `{quote:two}` quotes it, `{file:plan.png}` is a file
that comes with it, `{time:+2 18:30}` is a time in two days, and `{day:+2}` the day's name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import resources
from typing import Final

from tertulia.demo.people import NAMES

_MESSAGE: Final = re.compile(rf"({'|'.join(sorted(NAMES))})(?: \+([0-9]+))?: ?(.*)", re.DOTALL)
_TIME: Final = re.compile(r"now-([0-9]+)|([+-]?[0-9]+) ([0-9]{2}):([0-9]{2})")
_FILE: Final = re.compile(r"\{file:([^{}\n]+)\}")
_ANNOTATION: Final = re.compile(r"([a-z]+)(?: (all|later))?(?: \+([0-9]+))?(?:: (.*))?")


@dataclass(eq=False)
class ScriptedMessage:
    """A message, with what happens to it later."""

    who: str
    text: str
    at: float
    label: str = ""
    channel: str = ""
    """Empty for a direct message."""
    topic: str = ""
    people: tuple[str, ...] = ()
    reactions: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    """Names of emoji, and the people who react with them."""
    corrections: list[tuple[str, str]] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    widget_actions: list[tuple[str, str, str]] = field(default_factory=list)
    """In a poll or to-do list: action (vote, option, task, strike), person and value."""
    moves: "list[Moved]" = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """The names of the files that it links."""
        return _FILE.findall(self.text)


@dataclass(frozen=True)
class Moved:
    """The move of a message; `how` (`one`, `later`, `all`) says which others of its topic move
    too."""

    who: str
    at: float
    how: str
    channel: str
    topic: str


@dataclass
class Conversation:
    """The messages of a topic or direct conversation, in order."""

    channel: str = ""
    topic: str = ""
    people: tuple[str, ...] = ()
    messages: list[ScriptedMessage] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    """By person: how many of the last messages are unread, if that differs from the default (see
    `final_steps`)."""
    followed: list[str] = field(default_factory=list)
    muted: list[str] = field(default_factory=list)


class Calendar:
    """Times of the script, relative to its last day."""

    def __init__(self, end: float) -> None:
        self.end = end
        self._today = datetime.fromtimestamp(end).replace(hour=0, minute=0, second=0, microsecond=0)

    def time(self, text: str) -> float:
        """`-3 09:10` or `now-95` as UNIX seconds."""
        found = _TIME.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no time of the story")
        if found[1] is not None:
            return self.end - int(found[1]) * 60
        day = self._today + timedelta(days=int(found[2]))
        return day.replace(hour=int(found[3]), minute=int(found[4])).timestamp()

    def weekday(self, days: int) -> str:
        """The name of the weekday so many days after the last day."""
        return f"{self._today + timedelta(days=days):%A}"


def conversations(calendar: Calendar) -> Iterator[Conversation]:
    """The conversations of all files."""
    files = resources.files("tertulia.demo") / "talk"
    for file in sorted(files.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".txt"):
            yield from parsed(file.read_text("utf-8"), calendar)


def parsed(text: str, calendar: Calendar) -> Iterator[Conversation]:
    """The conversations of one file."""
    one: Conversation | None = None
    at = 0.0
    for line in _lines(text):
        mark, rest = line[:1], line[1:].strip()
        if line.startswith("=="):
            if one is not None:
                yield one
            one = _conversation_in(line[2:].strip())
            continue
        if one is None:
            raise ValueError(f"{line!r} is in no conversation")
        if mark == "@":
            at = max(at, calendar.time(rest)) if one.messages else calendar.time(rest)
        elif match := _MESSAGE.fullmatch(line):
            if one.messages:
                pause = int(match[2]) * 60 if match[2] else _pause(match[3])
                # No message is later than the end.
                at = min(max(at, one.messages[-1].at + pause), calendar.end - 20)
            one.messages.append(
                ScriptedMessage(
                    who=match[1],
                    text=match[3].rstrip(),
                    at=at,
                    channel=one.channel,
                    topic=one.topic,
                    people=one.people,
                )
            )
        else:
            _annotate(one, mark, rest)
    if one is not None:
        yield one


def _lines(text: str) -> Iterator[str]:
    """The lines, each joined with the indented ones after it."""
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
    """Seconds that writing the text would take."""
    return 35 + len(text) % 71 + min(len(text), 400) // 3


def _annotate(one: Conversation, mark: str, rest: str) -> None:
    """Parse a line about the last message, or about the conversation, and add it there."""
    last = one.messages[-1]
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
            last.moves.append(_moved(one, mark, rest))
        case "?" if words[0] == "unread":
            one.unread[words[1]] = int(words[2])
        case "?" if words[0] in {"follow", "mute"}:
            (one.followed if words[0] == "follow" else one.muted).extend(words[1:])
        case _:
            raise ValueError(f"'{mark} {rest}' means nothing")


def _moved(one: Conversation, mark: str, rest: str) -> Moved:
    found = _ANNOTATION.fullmatch(rest)
    if found is None:
        raise ValueError(f"'{mark} {rest}' means nothing")
    who, how, minutes, place = found.groups()
    at = one.messages[-1].at + int(minutes or 2) * 60
    if mark == "%":
        return Moved(who, at, "all", one.channel, f"✔ {one.topic}")
    channel, _, topic = place.partition(">")
    return Moved(who, at, how or "one", channel.strip(), topic.strip())
