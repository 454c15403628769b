"""Creates the demo, one commit per step, each on behalf of the person who does it.

A step's commit also stores the step's number: after an interruption, the next start continues with
the step after it.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from datetime import time as clock_time
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tertulia.demo.story import (
    Cafe,
    Calendar,
    Conversation,
    Entry,
    Person,
    PlannedChannel,
    ScriptedMessage,
    ScriptedMove,
    conversations,
    picture,
)
from tertulia.domain import names
from tertulia.domain.accounts import (
    alert_words,
    avatars,
    bots,
    personal_settings,
    profile_fields,
    profiles,
    statuses,
    users,
)
from tertulia.domain.channels import channels, folders, subscriptions, user_topics
from tertulia.domain.groups import groups
from tertulia.domain.messages import (
    attachments,
    drafts,
    editing,
    flags,
    moving,
    reactions,
    reminders,
    scheduled,
    sending,
    snippets,
    widgets,
)
from tertulia.domain.organization import emoji, settings
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.model.attachments import ADDRESS, Picture
from tertulia.model.channels import Channel
from tertulia.model.drafts import DraftKind
from tertulia.model.groups import Members
from tertulia.model.messages import Flag, Propagation, Rendered
from tertulia.model.profiles import FieldKind
from tertulia.model.user_topics import Visibility
from tertulia.model.users import BotKind, Role, User
from tertulia.service.files import avatars as avatar_files
from tertulia.service.files import custom_emoji as emoji_files
from tertulia.service.messages import preconditions
from tertulia.service.vault import Vault
from tertulia.state.moment import Decision, Moment, Verb
from tertulia.store import message_details, queries
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.uploads import Uploads
from tertulia.store.writing import FactNoted, Note, PresenceSeen

T = TypeVar("T")

CLIENT: Final = "Tertulia demonstration"
STEP: Final = "demo_step"
GENERAL: Final = "general"
RECENT: Final = 3 * 3600
"""Messages older than this many seconds are read, unless the story says otherwise."""
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


class Step(Struct, frozen=True):
    """A commit, and when it happens in the story."""

    at: float
    act: Callable[[], Awaitable[object]]


@dataclass(kw_only=True)
class Builder:
    """Plans the steps and submits their commands. People and channels go by their names."""

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
    """IDs of sent messages, by `id()` of the scripted message."""
    done: int = 0
    """Steps that are committed."""

    def __post_init__(self) -> None:
        self._renderer = Renderer(in_place=True)
        self._owner = self.cafe.owner.name
        self._addresses = {one.name: self.cafe.address(one) for one in self.cafe.people}
        for bot in self.cafe.bots:
            self._addresses[bot["name"]] = bots.bot_address(bot["name"], self.host)

    async def build(self) -> None:
        """Do the steps that weren't done before. The organization has been founded."""
        talks = list(conversations(self.calendar))
        messages = sorted((one for talk in talks for one in talk.messages), key=lambda one: one.at)
        self.labels = {one.label: one for one in messages if one.label}
        await self._restore_message_ids(messages)
        end = self.calendar.end
        planned = chain(
            self._setup_steps(),
            *map(self._message_steps, messages),
            (Step(at, partial(self._react, added)) for at, added in reactions_by_day(messages)),
        )
        # Steps that follow the last messages would be in the future otherwise.
        steps = [Step(min(step.at, end - 5), step.act) for step in planned]
        steps.sort(key=lambda step: step.at)
        steps += [Step(end - 2, act) for act in self._final_acts(talks)]
        for number, step in enumerate(steps):
            if number < self.done:
                continue
            self.clock.now = step.at
            await step.act()
            self.done = number + 1

    async def _restore_message_ids(self, messages: Sequence[ScriptedMessage]) -> None:
        """Restore the IDs of messages that were sent before an interruption, in the same order."""
        rows = await self.log.store.read(
            lambda c: c.query("SELECT id FROM messages WHERE client = ? ORDER BY id", (CLIENT,))
        )
        for one, (message_id,) in zip(messages, rows, strict=False):
            self.ids[id(one)] = message_id

    async def submit(
        self, who: str | None, verb: Verb[T], *arguments: Any, notes: Sequence[Note] = ()
    ) -> T:
        """Submit the command of this step, with the step's number. Return its result."""
        noted = (FactNoted(STEP, str(self.done + 1)), *notes)
        actor_id = None if who is None else self._user(who).id
        return await self.log.submit(actor_id, verb, *arguments, notes=noted)

    def _user(self, name: str) -> User:
        user = self.log.state.user_with_address(self._addresses[name])
        if user is None:
            raise LookupError(f"{name} doesn't exist yet")
        return user

    def _ids(self, people: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._user(name).id for name in people)

    def _channel(self, name: str) -> Channel:
        channel = self.log.state.channel_named(name)
        if channel is None:
            raise LookupError(f"{name} doesn't exist yet")
        return channel

    def _render(self, moment: Moment, text: str) -> Rendered:
        return self._renderer.render(moment, text)

    def _rendered(self, who: str, text: str) -> Rendered:
        """Render Markdown that this person writes now."""
        return self._render(Moment(self.log.state, self.clock(), self._user(who).id), text)

    # Setup

    def _setup_steps(self) -> Iterator[Step]:
        cafe, time = self.cafe, self.calendar.time
        begin = time(cafe.founded)

        def at(act: Callable[..., Awaitable[object]], *arguments: Any, when: str = "") -> Step:
            return Step(time(when) if when else begin, partial(act, *arguments))

        for person in cafe.people:
            if person.name != self._owner:
                yield at(self._create_user, person, when=person.joins)
        yield from (at(self._create_bot, bot) for bot in cafe.bots)
        yield at(self._describe_organization)
        yield at(self.submit, self._owner, alert_words.add, cafe.alert_words)
        for one in cafe.fields:
            kind = FieldKind[one.get("kind", "short_text").upper()]
            in_summary = one.get("in_summary", False)
            new = profile_fields.Revision(name=one["name"], hint=one["hint"], in_summary=in_summary)
            yield at(self.submit, self._owner, profile_fields.create, kind, new)
        for person in cafe.people:
            yield from (at(act, when=person.joins) for act in self._personal_acts(person))
        yield from (at(self._add_emoji, name) for name in cafe.emoji)
        for folder in cafe.folders:
            arguments = (folder["name"], folder["description"], self._render)
            yield at(self.submit, self._owner, folders.create, *arguments)
        for channel in cafe.channels:
            yield at(self._create_channel, channel, when=channel.created)
            if channel.archived:
                yield at(self._archive, channel.name, when=channel.archived)
        newcomers = [person for person in cafe.people if person.joins]
        for group in cafe.groups:
            yield at(self._create_group, group, when=newcomers[-1].joins)
        for person in newcomers:
            yield at(self._subscribe_newcomer, person, when=person.joins)
        for person in cafe.people:
            if person.leaves:
                yield at(self._deactivate, person.name, when=person.leaves)

    async def _create_user(self, person: Person) -> None:
        new = users.NewUser(
            address=self.cafe.address(person),
            full_name=person.full_name,
            role=Role[person.role.upper()],
            credential=await self.vault.credential(0, self.password),
        )
        await self.submit(None, users.create, new)

    async def _create_bot(self, bot: Entry) -> None:
        new = bots.NewBot(
            full_name=bot["full_name"],
            short_name=bot["name"],
            kind=BotKind.GENERIC,
            host=self.host,
            credential=await self.vault.credential(0, None),
            avatar_file=await self._keep_portrait(bot["name"]),
        )
        await self.submit(self._owner, bots.create, new)

    async def _keep_portrait(self, name: str) -> str:
        """Store the small and the large picture of an account, if there are any."""
        small, large = picture(f"people/{name}-100.png"), picture(f"people/{name}-500.png")
        return "" if not small or not large else await avatar_files.keep(self.files, small, large)

    async def _describe_organization(self) -> None:
        values = {
            "description": self.cafe.description,
            "new_channel_announcements_channel_id": self._channel(GENERAL).id,
        }
        edit = settings.Edit(values=values)
        await self.submit(self._owner, settings.change, edit, self._render)

    def _personal_acts(self, person: Person) -> Iterator[Callable[[], Awaitable[object]]]:
        if picture(f"people/{person.name}-100.png"):
            yield partial(self._set_avatar, person.name)
        # Visitors are mostly elsewhere, and shouldn't be asked about it for each account.
        revision = personal_settings.Revision(
            timezone=person.timezone, settings={"web_suggest_update_timezone": False}
        )
        yield partial(self.submit, person.name, personal_settings.change, revision)
        if person.profile:
            yield partial(self._set_profile, person)
        if person.status:
            emoji_name, text = person.status
            status = statuses.NewStatus(text=text, emoji_name=emoji_name)
            yield partial(self.submit, person.name, statuses.change_own, status)

    async def _set_avatar(self, name: str) -> None:
        await self.submit(name, avatars.change_own, await self._keep_portrait(name))

    async def _set_profile(self, person: Person) -> None:
        ids = {one.name: one.id for one in self.log.state.profile_fields}
        pairs = zip(self.cafe.fields, person.profile, strict=True)
        values = tuple((ids[one["name"]], text) for one, text in pairs if text)
        new = profiles.NewProfile(values=values, render=self._render)
        await self.submit(person.name, profiles.change_own, new)

    async def _add_emoji(self, name: str) -> None:
        content = picture(f"emoji/{name}.png") or b""
        new = emoji.NewEmoji(name=name, file=await emoji_files.keep(self.files, content, "png"))
        await self.submit(self._owner, emoji.add, new)

    async def _create_channel(self, planned: PlannedChannel) -> None:
        folder = next(
            (one.id for one in self.log.state.folders if one.name == planned.folder), None
        )
        new = channels.NewChannel(
            name=planned.name,
            description=names.channel_description(planned.description),
            rendered_description=self._rendered(self._owner, planned.description).html,
            is_private=planned.is_private,
            folder_id=folder,
        )
        now = self.clock()
        absent = {
            one.name
            for one in self.cafe.people
            if (one.joins and self.calendar.time(one.joins) > now)
            or (one.leaves and self.calendar.time(one.leaves) < now)
        }
        members = planned.members or [person.name for person in self.cafe.people]
        await self._subscribe((new,), [one for one in members if one not in absent], planned)

    async def _subscribe_newcomer(self, person: Person) -> None:
        """Subscribe someone who joins later to their channels that exist."""
        existing = tuple(
            channels.NewChannel(name=planned.name)
            for planned in self.cafe.channels
            if (not planned.members or person.name in planned.members)
            and not planned.archived
            and self.log.state.channel_named(planned.name) is not None
        )
        await self._subscribe(existing, [person.name])

    async def _subscribe(
        self,
        wanted: tuple[channels.NewChannel, ...],
        people: Sequence[str],
        planned: PlannedChannel | None = None,
    ) -> None:
        request = subscriptions.SubscribeRequest(
            channels=wanted,
            principals=self._ids(people),
            notify_subscribed=planned is None,
            announce=planned is not None and planned.announced,
        )
        await self.submit(self._owner, subscriptions.subscribe, request, self._render)

    async def _archive(self, name: str) -> None:
        await self.submit(self._owner, channels.archive, self._channel(name).id)

    async def _create_group(self, group: Entry) -> None:
        new = groups.NewGroup(
            name=group["name"],
            description=group["description"],
            members=self._ids(group["members"]),
            settings={"can_manage_group": Members(self._ids([self._owner]), ())},
        )
        await self.submit(self._owner, groups.create, new)

    async def _deactivate(self, name: str) -> None:
        await self.submit(self._owner, users.deactivate, self._user(name).id)

    # Messages

    def _message_steps(self, scripted: ScriptedMessage) -> Iterator[Step]:
        """Send the message and its files, then edit it, use its widget, and move it."""
        for name in scripted.files:
            yield Step(scripted.at - 1, partial(self._upload, scripted.who, name))
        yield Step(scripted.at, partial(self._send, scripted))
        text = scripted.text
        for n, (before, after) in enumerate(scripted.corrections, 1):
            text = text.replace(before, after)
            at = scripted.at + _CORRECTION_PAUSE * n
            yield Step(at, partial(self._correct, scripted, text))
        for n, action in enumerate(scripted.widget_actions, 1):
            at = scripted.at + _WIDGET_PAUSE * n
            yield Step(at, partial(self._use_widget, scripted, *action))
        for move in scripted.moves:
            yield Step(move.at, partial(self._move, scripted, move))

    async def _send(self, scripted: ScriptedMessage) -> None:
        content = names.message_content(self._filled(scripted.who, scripted.text))
        talk = scripted.talk
        draft = self._draft(scripted.who, content, talk.channel, talk.topic, talk.people)
        sent = await self.submit(scripted.who, user_topics.send, draft)
        self.ids[id(scripted)] = sent.message_id

    def _draft(
        self, who: str, content: str, channel: str, topic: str, people: Sequence[str] = ()
    ) -> sending.Draft:
        return sending.Draft(
            to=sending.ToChannel(topic, name=channel)
            if channel
            else sending.ToPeople(frozenset(self._ids(people))),
            content=content,
            rendered=self._rendered(who, content),
            client=CLIENT,
            read_by_sender=True,
        )

    def _filled(self, who: str, text: str) -> str:
        """The person's text, with its placeholders replaced."""

        def value(match: re.Match[str]) -> str:
            kind, what = match[1], match[2]
            match kind:
                case "file":
                    own = self.log.state.uploads.of_user[self._user(who).id]
                    path = next(file.path for file in own if file.name == what)
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
        author = self._user(scripted.who)
        text = self._filled(scripted.who, scripted.text)
        return f"@_**{author.full_name}|{author.id}** in {link}:\n```quote\n{text}\n```"

    async def _upload(self, who: str, name: str) -> None:
        content = picture(f"files/{name}") or b""
        uploads = Uploads(self.files, self.disk)
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
        found = await preconditions.to_edit(self.log, self.ids[id(scripted)])
        content = names.message_content(self._filled(scripted.who, text))
        rendered = self._rendered(scripted.who, content)
        composed = sending.Composed(content=content, rendered=rendered)
        await self.submit(scripted.who, editing.edit, found, composed)

    async def _move(self, scripted: ScriptedMessage, move: ScriptedMove) -> None:
        wanted = moving.Move(
            topic=move.topic,
            channel_id=self._channel(move.channel).id,
            propagation=Propagation[move.how.upper()],
            tell_old=move.how != "all",
        )
        found, excerpt = await preconditions.to_move(
            self.log, self._user(move.who).id, self.ids[id(scripted)], wanted
        )
        await self.submit(move.who, moving.move, found, excerpt, wanted, self._render)

    async def _use_widget(self, scripted: ScriptedMessage, what: str, who: str, value: str) -> None:
        (seen,) = await self._detailed([(self.ids[id(scripted)], self._user(who).id)])
        done = seen.details.submessages
        content = _submission(what, value, len(done))
        precondition = (seen.message, done, seen.holders, seen.head)
        await self.submit(who, widgets.submit, *precondition, widgets.WIDGET, content)

    async def _react(self, added: "Sequence[Reaction]") -> None:
        """Add reactions. Submitted together, they are one commit."""
        asked = [(self.ids[id(scripted)], self._user(who).id) for scripted, who, _ in added]
        found = await self._detailed(asked)
        await asyncio.gather(
            *(
                self.submit(
                    who, reactions.react, _reacted(seen), reactions.RequestedEmoji(name=name)
                )
                for (_, who, name), seen in zip(added, found, strict=True)
            )
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

    # What people have set up for themselves, and what they have read

    def _final_acts(
        self, talks: Sequence[Conversation]
    ) -> Iterator[Callable[[], Awaitable[object]]]:
        cafe = self.cafe
        for name, marked in (("pin_to_top", cafe.pinned), ("is_muted", cafe.muted)):
            for one in marked:
                yield partial(self._set_property, one["who"], one["channel"], name)
        for talk in talks:
            for people, visibility in (
                (talk.followed, Visibility.FOLLOWED),
                (talk.muted, Visibility.MUTED),
            ):
                for who in people:
                    yield partial(self._set_visibility, who, talk, visibility)
        for talk in talks:
            for scripted in talk.messages:
                for who in scripted.stars:
                    yield partial(self._star, who, scripted)
        for snippet in cafe.snippets:
            arguments = (snippets.create, snippet["title"], snippet["content"])
            yield partial(self.submit, self._owner, *arguments)
        for writing in cafe.drafts:
            yield partial(self._save_draft, writing)
        yield self._schedule
        yield self._remind
        for person in cafe.people:
            if not person.leaves:
                yield partial(self._read, person, talks)

    async def _set_property(self, who: str, channel: str, name: str) -> None:
        channel_id = self._channel(channel).id
        given = subscriptions.Property(channel_id=channel_id, name=name, value=True)
        await self.submit(who, subscriptions.set_properties, [given])

    async def _set_visibility(self, who: str, talk: Conversation, visibility: Visibility) -> None:
        channel_id = self._channel(talk.channel).id
        await self.submit(who, user_topics.set_visibility, channel_id, talk.topic, visibility)

    async def _star(self, who: str, scripted: ScriptedMessage) -> None:
        message_id, user_id = self.ids[id(scripted)], self._user(who).id
        (message,), relations = await self.log.store.read(
            lambda c: (
                queries.messages(c, [message_id]),
                queries.relations(c, user_id, [message_id]),
            )
        )
        known = flags.KnownMessage(
            message=message, flags=relations[message_id].flags, is_read=False, is_mentioned=False
        )
        await self.submit(who, flags.change, [known], Flag.STARRED, True)

    async def _save_draft(self, writing: Entry) -> None:
        new = drafts.Writing(
            kind=DraftKind.CHANNEL,
            to=(self._channel(writing["channel"]).id,),
            topic=writing["topic"],
            content=writing["content"],
        )
        await self.submit(writing["who"], drafts.create, [new])

    async def _schedule(self) -> None:
        one = self.cafe.scheduled
        draft = self._draft(one["who"], one["content"], one["channel"], one["topic"])
        at = int(self.calendar.time(one["at"]))
        await self.submit(one["who"], scheduled.schedule, draft, at)

    async def _remind(self) -> None:
        one = self.cafe.reminder
        message_id = self.ids[id(self.labels[one["label"]])]
        (message,) = await self.log.store.read(queries.messages, [message_id])
        at = int(self.calendar.time(one["at"]))
        arguments = (self._render, message_id, message, at, one["note"])
        await self.submit(one["who"], reminders.set_reminder, *arguments)

    async def _read(self, person: Person, talks: Sequence[Conversation]) -> None:
        """Mark messages as read, and set when the person was last online."""
        kept = {
            self.ids[id(scripted)] for talk in talks for scripted in self._unread(talk, person.name)
        }
        user_id = self._user(person.name).id
        seen_at = int(self.calendar.end) - person.away
        await self.log.snapshot(user_id, lambda _: None, lambda *_: None)
        notes = (PresenceSeen(user_id, seen_at, seen_at),)
        await self.submit(person.name, _mark_read, kept, notes=notes)

    def _unread(self, talk: Conversation, name: str) -> Sequence[ScriptedMessage]:
        """A conversation's unread messages: as the story says, or else the recent ones after the
        person's own last message."""
        if name in talk.unread:
            others = [scripted for scripted in talk.messages if scripted.who != name]
            return others[-talk.unread[name] :]
        if name == self._owner:
            return ()
        own = [n for n, scripted in enumerate(talk.messages) if scripted.who == name]
        newer = talk.messages[own[-1] + 1 :] if own else talk.messages
        return [scripted for scripted in newer if scripted.at > self.clock() - RECENT]


Reaction = tuple[ScriptedMessage, str, str]
"""A message, a person, and an emoji's name."""


def reactions_by_day(messages: Sequence[ScriptedMessage]) -> Iterator[tuple[float, list[Reaction]]]:
    """Reactions to each day's messages, and when they're added. A message gets at most one emoji at
    a time."""
    rounds: dict[tuple[date, int], list[Reaction]] = defaultdict(list)
    for one in messages:
        day = datetime.fromtimestamp(one.at).date()
        for n, (emoji_name, people) in enumerate(one.reactions):
            rounds[day, n] += [(one, who, emoji_name) for who in people]
    for (day, _), added in rounds.items():
        # In the day's last second: a message of its last minute may be among them.
        yield datetime.combine(day, clock_time(23, 59, 59)).timestamp(), added


def _mark_read(moment: Moment, kept: set[int]) -> Decision[None]:
    """Mark all unread messages as read, except these."""
    unread = moment.state.unread.unread_ids(moment.state, moment.actor.id)
    return flags.mark_given_read(moment, [one for one in unread if one not in kept])


def _png_size(content: bytes) -> Picture:
    """Read the size from a PNG's header."""
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    return Picture(width=width, height=height)


def _reacted(seen: message_details.DetailedMessage) -> reactions.ReactedMessage:
    return reactions.ReactedMessage(
        seq=seen.head,
        message=seen.message,
        flags=seen.relation.flags,
        reactions=seen.details.reactions,
        holders=seen.holders,
    )


def _submission(what: str, value: str, number: int) -> str:
    """A submessage for an action in a widget. `number` is one that the widget doesn't use yet."""
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
