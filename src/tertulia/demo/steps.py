"""The steps that create the demonstration, in order of their times: setup, messages, reactions."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock_time
from functools import partial
from itertools import chain
from typing import Final

from tertulia.demo import portraits
from tertulia.demo.builder import CLIENT, Builder
from tertulia.demo.channels import CHANNELS, EMOJI, FOLDERS, GENERAL, GROUPS, ChannelPlan
from tertulia.demo.final_steps import last_steps
from tertulia.demo.people import (
    COFFEE,
    HINTS,
    LEFT,
    NEW,
    OWNER,
    PEOPLE,
    PROGRAMS,
    PRONOUNS,
    SINCE,
    Person,
    Program,
)
from tertulia.demo.script import Calendar, ScriptedMessage, conversations
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
from tertulia.domain.channels import channels, folders, subscriptions
from tertulia.domain.groups import groups
from tertulia.domain.organization import emoji, settings
from tertulia.model.groups import Members
from tertulia.model.profiles import FieldKind
from tertulia.model.users import BotKind
from tertulia.service.files import avatars as avatar_files
from tertulia.service.files import custom_emoji as emoji_files

BEGINNING: Final = "-14 07:30"
ARRIVAL: Final = "-3 08:00"
"""When the newest of the team joins."""
PARTING: Final = "-9 17:00"
_WIDGET_PAUSE: Final = 47
"""Seconds until the first vote, and between votes."""
_CORRECTION_PAUSE: Final = 80
"""Seconds between a message and its edit."""
ALERT_WORDS: Final = ("inspector", "leak")
"""The owner's alert words."""
DESCRIPTION: Final = (
    "A small café with a long table. *Tertulia*: people who meet at the same place, again and"
    " again, to talk."
)


@dataclass(frozen=True)
class Step:
    """One commit, and the time in the story at which it happens."""

    at: float
    act: Callable[[Builder], Awaitable[object]]


async def make(builder: Builder, password: str) -> None:
    """Do all steps that were not done before. The organization has been founded."""
    script = list(conversations(builder.calendar))
    messages = sorted(
        (one for conversation in script for one in conversation.messages), key=lambda one: one.at
    )
    builder.labels = {one.label: one for one in messages if one.label}
    await _restore_message_ids(builder, messages)
    end = builder.calendar.end
    planned = chain(
        _setup_steps(builder.calendar, password),
        *(_message_steps(one) for one in messages),
        _reaction_steps(messages),
    )
    # Steps after the last messages would be in the future otherwise.
    steps = [Step(min(step.at, end - 5), step.act) for step in planned]
    steps.sort(key=lambda step: step.at)
    steps += [Step(end - 2, act) for act in last_steps(script)]
    for number, step in enumerate(steps):
        if number < builder.done:
            continue
        builder.clock.now = step.at
        await step.act(builder)
        builder.done = number + 1


async def _restore_message_ids(builder: Builder, messages: Sequence[ScriptedMessage]) -> None:
    """Restore the IDs of messages that were sent before an interruption; their order is the
    same."""
    rows = await builder.log.store.read(
        lambda c: c.query("SELECT id FROM messages WHERE client = ? ORDER BY id", (CLIENT,))
    )
    for one, (message_id,) in zip(messages, rows, strict=False):
        builder.ids[id(one)] = message_id


# Setting up


