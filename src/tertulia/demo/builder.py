"""Submitting the commands that create the demo, each on behalf of the person who acts.

A step is one commit, which also stores the step's number. After an interruption, the next start
continues with the step after it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tertulia.demo.story import Cafe, Calendar, ScriptedMessage, ScriptedMove, picture
from tertulia.domain import names
from tertulia.domain.accounts import bots
from tertulia.domain.messages import attachments, editing, moving, reactions, sending, widgets
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.model.attachments import ADDRESS, ImageInfo
from tertulia.model.channels import Channel
from tertulia.model.messages import Propagation, Rendered
from tertulia.model.users import User
from tertulia.service.credentials import Vault
from tertulia.service.messages import preconditions
from tertulia.state.decision import CommandContext, Verb
from tertulia.store import message_details
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.notes import FactSet, Note
from tertulia.store.uploads import UploadStore

T = TypeVar("T")

CLIENT: Final = "Tertulia demonstration"
STEP: Final = "demo_step"
GENERAL: Final = "general"
_WIDGET_PAUSE: Final = 47
"""Seconds until the first vote, and between votes."""
_CORRECTION_PAUSE: Final = 80
"""Seconds between a message and its edit."""
_PLACEHOLDER: Final = re.compile(r"\{(link|quote|file|time|day):([^{}\n]+)\}")


class Clock:
    """A clock that is set to the time of each step."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class DemoStep(Struct, frozen=True):
    """A commit, and its time in the story."""

    at: float
    act: Callable[[], Awaitable[object]]


