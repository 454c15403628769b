"""What is done while the demonstration is made, by whom, and at which point of the story.

All of it goes through the log, as if the people had done it. With each step its number is written
down, in the same commit: a start that was cut short goes on with the step after it.
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
from tertulia.demo.cast import PEOPLE, PROGRAMS
from tertulia.demo.script import Calendar, Moved, Said
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
    """Tells the time of the story."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class Stage:
    """Where the demonstration is made."""

    log: Log
    vault: Vault
    files: Files
    host: str
    """Of the bots' addresses."""
    clock: Clock
    calendar: Calendar
    labels: dict[str, Said] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    """Of the messages that have been sent, by `id` of what was said."""
    done: int = 0
    """Steps that are on disk, the present one among them when it is."""

    def __post_init__(self) -> None:
        self._renderer = Renderer(in_place=True)
        self._addresses = {person.name: person.address for person in PEOPLE}
        for program in PROGRAMS:
            self._addresses[program.name] = bots.bot_address(program.name, self.host)

    async def submit(
        self, who: str | None, verb: Verb[T], *arguments: Any, notes: Sequence[Note] = ()
    ) -> T:
        """What the one thing that this step does answers."""
        noted = (FactNoted(STEP, str(self.done + 1)), *notes)
        actor_id = None if who is None else self.user(who).id
        return await self.log.submit(actor_id, verb, *arguments, notes=noted)

    # Who and where

    def user(self, name: str) -> User:
        """The account of somebody by their short name."""
        user = self.log.state.user_with_address(self._addresses[name])
        if user is None:
            raise LookupError(f"{name} is not there yet")
        return user

    def ids_of(self, people: Sequence[str]) -> tuple[int, ...]:
        """Their accounts' IDs."""
        return tuple(self.user(name).id for name in people)

    def channel(self, name: str) -> Channel:
        """The channel of that name."""
        channel = self.log.state.channel_named(name)
        if channel is None:
            raise LookupError(f"{name} is not there yet")
        return channel

    def message(self, said: Said) -> int:
        """The ID of what was said."""
        return self.ids[id(said)]

    def render(self, moment: Moment, text: str) -> Rendered:
        """Markdown to HTML."""
        return self._renderer.render(moment, text)

    def rendered(self, who: str, text: str) -> Rendered:
        """The same as somebody writes it now."""
        return self.render(Moment(self.log.state, self.clock(), self.user(who).id), text)

    # What is said

    def draft(self, said: Said) -> sending.Draft:
        """The message, ready to be sent."""
        content = names.message_content(self.filled(said.who, said.text))
        return sending.Draft(
            to=sending.ToChannel(said.topic, name=said.channel)
            if said.channel
            else sending.ToPeople(frozenset(self.ids_of(said.people))),
            content=content,
            rendered=self.rendered(said.who, content),
            client=CLIENT,
            read_by_sender=True,
        )

    async def say(self, said: Said) -> None:
        """Send it."""
        sent = await self.submit(said.who, user_topics.send, self.draft(said))
        self.ids[id(said)] = sent.message_id

    def filled(self, who: str, text: str) -> str:
        """What somebody writes, with what stands for the placeholders."""

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

    def _reference(self, said: Said, *, quoted: bool) -> str:
        link = f"#**{said.channel}>{said.topic}@{self.message(said)}**"
        if not quoted:
            return link
        author = self.user(said.who)
        text = self.filled(said.who, said.text)
        return f"@_**{author.full_name}|{author.id}** in {link}:\n```quote\n{text}\n```"

    def _address(self, who: str, name: str) -> str:
        own = self.log.state.uploads.of_user[self.user(who).id]
        path = next(file.path for file in own if file.name == name)
        return ADDRESS + path

    async def upload(self, who: str, name: str) -> None:
        """Upload the illustration of that name."""
        uploads = Uploads(self.files)
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
            draft.arriving.is_offered = True
            attachment = await self.submit(who, attachments.add, new, None)
            uploads.settle(attachment.path)
        finally:
            draft.discard()

    # What becomes of it

    async def correct(self, said: Said, text: str) -> None:
        """Its author edits it."""
        found = await preconditions.to_edit(self.log, self.message(said))
        content = names.message_content(self.filled(said.who, text))
        rendered = self.rendered(said.who, content)
        await self.submit(
            said.who, editing.edit, found, sending.Composed(content=content, rendered=rendered)
        )

    async def move(self, said: Said, moved: Moved) -> None:
        """Somebody moves it, alone or with others."""
        found, excerpt = await preconditions.to_move(
            self.log, self.message(said), whole=moved.how != "one", away=True
        )
        wanted = moving.Move(
            topic=moved.topic,
            channel_id=self.channel(moved.channel).id,
            propagation=_EXTENT[moved.how],
            tell_old=moved.how != "all",
        )
        await self.submit(moved.who, moving.move, found, excerpt, wanted, self.render)

    async def react(self, all_of: Sequence[tuple[Said, str, str]]) -> None:
        """People react to messages: what was said, who, with which emoji; nobody twice to the same.
        They do so in one commit, as they are submitted at once."""
        asked = [(self.message(said), self.user(who).id) for said, who, _ in all_of]
        looks = await self._seen(asked)
        await asyncio.gather(
            *(
                self.submit(
                    who, reactions.react, _reacted(seen), reactions.RequestedEmoji(name=emoji)
                )
                for (_, who, emoji), seen in zip(all_of, looks, strict=True)
            )
        )

    async def take_part(self, said: Said, what: str, who: str, value: str) -> None:
        """Somebody does something with a poll or a list of things to do."""
        (seen,) = await self._seen([(self.message(said), self.user(who).id)])
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

    async def _seen(
        self, asked: Sequence[tuple[int, int]]
    ) -> list[message_details.DetailedMessage]:
        """Messages as users have them, by both their IDs."""
        looks = await self.log.store.read(
            lambda c: [
                message_details.detailed_message(c, user_id, message_id)
                for message_id, user_id in asked
            ]
        )
        return [seen for seen in looks if seen is not None]


def _reacted(seen: message_details.DetailedMessage) -> reactions.Reacted:
    return reactions.Reacted(
        seq=seen.head,
        message=seen.message,
        flags=seen.relation.flags,
        reactions=seen.details.reactions,
        holders=seen.holders,
    )


def _submission(what: str, value: str, number: int) -> str:
    """What somebody does with a widget, as clients write it. `number` is one that nothing in the
    widget has."""
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