def _setup_steps(calendar: Calendar, password: str) -> Iterator[Step]:
    begin, arrival, parting = (calendar.time(one) for one in (BEGINNING, ARRIVAL, PARTING))
    for person in PEOPLE:
        at = arrival if person.name == NEW else begin
        if person is not OWNER:
            yield Step(at, partial(_create_user, person=person, password=password))
    for program in PROGRAMS:
        yield Step(begin, partial(_create_bot, program=program))
    yield Step(begin, _describe_organization)
    yield Step(begin, _add_alert_words)
    for name in HINTS:
        yield Step(begin, partial(_create_profile_field, name=name))
    for person in PEOPLE:
        at = arrival if person.name == NEW else begin
        yield from (Step(at, act) for act in _profile_actions(person))
    for name in EMOJI:
        yield Step(begin, partial(_add_emoji, name=name))
    for name, text in FOLDERS:
        yield Step(begin, partial(_create_folder, name=name, text=text))
    for plan in CHANNELS:
        at = calendar.time(plan.made_at)
        yield Step(at, partial(_create_channel, plan=plan, newcomer=arrival > at))
        if plan.archived_at:
            yield Step(calendar.time(plan.archived_at), partial(_archive_channel, plan=plan))
    for name, text, members in GROUPS:
        yield Step(arrival, partial(_create_group, name=name, text=text, members=members.split()))
    yield Step(arrival, partial(_subscribe_newcomer, name=NEW))
    yield Step(parting, partial(_deactivate, name=LEFT))


async def _create_user(builder: Builder, person: Person, password: str) -> None:
    new = users.NewUser(
        address=person.address,
        full_name=person.full_name,
        role=person.role,
        credential=await builder.vault.credential(0, password),
    )
    await builder.submit(None, users.create, new)


async def _create_bot(builder: Builder, program: Program) -> None:
    small, medium = portraits.portrait(program.picture)
    new = bots.NewBot(
        full_name=program.full_name,
        short_name=program.name,
        kind=BotKind.GENERIC,
        host=builder.host,
        credential=await builder.vault.credential(0, None),
        avatar_file=await avatar_files.keep(builder.files, small, medium),
    )
    await builder.submit(OWNER.name, bots.create, new)


async def _describe_organization(builder: Builder) -> None:
    values = {
        "description": DESCRIPTION,
        "new_channel_announcements_channel_id": builder.channel(GENERAL).id,
    }
    edit = settings.Edit(values=values)
    await builder.submit(OWNER.name, settings.change, edit, builder.render)


async def _add_alert_words(builder: Builder) -> None:
    await builder.submit(OWNER.name, alert_words.add, ALERT_WORDS)


async def _create_profile_field(builder: Builder, name: str) -> None:
    kind = {PRONOUNS: FieldKind.PRONOUNS, SINCE: FieldKind.DATE}.get(name, FieldKind.SHORT_TEXT)
    given = profile_fields.Revision(
        name=name, hint=HINTS[name], in_summary=name in {PRONOUNS, COFFEE}
    )
    await builder.submit(OWNER.name, profile_fields.create, kind, given)


def _profile_actions(person: Person) -> Iterable[Callable[[Builder], Awaitable[object]]]:
    if person.picture:
        yield partial(_set_avatar, person=person)
    yield partial(_set_timezone, person=person)
    if any(person.profile.values()):
        yield partial(_set_profile, person=person)
    if any(person.status):
        yield partial(_set_status, person=person)


async def _set_avatar(builder: Builder, person: Person) -> None:
    small, medium = portraits.portrait(person.picture)
    file = await avatar_files.keep(builder.files, small, medium)
    await builder.submit(person.name, avatars.change_own, file)


async def _set_timezone(builder: Builder, person: Person) -> None:
    # Whoever visits as somebody is mostly in another one, and is not to be asked for each of them.
    revision = personal_settings.Revision(
        timezone=person.timezone, settings={"web_suggest_update_timezone": False}
    )
    await builder.submit(person.name, personal_settings.change, revision)


async def _set_profile(builder: Builder, person: Person) -> None:
    fields = {field.name: field.id for field in builder.log.state.profile_fields}
    values = tuple((fields[name], text) for name, text in person.profile.items() if text)
    new = profiles.NewProfile(values=values, render=builder.render)
    await builder.submit(person.name, profiles.change_own, new)


async def _set_status(builder: Builder, person: Person) -> None:
    emoji_name, text = person.status
    new = statuses.NewStatus(text=text, emoji_name=emoji_name)
    await builder.submit(person.name, statuses.change_own, new)


async def _add_emoji(builder: Builder, name: str) -> None:
    file = await emoji_files.keep(builder.files, portraits.emoji(name), "png")
    await builder.submit(OWNER.name, emoji.add, emoji.NewEmoji(name=name, file=file))


