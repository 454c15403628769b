"""Polls, to-do lists, and forms (widgets), which consist of submessages."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tertulia.domain import channel_access
from tertulia.model.changes import SubmessageAdded
from tertulia.model.errors import Conflict, NoSuchMessage, Refused
from tertulia.model.messages import Message, Submessage, place_of
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

WIDGET: Final = "widget"
"""The only kind of submessage."""
MAX_SUBMESSAGE: Final = 10_000
"""The most characters of a submessage's JSON."""
MAX_SUBMESSAGES_OF_MESSAGE: Final = 1_000_000
"""The most bytes of all submessages of one message."""
MAX_SUBMESSAGES_OF_PERSON: Final = 100_000
"""The most bytes of one account's submessages of one message."""
MAX_SUBMESSAGES_UNDER_WAY: Final = 100
"""The most submessages that are decided concurrently. If a message has room for fewer of this size,
they are decided one after the other."""
_COMMAND: Final = re.compile(r"/(poll|todo)(?=\s|$)")
_BULLET: Final = re.compile(r"^[-*]\s*")
_COUNTER: Final = "submessages"

_Index = Annotated[int, Meta(ge=0, le=1000)]
_PollKey = Annotated[str, Meta(pattern=r"^(canned|[0-9]{1,16}),[0-9]{1,4}$")]
_TaskKey = Annotated[str, Meta(pattern=r"^(canned|[0-9]{1,16}),[0-9]{1,16}$")]


class _Strict(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A submessage from a client. Unknown fields are refused."""


class _NewOption(_Strict, frozen=True, tag="new_option"):
    option: str
    idx: _Index


class _Vote(_Strict, frozen=True, tag="vote"):
    key: _PollKey
    vote: Literal[1, -1]


class _Question(_Strict, frozen=True, tag="question"):
    question: str


class _NewTask(_Strict, frozen=True, tag="new_task"):
    key: Annotated[int, Meta(ge=0, le=2**53)]
    task: str
    desc: str
    completed: bool


class _Strike(_Strict, frozen=True, tag="strike"):
    key: _TaskKey


class _Title(_Strict, frozen=True, tag="new_task_list_title"):
    title: str


_FORMS: Final[dict[str, Any]] = {
    "poll": _NewOption | _Vote | _Question,
    "todo": _NewTask | _Strike | _Title,
}
"""The submessages that each kind of widget accepts."""
_ONLY_AUTHOR: Final = (_Question, _Title)


class _Choice(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    type: str = ""
    short_name: str
    long_name: str
    reply: str


class _Choices(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    type: Literal["choices"]
    heading: str
    choices: list[_Choice]


class _Form(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    widget_type: Literal["zform"]
    extra_data: _Choices


class _Begun(Struct, frozen=True, kw_only=True):
    """The part of a widget's first submessage that names the widget's kind."""

    widget_type: str


def checked_form(text: str) -> str:
    """Return the normalized JSON of a form that a bot sends. Raise Refused if it's invalid."""
    try:
        msgspec.json.decode(text, type=_Form)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Refused(f"Invalid widget: {error}.") from None
    if "\0" in text or "\\u0000" in text or len(text) > MAX_SUBMESSAGE:
        raise Refused("The widget is too long or contains a null byte.")
    return text


def first_submessage(content: str) -> str | None:
    """Return the first submessage's content for a message that begins with `/poll` or `/todo`; None
    for other messages."""
    match = _COMMAND.match(content)
    if match is None:
        return None
    first, *rest = content[match.end() :].split("\n")
    lines = [line for line in (_BULLET.sub("", text.strip()).strip() for text in rest) if line]
    if match[1] == "poll":
        extra: dict[str, Any] = {"question": first.strip(), "options": lines}
    else:
        parts = [line.partition(": ") for line in lines]
        tasks = [{"task": task.strip(), "desc": desc.strip()} for task, _, desc in parts]
        extra = {"task_list_title": first.strip(), "tasks": tasks}
    return msgspec.json.encode({"widget_type": match[1], "extra_data": extra}).decode()


def next_submessage_id(state: State) -> int:
    """Return the ID of the next submessage."""
    counter = state.counters.get(_COUNTER)
    return counter.last + 1 if counter else 1


def add_submessage(
    context: CommandContext,
    message: Message,
    present: Sequence[Submessage],
    holders: tuple[int, ...],
    seq: int,
    kind: str,
    content: str,
) -> Decision[None]:
    """Add a submessage to a message's widget.

    `present` are its submessages, and `holders` the users with a record of a message that wasn't
    delivered to them, as of the entry `seq`. Raise NoSuchMessage, Conflict, and Refused for
    messages without a widget and for submessages that this widget doesn't accept from the actor.
    """
    state, actor = context.state, context.actor
    if not channel_access.reads_message(state, actor, message):
        raise NoSuchMessage
    if state.recent_writes.since(seq, [message.id]):
        raise Conflict
    if kind != WIDGET:
        raise Refused(f"Unknown submessage type '{kind[:50]}'.")
    if not present or present[0].sender_id != message.sender_id:
        raise Refused("This message doesn't have a widget.")
    begun = msgspec.json.decode(present[0].content, type=_Begun)
    if begun.widget_type not in _FORMS:
        raise Refused("This type of widget doesn't accept submessages.")
    if len(content) > MAX_SUBMESSAGE or "\\u0000" in content:
        raise Refused("The submessage is too long or contains a null byte.")
    try:
        done = msgspec.json.decode(content, type=_FORMS[begun.widget_type])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Refused(f"Invalid submessage for a {begun.widget_type} widget: {error}.") from None
    _check_room(context, message, present, seq, len(content.encode()))
    if isinstance(done, _ONLY_AUTHOR) and actor.id != message.sender_id:
        raise Refused("Only the person who sent the message can change its title.")
    submessage = Submessage(
        id=next_submessage_id(state),
        message_id=message.id,
        sender_id=actor.id,
        kind=kind,
        content=content,
    )
    change = SubmessageAdded(submessage=submessage, place=place_of(message), holders=holders)
    return Decision(None, (change,))


def _check_room(
    context: CommandContext, message: Message, present: Sequence[Submessage], seq: int, size: int
) -> None:
    """Raise Refused if `size` more bytes would exceed the limits of the message or the actor."""
    actor_id, of_message = context.actor.id, ("submessages", message.id)
    option_count = sum(
        len(submessage.content.encode())
        for submessage in present
        if submessage.sender_id == actor_id
    )
    everybody = sum(len(submessage.content.encode()) for submessage in present)
    for used, limit, written in (
        (option_count, MAX_SUBMESSAGES_OF_PERSON, (*of_message, actor_id)),
        (everybody, MAX_SUBMESSAGES_OF_MESSAGE, of_message),
    ):
        if used + size > limit:
            whose = (
                "You have"
                if limit == MAX_SUBMESSAGES_OF_PERSON
                else "All participants together have"
            )
            raise Refused(
                f"{whose} reached the limit of {limit // 1000:,} KB for one poll or to-do list."
                " Start a new one."
            )
        if used + MAX_SUBMESSAGES_UNDER_WAY * size > limit and context.state.recent_writes.since(
            seq, [written]
        ):
            raise Conflict
