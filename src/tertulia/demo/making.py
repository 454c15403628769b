"""What happens at the café, step by step: the team moves in, talks, and goes on with its day."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock_time
from functools import partial
from itertools import chain
from typing import Final

from tertulia.demo import portraits
from tertulia.demo.cast import (
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
from tertulia.demo.ending import last_steps
from tertulia.demo.places import CHANNELS, EMOJI, FOLDERS, GENERAL, GROUPS, Place
from tertulia.demo.script import Calendar, Said, conversations
from tertulia.demo.stage import CLIENT, Stage
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
"""Of the newest of the team."""
PARTING: Final = "-9 17:00"
_TAKING_PART: Final = 47
"""Seconds until the first vote, and between votes."""
_CORRECTING: Final = 80
ALERT_WORDS: Final = ("inspector", "leak")
"""What the owner wants to hear of."""
DESCRIPTION: Final = (
    "A small café with a long table. *Tertulia*: people who meet at the same place, again and"
    " again, to talk."
)


@dataclass(frozen=True)
class Step:
    """Something that happens, in one commit, at its time."""

    at: float
    act: Callable[[Stage], Awaitable[object]]


async def make(stage: Stage, password: str) -> None:
    """Do everything that has not been done yet. The organization has been founded."""
    told = list(conversations(stage.calendar))
    said = sorted((one for talk in told for one in talk.said), key=lambda one: one.at)
    stage.labels = {one.label: one for one in said if one.label}
    await _recollect(stage, said)
    end = stage.calendar.end
    planned = chain(
        _moving_in(stage.calendar, password), *(_saying(one) for one in said), _reacting(said)
    )
    # What follows from the last that was said has happened, too.
    steps = [Step(min(step.at, end - 5), step.act) for step in planned]
    steps.sort(key=lambda step: step.at)
    steps += [Step(end - 2, act) for act in last_steps(told)]
    for number, step in enumerate(steps):
        if number < stage.done:
            continue
        stage.clock.now = step.at
        await step.act(stage)
        stage.done = number + 1


async def _recollect(stage: Stage, said: Sequence[Said]) -> None:
    """The IDs of what was said in a start that was cut short: it is said in this order."""
    rows = await stage.log.store.read(
        lambda c: c.query("SELECT id FROM messages WHERE client = ? ORDER BY id", (CLIENT,))
    )
    for one, (message_id,) in zip(said, rows, strict=False):
        stage.ids[id(one)] = message_id


# Moving in


def _moving_in(calendar: Calendar, password: str) -> Iterator[Step]:
    begin, arrival, parting = (calendar.time(one) for one in (BEGINNING, ARRIVAL, PARTING))
    for person in PEOPLE:
        at = arrival if person.name == NEW else begin
        if person is not OWNER:
            yield Step(at, partial(_employ, person=person, password=password))
    for program in PROGRAMS:
        yield Step(begin, partial(_install, program=program))
    yield Step(begin, _hang_the_sign)
    yield Step(begin, _listen)
    for name in HINTS:
        yield Step(begin, partial(_ask_for, name=name))
    for person in PEOPLE:
        at = arrival if person.name == NEW else begin
        yield from (Step(at, act) for act in _introduction(person))
    for name in EMOJI:
        yield Step(begin, partial(_draw_emoji, name=name))
    for name, text in FOLDERS:
        yield Step(begin, partial(_put_up_folder, name=name, text=text))
    for place in CHANNELS:
        at = calendar.time(place.made_at)
        yield Step(at, partial(_open, place=place, newcomer=arrival > at))
        if place.archived_at:
            yield Step(calendar.time(place.archived_at), partial(_close, place=place))
    for name, text, members in GROUPS:
        yield Step(arrival, partial(_form, name=name, text=text, members=members.split()))
    yield Step(arrival, partial(_show_around, name=NEW))
    yield Step(parting, partial(_let_go, name=LEFT))


async def _employ(stage: Stage, person: Person, password: str) -> None:
    new = users.NewUser(
        address=person.address,
        full_name=person.full_name,
        role=person.role,
        credential=await stage.vault.credential(0, password),
    )
    await stage.submit(None, users.create, new)


async def _install(stage: Stage, program: Program) -> None:
    small, medium = portraits.portrait(program.picture)
    new = bots.NewBot(
        full_name=program.full_name,
        short_name=program.name,
        kind=BotKind.GENERIC,
        host=stage.host,
        credential=await stage.vault.credential(0, None),
        avatar_file=await avatar_files.keep(stage.files, small, medium),
    )
    await stage.submit(OWNER.name, bots.create, new)


async def _hang_the_sign(stage: Stage) -> None:
    values = {
        "description": DESCRIPTION,
        "new_channel_announcements_channel_id": stage.channel(GENERAL).id,
    }
    edit = settings.Edit(values=values)
    await stage.submit(OWNER.name, settings.change, edit, stage.render)


async def _listen(stage: Stage) -> None:
    await stage.submit(OWNER.name, alert_words.add, ALERT_WORDS)


async def _ask_for(stage: Stage, name: str) -> None:
    kind = {PRONOUNS: FieldKind.PRONOUNS, SINCE: FieldKind.DATE}.get(name, FieldKind.SHORT_TEXT)
    given = profile_fields.Revision(
        name=name, hint=HINTS[name], in_summary=name in {PRONOUNS, COFFEE}
    )
    await stage.submit(OWNER.name, profile_fields.create, kind, given)


def _introduction(person: Person) -> Iterable[Callable[[Stage], Awaitable[object]]]:
    if person.picture:
        yield partial(_sit_for_portrait, person=person)
    yield partial(_set_clock, person=person)
    if any(person.profile.values()):
        yield partial(_fill_in, person=person)
    if any(person.status):
        yield partial(_say_what_they_do, person=person)


async def _sit_for_portrait(stage: Stage, person: Person) -> None:
    small, medium = portraits.portrait(person.picture)
    file = await avatar_files.keep(stage.files, small, medium)
    await stage.submit(person.name, avatars.change_own, file)


async def _set_clock(stage: Stage, person: Person) -> None:
    revision = personal_settings.Revision(timezone=person.timezone)
    await stage.submit(person.name, personal_settings.change, revision)


async def _fill_in(stage: Stage, person: Person) -> None:
    fields = {field.name: field.id for field in stage.log.state.profile_fields}
    values = tuple((fields[name], text) for name, text in person.profile.items() if text)
    new = profiles.NewProfile(values=values, render=stage.render)
    await stage.submit(person.name, profiles.change_own, new)


async def _say_what_they_do(stage: Stage, person: Person) -> None:
    emoji_name, text = person.status
    new = statuses.NewStatus(text=text, emoji_name=emoji_name)
    await stage.submit(person.name, statuses.change_own, new)


async def _draw_emoji(stage: Stage, name: str) -> None:
    file = await emoji_files.keep(stage.files, portraits.emoji(name), "png")
    await stage.submit(OWNER.name, emoji.add, emoji.NewEmoji(name=name, file=file))


async def _put_up_folder(stage: Stage, name: str, text: str) -> None:
    await stage.submit(OWNER.name, folders.create, name, text, stage.render)


async def _open(stage: Stage, place: Place, newcomer: bool) -> None:
    folder = next((one.id for one in stage.log.state.folders if one.name == place.folder), None)
    new = channels.NewChannel(
        name=place.name,
        description=names.channel_description(place.description),
        rendered_description=stage.rendered(OWNER.name, place.description).html,
        is_private=place.is_private,
        folder_id=folder,
    )
    team = [person.name for person in PEOPLE]
    members = team if place.members == "*" else place.members.split()
    absent = {NEW} if newcomer else {LEFT}
    wanted = subscriptions.Wanted(
        channels=(new,),
        principals=stage.ids_of([one for one in members if one not in absent]),
        notify_subscribed=False,
        announce=place.announced,
    )
    await stage.submit(OWNER.name, subscriptions.subscribe, wanted, stage.render)


async def _close(stage: Stage, place: Place) -> None:
    await stage.submit(OWNER.name, channels.archive, stage.channel(place.name).id)


async def _form(stage: Stage, name: str, text: str, members: Sequence[str]) -> None:
    ids = stage.ids_of(members)
    managers = Members((stage.user(OWNER.name).id,), ())
    new = groups.NewGroup(
        name=name, description=text, members=ids, settings={"can_manage_group": managers}
    )
    await stage.submit(OWNER.name, groups.create, new)


async def _show_around(stage: Stage, name: str) -> None:
    """Subscribe somebody to the channels that were there before them."""
    known = [
        channels.NewChannel(name=place.name)
        for place in CHANNELS
        if (place.members == "*" or name in place.members.split())
        and not place.archived_at
        and stage.log.state.channel_named(place.name) is not None
    ]
    wanted = subscriptions.Wanted(channels=tuple(known), principals=stage.ids_of([name]))
    await stage.submit(OWNER.name, subscriptions.subscribe, wanted, stage.render)


async def _let_go(stage: Stage, name: str) -> None:
    await stage.submit(OWNER.name, users.deactivate, stage.user(name).id)


# Talking


def _saying(said: Said) -> Iterator[Step]:
    """The message, and what becomes of it."""
    for name in said.files:
        yield Step(said.at - 1, partial(Stage.upload, who=said.who, name=name))
    yield Step(said.at, partial(Stage.say, said=said))
    text = said.text
    for n, (before, after) in enumerate(said.corrections, 1):
        text = text.replace(before, after)
        yield Step(said.at + _CORRECTING * n, partial(Stage.correct, said=said, text=text))
    for n, (what, who, value) in enumerate(said.taken_part, 1):
        at = said.at + _TAKING_PART * n
        yield Step(at, partial(Stage.take_part, said=said, what=what, who=who, value=value))
    for moved in said.moves:
        yield Step(moved.at, partial(Stage.move, said=said, moved=moved))


def _reacting(said: Sequence[Said]) -> Iterator[Step]:
    """The reactions, at the end of each day: to a message one emoji after the other."""
    rounds: dict[tuple[date, int], list[tuple[Said, str, str]]] = defaultdict(list)
    for one in said:
        day = datetime.fromtimestamp(one.at).date()
        for n, (emoji_name, people) in enumerate(one.reactions):
            rounds[day, n] += [(one, who, emoji_name) for who in people]
    for (day, _), all_of in rounds.items():
        night = datetime.combine(day, clock_time(23, 59)).timestamp()
        yield Step(night, partial(Stage.react, all_of=all_of))