async def _create_folder(builder: Builder, name: str, text: str) -> None:
    await builder.submit(OWNER.name, folders.create, name, text, builder.render)


async def _create_channel(builder: Builder, plan: ChannelPlan, newcomer: bool) -> None:
    folder = next((one.id for one in builder.log.state.folders if one.name == plan.folder), None)
    new = channels.NewChannel(
        name=plan.name,
        description=names.channel_description(plan.description),
        rendered_description=builder.rendered(OWNER.name, plan.description).html,
        is_private=plan.is_private,
        folder_id=folder,
    )
    team = [person.name for person in PEOPLE]
    members = team if plan.members == "*" else plan.members.split()
    absent = {NEW} if newcomer else {LEFT}
    wanted = subscriptions.SubscribeRequest(
        channels=(new,),
        principals=builder.ids_of([one for one in members if one not in absent]),
        notify_subscribed=False,
        announce=plan.announced,
    )
    await builder.submit(OWNER.name, subscriptions.subscribe, wanted, builder.render)


async def _archive_channel(builder: Builder, plan: ChannelPlan) -> None:
    await builder.submit(OWNER.name, channels.archive, builder.channel(plan.name).id)


async def _create_group(builder: Builder, name: str, text: str, members: Sequence[str]) -> None:
    ids = builder.ids_of(members)
    managers = Members((builder.user(OWNER.name).id,), ())
    new = groups.NewGroup(
        name=name, description=text, members=ids, settings={"can_manage_group": managers}
    )
    await builder.submit(OWNER.name, groups.create, new)


async def _subscribe_newcomer(builder: Builder, name: str) -> None:
    """Subscribe a user who joins later to the channels that exist."""
    known = [
        channels.NewChannel(name=plan.name)
        for plan in CHANNELS
        if (plan.members == "*" or name in plan.members.split())
        and not plan.archived_at
        and builder.log.state.channel_named(plan.name) is not None
    ]
    wanted = subscriptions.SubscribeRequest(
        channels=tuple(known), principals=builder.ids_of([name])
    )
    await builder.submit(OWNER.name, subscriptions.subscribe, wanted, builder.render)


async def _deactivate(builder: Builder, name: str) -> None:
    await builder.submit(OWNER.name, users.deactivate, builder.user(name).id)


# Messages and reactions


def _message_steps(scripted: ScriptedMessage) -> Iterator[Step]:
    """Send the message and its files, then edit it, use its widget and move it."""
    for name in scripted.files:
        yield Step(scripted.at - 1, partial(Builder.upload, who=scripted.who, name=name))
    yield Step(scripted.at, partial(Builder.send, scripted=scripted))
    text = scripted.text
    for n, (before, after) in enumerate(scripted.corrections, 1):
        text = text.replace(before, after)
        yield Step(
            scripted.at + _CORRECTION_PAUSE * n,
            partial(Builder.correct, scripted=scripted, text=text),
        )
    for n, (what, who, value) in enumerate(scripted.widget_actions, 1):
        at = scripted.at + _WIDGET_PAUSE * n
        yield Step(
            at, partial(Builder.use_widget, scripted=scripted, what=what, who=who, value=value)
        )
    for moved in scripted.moves:
        yield Step(moved.at, partial(Builder.move, scripted=scripted, moved=moved))


def _reaction_steps(messages: Sequence[ScriptedMessage]) -> Iterator[Step]:
    """The reactions to each day's messages, at its end. A step has at most one emoji for a
    message."""
    rounds: dict[tuple[date, int], list[tuple[ScriptedMessage, str, str]]] = defaultdict(list)
    for one in messages:
        day = datetime.fromtimestamp(one.at).date()
        for n, (emoji_name, people) in enumerate(one.reactions):
            rounds[day, n] += [(one, who, emoji_name) for who in people]
    for (day, _), reactions_made in rounds.items():
        # In its last second: a message of its last minute may be among them.
        night = datetime.combine(day, clock_time(23, 59, 59)).timestamp()
        yield Step(night, partial(Builder.react, reactions_made=reactions_made))
