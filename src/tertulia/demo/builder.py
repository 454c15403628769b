"""Submits the commands that create the demonstration, each as the person who does it.

Each step is one commit, which also stores the step's number: after an interruption the next start
goes on with the step after it.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from tertulia import pictures
from tertulia.demo import illustrations
from tertulia.demo.people import PEOPLE, PROGRAMS
from tertulia.demo.script import Calendar, Moved, ScriptedMessage
from tertulia.domain import names
from tertulia.domain.accounts import bots
from tertulia.domain.channels import user_topics
from tertulia.domain.messages import attachments, editing, moving, reactions, sending, widgets
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.model.attachments import ADDRESS, Picture
from tertulia.model.channels import Channel
from tertulia.model.messages import Propagation, Rendered
from tertulia.model.users import User
from tertulia.service.messages import preconditions
from tertulia.service.vault import Vault
from tertulia.state.moment import Moment, Verb
from tertulia.store import message_details
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.uploads import Uploads
from tertulia.store.writing import FactNoted, Note

T = TypeVar("T")

CLIENT: Final = "Tertulia demonstration"
STEP: Final = "demo_step"
_PLACEHOLDER: Final = re.compile(r"\{(link|quote|file|time|day):([^{}\n]+)\}")
_EXTENT: Final = {
    "one": Propagation.ONE,
    "later": Propagation.LATER,
    "all": Propagation.ALL,
}


class Clock:
    """The clock while the demonstration is created: it is set to the time of each step."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class Builder:
    """Submits commands for people by their short names, and knows which messages were sent."""

    log: Log
    vault: Vault
    files: Files
    disk: DiskFiles
    host: str
    """The host in the addresses of bots."""
    clock: Clock
    calendar: Calendar
    labels: dict[str, ScriptedMessage] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    """IDs of the messages that were sent, by `id()` of the scripted message."""
    done: int = 0
    """Steps that are committed."""

    def __post_init__(self) -> None:
        self._renderer = Renderer(in_place=True)
        self._addresses = {person.name: person.address for person in PEOPLE}
        for program in PROGRAMS:
            self._addresses[program.name] = bots.bot_address(program.name, self.host)

    async def submit(
        self, who: str | None, verb: Verb[T], *arguments: Any, notes: Sequence[Note] = ()
    ) -> T:
        """Submit the command of this step, with the step's number. Returns its result."""
        noted = (FactNoted(STEP, str(self.done + 1)), *notes)
        actor_id = None if who is None else self.user(who).id
        return await self.log.submit(actor_id, verb, *arguments, notes=noted)

    # People and channels

    def user(self, name: str) -> User:
        """The account with that short name."""
        user = self.log.state.user_with_address(self._addresses[name])
        if user is None:
            raise LookupError(f"{name} is not there yet")
        return user

    def ids_of(self, people: Sequence[str]) -> tuple[int, ...]:
        """The IDs of the accounts with these short names."""
        return tuple(self.user(name).id for name in people)

    def channel(self, name: str) -> Channel:
        """The channel of that name."""
        channel = self.log.state.channel_named(name)
        if channel is None:
            raise LookupError(f"{name} is not there yet")
        return channel

    def message_id(self, scripted: ScriptedMessage) -> int:
        """The ID of the message, which was sent."""
        return self.ids[id(scripted)]

    def render(self, moment: Moment, text: str) -> Rendered:
        """Markdown to HTML."""
        return self._renderer.render(moment, text)

    def rendered(self, who: str, text: str) -> Rendered:
        """Markdown to HTML, written by that person now."""
        return self.render(Moment(self.log.state, self.clock(), self.user(who).id), text)

    # Messages

    def draft(self, scripted: ScriptedMessage) -> sending.Draft:
        """The draft that sends the message."""
        content = names.message_content(self.filled(scripted.who, scripted.text))
        return sending.Draft(
            to=sending.ToChannel(scripted.topic, name=scripted.channel)
            if scripted.channel
            else sending.ToPeople(frozenset(self.ids_of(scripted.people))),
            content=content,
            rendered=self.rendered(scripted.who, content),
            client=CLIENT,
            read_by_sender=True,
        )

    async def send(self, scripted: ScriptedMessage) -> None:
        """Send the message."""
        sent = await self.submit(scripted.who, user_topics.send, self.draft(scripted))
        self.ids[id(scripted)] = sent.message_id

    def filled(self, who: str, text: str) -> str:
        """The person's text, with its placeholders replaced."""

        def value(match: re.Match[str]) -> str:
            kind, what = match[1], match[2]
            match kind:
                case "file":
                    return f"[{what}]({self._address(who, what)})"
                case "time":
                    moment = datetime.fromtimestamp(self.calendar.time(what), UTC)
                    return f"<time:{moment.isoformat()}>"
                case "day":
                    return self.calendar.weekday(int(what))
                case _:
                    return self._reference(self.labels[what], quoted=kind == "quote")

        return _PLACEHOLDER.sub(value, text)

    def _reference(self, scripted: ScriptedMessage, *, quoted: bool) -> str:
        link = f"#**{scripted.channel}>{scripted.topic}@{self.message_id(scripted)}**"
        if not quoted:
            return link
        author = self.user(scripted.who)
        text = self.filled(scripted.who, scripted.text)
        return f"@_**{author.full_name}|{author.id}** in {link}:\n```quote\n{text}\n```"

    def _address(self, who: str, name: str) -> str:
        own = self.log.state.uploads.of_user[self.user(who).id]
        path = next(file.path for file in own if file.name == name)
        return ADDRESS + path

    async def upload(self, who: str, name: str) -> None:
        """Upload the illustration of that name."""
        uploads = Uploads(self.files, self.disk)
        draft = uploads.begin()
        try:
            draft.file.write(illustrations.drawn(name))
            size = draft.finish()
            picture = None
            if name.endswith(".png"):
                found = await pictures.described(draft.arriving.place)
                picture = Picture(width=found.width, height=found.height)
            new = attachments.NewFile(
                key=draft.arriving.key, name=name, media_type="", size=size, picture=picture
            )
            await uploads.offer(draft.arriving, attachments.path_of(self.log.state, new))
            attachment = await self.submit(who, attachments.add, new, None)
            await uploads.settle(attachment.path)
        finally:
            draft.discard()

    # What happens to messages

    async def correct(self, scripted: ScriptedMessage, text: str) -> None:
        """Have its author edit the message."""
        found = await preconditions.to_edit(self.log, self.message_id(scripted))
        content = names.message_content(self.filled(scripted.who, text))
        rendered = self.rendered(scripted.who, content)
        await self.submit(
            scripted.who, editing.edit, found, sending.Composed(content=content, rendered=rendered)
        )

    async def move(self, scripted: ScriptedMessage, moved: Moved) -> None:
        """Move the message, alone or with others of its topic."""
        wanted = moving.Move(
            topic=moved.topic,
            channel_id=self.channel(moved.channel).id,
            propagation=_EXTENT[moved.how],
            tell_old=moved.how != "all",
        )
        found, excerpt = await preconditions.to_move(
            self.log, self.user(moved.who).id, self.message_id(scripted), wanted
        )
        await self.submit(moved.who, moving.move, found, excerpt, wanted, self.render)

    async def react(self, reactions_made: Sequence[tuple[ScriptedMessage, str, str]]) -> None:
        """Add reactions: message, person and emoji. Nobody reacts twice to the same message. They
        are submitted at once, and so are one commit."""
        asked = [
            (self.message_id(scripted), self.user(who).id) for scripted, who, _ in reactions_made
        ]
        found = await self._detailed(asked)
        await asyncio.gather(
            *(
                self.submit(
                    who, reactions.react, _reacted(seen), reactions.RequestedEmoji(name=emoji)
                )
                for (_, who, emoji), seen in zip(reactions_made, found, strict=True)
            )
        )

    async def use_widget(self, scripted: ScriptedMessage, what: str, who: str, value: str) -> None:
        """Have somebody use a poll or a to-do list."""
        (seen,) = await self._detailed([(self.message_id(scripted), self.user(who).id)])
        await self.submit(
            who,
            widgets.submit,
            seen.message,
            seen.details.submessages,
            seen.holders,
            seen.head,
            widgets.WIDGET,
            _submission(what, value, len(seen.details.submessages)),
        )

    async def _detailed(
        self, asked: Sequence[tuple[int, int]]
    ) -> list[message_details.DetailedMessage]:
        """Messages with their details, by pairs of message ID and user ID."""
        found = await self.log.store.read(
            lambda c: [
                message_details.detailed_message(c, user_id, message_id)
                for message_id, user_id in asked
            ]
        )
        return [seen for seen in found if seen is not None]


def _reacted(seen: message_details.DetailedMessage) -> reactions.ReactedMessage:
    return reactions.ReactedMessage(
        seq=seen.head,
        message=seen.message,
        flags=seen.relation.flags,
        reactions=seen.details.reactions,
        holders=seen.holders,
    )


def _submission(what: str, value: str, number: int) -> str:
    """The content of the submessage for an action. `number` is not used in the widget yet."""
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
            raise ValueError(f"nobody can {what}")
    return msgspec.json.encode(done).decode()