@dataclass(kw_only=True)
class Builder:
    """Submits the commands of steps. People and channels are identified by name."""

    cafe: Cafe
    log: Log
    vault: Vault
    files: Files
    disk: DiskFiles
    host: str
    """The host in the addresses of bots."""
    clock: Clock
    calendar: Calendar
    password: str
    labels: dict[str, ScriptedMessage] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    """IDs of sent messages, by the `id()` of the scripted message."""
    done: int = 0
    """The number of committed steps."""

    def __post_init__(self) -> None:
        self._renderer = Renderer(in_place=True)
        self.owner = self.cafe.owner.name
        self._addresses = {person.name: self.cafe.address(person) for person in self.cafe.people}
        for bot in self.cafe.bots:
            self._addresses[bot["name"]] = bots.bot_address(bot["name"], self.host)

    async def submit(
        self, who: str | None, verb: Verb[T], *arguments: Any, notes: Sequence[Note] = ()
    ) -> T:
        """Submit this step's command, with the step's number. Return its result."""
        noted = (FactSet(STEP, str(self.done + 1)), *notes)
        actor_id = None if who is None else self.user(who).id
        return await self.log.submit(actor_id, verb, *arguments, notes=noted)

    def user(self, name: str) -> User:
        user = self.log.state.user_with_address(self._addresses[name])
        if user is None:
            raise LookupError(f"{name} doesn't exist yet")
        return user

    def ids_of(self, people: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.user(name).id for name in people)

    def channel(self, name: str) -> Channel:
        channel = self.log.state.channel_named(name)
        if channel is None:
            raise LookupError(f"{name} doesn't exist yet")
        return channel

    def render(self, context: CommandContext, text: str) -> Rendered:
        return self._renderer.render(context, text)

    def rendered(self, who: str, text: str) -> Rendered:
        """Render Markdown as a text that this person writes now."""
        return self.render(CommandContext(self.log.state, self.clock(), self.user(who).id), text)

    # Messages

    def message_steps(self, scripted: ScriptedMessage) -> Iterator[DemoStep]:
        """Send the message and its files, then edit it, use its widget, and move it."""
        for name in scripted.files:
            yield DemoStep(scripted.at - 1, partial(self._upload, scripted.who, name))
        yield DemoStep(scripted.at, partial(self._send, scripted))
        text = scripted.text
        for n, (before, after) in enumerate(scripted.corrections, 1):
            text = text.replace(before, after)
            at = scripted.at + _CORRECTION_PAUSE * n
            yield DemoStep(at, partial(self._correct, scripted, text))
        for n, action in enumerate(scripted.widget_actions, 1):
            at = scripted.at + _WIDGET_PAUSE * n
            yield DemoStep(at, partial(self._use_widget, scripted, *action))
        for move in scripted.moves:
            yield DemoStep(move.at, partial(self._move, scripted, move))

    async def _send(self, scripted: ScriptedMessage) -> None:
        content = names.message_content(self._filled(scripted.who, scripted.text))
        talk = scripted.talk
        draft = self.draft(scripted.who, content, talk.channel, talk.topic, talk.people)
        sent = await self.submit(scripted.who, sending.send, draft)
        self.ids[id(scripted)] = sent.message_id

    def draft(
        self, who: str, content: str, channel: str, topic: str, people: Sequence[str] = ()
    ) -> sending.MessageDraft:
        return sending.MessageDraft(
            to=sending.ToChannel(topic, name=channel)
            if channel
            else sending.ToPeople(frozenset(self.ids_of(people))),
            content=content,
            rendered=self.rendered(who, content),
            client=CLIENT,
            read_by_sender=True,
        )

    def _filled(self, who: str, text: str) -> str:
        """Return the person's text with its placeholders filled in."""

        def value(match: re.Match[str]) -> str:
            kind, what = match[1], match[2]
            match kind:
                case "file":
                    attachments = self.log.state.uploads.of_user[self.user(who).id]
                    path = next(file.path for file in attachments if file.name == what)
                    return f"[{what}]({ADDRESS}{path})"
                case "time":
                    at = datetime.fromtimestamp(self.calendar.time(what), UTC)
                    return f"<time:{at.isoformat()}>"
                case "day":
                    return self.calendar.weekday(int(what))
                case _:
                    return self._reference(self.labels[what], quoted=kind == "quote")

        return _PLACEHOLDER.sub(value, text)

    def _reference(self, scripted: ScriptedMessage, *, quoted: bool) -> str:
        talk = scripted.talk
        link = f"#**{talk.channel}>{talk.topic}@{self.ids[id(scripted)]}**"
        if not quoted:
            return link
        author = self.user(scripted.who)
        text = self._filled(scripted.who, scripted.text)
        return f"@_**{author.full_name}|{author.id}** in {link}:\n```quote\n{text}\n```"

    async def _upload(self, who: str, name: str) -> None:
        content = picture(f"files/{name}") or b""
        uploads = UploadStore(self.files, self.disk)
        draft = uploads.begin()
        try:
            draft.file.write(content)
            size = draft.finish()
            new = attachments.NewFile(
                key=draft.arriving.key,
                name=name,
                media_type="",
                size=size,
                picture=_png_size(content) if name.endswith(".png") else None,
            )
            await uploads.offer(draft.arriving, attachments.path_of(self.log.state, new))
            attachment = await self.submit(who, attachments.add, new, None)
            await uploads.settle(attachment.path)
        finally:
            draft.discard()

    async def _correct(self, scripted: ScriptedMessage, text: str) -> None:
        loaded = await preconditions.to_edit(self.log, self.ids[id(scripted)])
        content = names.message_content(self._filled(scripted.who, text))
        rendered = self.rendered(scripted.who, content)
        composed = sending.ComposedMessage(content=content, rendered=rendered)
        await self.submit(scripted.who, editing.edit, loaded, composed)

    async def _move(self, scripted: ScriptedMessage, move: ScriptedMove) -> None:
        wanted = moving.Move(
            topic=move.topic,
            channel_id=self.channel(move.channel).id,
            propagation=Propagation[move.how.upper()],
            tell_old=move.how != "all",
        )
        loaded, excerpt = await preconditions.to_move(
            self.log, self.user(move.who), self.ids[id(scripted)], wanted
        )
        await self.submit(move.who, moving.move, loaded, excerpt, wanted, self.render)

    async def _use_widget(self, scripted: ScriptedMessage, what: str, who: str, value: str) -> None:
        (seen,) = await self._detailed([(self.ids[id(scripted)], self.user(who).id)])
        done = seen.details.submessages
        content = _submission(what, value, len(done))
        precondition = (seen.message, done, seen.holders, seen.head)
        await self.submit(who, widgets.add_submessage, *precondition, widgets.WIDGET, content)

    async def react(self, added: "Sequence[Reaction]") -> None:
        """Add reactions. All reactions that are submitted together are one commit."""
        asked = [(self.ids[id(scripted)], self.user(who).id) for scripted, who, _ in added]
        detailed = await self._detailed(asked)
        await asyncio.gather(
            *(
                self.submit(
                    who, reactions.react, _reacted(seen), reactions.RequestedEmoji(name=name)
                )
                for (_, who, name), seen in zip(added, detailed, strict=True)
            )
        )

    async def _detailed(
        self, asked: Sequence[tuple[int, int]]
    ) -> list[message_details.DetailedMessage]:
        """Return messages with their details, for pairs of message ID and user ID."""
        results = await self.log.store.read(
            lambda c: [
                message_details.detailed_message(c, user_id, message_id)
                for message_id, user_id in asked
            ]
        )
        return [seen for seen in results if seen is not None]


Reaction = tuple[ScriptedMessage, str, str]
"""A message, a person, and an emoji's name."""


def _png_size(content: bytes) -> ImageInfo:
    """Read the size from a PNG's header."""
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    return ImageInfo(width=width, height=height)


def _reacted(seen: message_details.DetailedMessage) -> reactions.ReactedMessage:
    return reactions.ReactedMessage(
        seq=seen.head,
        message=seen.message,
        flags=seen.relation.flags,
        reactions=seen.details.reactions,
        holders=seen.holders,
    )


def _submission(what: str, value: str, number: int) -> str:
    """Return a submessage for an action in a widget. `number` is one that the widget doesn't use
    yet."""
    match what:
        case "vote":
            done: dict[str, Any] = {"type": "vote", "key": f"canned,{value}", "vote": 1}
        case "option":
            done = {"type": "new_option", "option": value, "idx": number}
        case "strike":
            done = {"type": "strike", "key": f"canned,{value}"}
        case "task":
            task, _, more = value.partition(": ")
            done = {"type": "new_task", "key": number, "task": task, "desc": more}
            done["completed"] = False
        case _:
            raise ValueError(f"a widget has no action {what!r}")
    return msgspec.json.encode(done).decode()
