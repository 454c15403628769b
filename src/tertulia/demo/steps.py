"""The steps that create the demo, in chronological order."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import date, datetime
from datetime import time as clock_time
from functools import partial
from itertools import chain
from typing import Any

from tertulia.demo.builder import CLIENT, GENERAL, Builder, DemoStep, Reaction
from tertulia.demo.personal import personal_acts
from tertulia.demo.story import (
    Entry,
    Person,
    PlannedChannel,
    ScriptedMessage,
    conversations,
    picture,
)
from tertulia.domain import names
from tertulia.domain.accounts import (
    bots,
    deactivation,
    personal,
    personal_settings,
    profiles,
    users,
)
from tertulia.domain.channels import channels, folders, subscriptions
from tertulia.domain.groups import groups
from tertulia.domain.organization import emoji, settings
from tertulia.model.groups import Members
from tertulia.model.profiles import FieldKind
from tertulia.model.users import BotKind, Role
from tertulia.service.files import pictures


async def build(builder: Builder) -> None:
    """Perform the steps that aren't done yet. The organization must have been founded."""
    talks = list(conversations(builder.calendar))
    messages = sorted(
        (message for talk in talks for message in talk.messages), key=lambda message: message.at
    )
    builder.labels = {message.label: message for message in messages if message.label}
    await _restore_message_ids(builder, messages)
    end = builder.calendar.end
    planned = chain(
        _setup_steps(builder),
        *map(builder.message_steps, messages),
        (DemoStep(at, partial(builder.react, added)) for at, added in reactions_by_day(messages)),
    )
    # Otherwise, steps that follow the last messages would be in the future.
    steps = [DemoStep(min(step.at, end - 5), step.act) for step in planned]
    steps.sort(key=lambda step: step.at)
    steps += [DemoStep(end - 2, act) for act in personal_acts(builder, talks)]
    for number, step in enumerate(steps):
        if number < builder.done:
            continue
        builder.clock.now = step.at
        await step.act()
        builder.done = number + 1


async def _restore_message_ids(builder: Builder, messages: Sequence[ScriptedMessage]) -> None:
    """Restore the IDs of messages that were sent before an interruption, in the same order."""
    rows = await builder.log.store.read(
        lambda c: c.query("SELECT id FROM messages WHERE client = ? ORDER BY id", (CLIENT,))
    )
    for message, (message_id,) in zip(messages, rows, strict=False):
        builder.ids[id(message)] = message_id


def reactions_by_day(messages: Sequence[ScriptedMessage]) -> Iterator[tuple[float, list[Reaction]]]:
    """Yield the reactions to each day's messages, and when they're added. A message gets at most
    one emoji at a time."""
    rounds: dict[tuple[date, int], list[Reaction]] = defaultdict(list)
    for message in messages:
        day = datetime.fromtimestamp(message.at).date()
        for n, (emoji_name, people) in enumerate(message.reactions):
            rounds[day, n] += [(message, who, emoji_name) for who in people]
    for (day, _), added in rounds.items():
        # At the day's last second, because messages of its last minute may be among them.
        yield datetime.combine(day, clock_time(23, 59, 59)).timestamp(), added


# Setup


def _setup_steps(builder: Builder) -> Iterator[DemoStep]:
    cafe, time = builder.cafe, builder.calendar.time

    def at(act: Callable[..., Awaitable[object]], *arguments: Any, when: str = "") -> DemoStep:
        return DemoStep(time(when or cafe.founded), partial(act, builder, *arguments))

    for person in cafe.people:
        if person.name != builder.owner:
            yield at(_create_user, person, when=person.joins)
    yield from (at(_create_bot, bot) for bot in cafe.bots)
    yield at(_describe_organization)
    yield at(Builder.submit, builder.owner, personal.add_alert_words, cafe.alert_words)
    for field in cafe.fields:
        kind = FieldKind[field.get("kind", "short_text").upper()]
        in_summary = field.get("in_summary", False)
        new = profiles.ProfileFieldUpdate(
            name=field["name"], hint=field["hint"], in_summary=in_summary
        )
        yield at(Builder.submit, builder.owner, profiles.create_field, kind, new)
    for person in cafe.people:
        joined = time(person.joins or cafe.founded)
        yield from (DemoStep(joined, act) for act in _profile_acts(builder, person))
    yield from (at(_add_emoji, name) for name in cafe.emoji)
    for folder in cafe.folders:
        arguments = (folder["name"], folder["description"], builder.render)
        yield at(Builder.submit, builder.owner, folders.create, *arguments)
    for channel in cafe.channels:
        yield at(_create_channel, channel, when=channel.created)
        if channel.archived:
            yield at(_archive, channel.name, when=channel.archived)
    newcomers = [person for person in cafe.people if person.joins]
    for group in cafe.groups:
        yield at(_create_group, group, when=newcomers[-1].joins)
    for person in newcomers:
        yield at(_subscribe_newcomer, person, when=person.joins)
    for person in cafe.people:
        if person.leaves:
            yield at(_deactivate, person.name, when=person.leaves)


async def _create_user(builder: Builder, person: Person) -> None:
    new = users.NewUser(
        address=builder.cafe.address(person),
        full_name=person.full_name,
        role=Role[person.role.upper()],
        credential=await builder.vault.credential(0, builder.password),
    )
    await builder.submit(None, users.create, new)


async def _create_bot(builder: Builder, bot: Entry) -> None:
    new = bots.NewBot(
        full_name=bot["full_name"],
        short_name=bot["name"],
        kind=BotKind.GENERIC,
        host=builder.host,
        credential=await builder.vault.credential(0, None),
        avatar_file=await _keep_portrait(builder, bot["name"]),
    )
    await builder.submit(builder.owner, bots.create, new)


async def _keep_portrait(builder: Builder, name: str) -> str:
    """Store the small and the large picture of an account, if there are any."""
    small, large = picture(f"people/{name}-100.png"), picture(f"people/{name}-500.png")
    return "" if not small or not large else await pictures.keep_avatar(builder.files, small, large)


async def _describe_organization(builder: Builder) -> None:
    values = {
        "description": builder.cafe.description,
        "new_channel_announcements_channel_id": builder.channel(GENERAL).id,
    }
    edit = settings.OrganizationUpdate(values=values)
    await builder.submit(builder.owner, settings.change, edit, builder.render)


def _profile_acts(builder: Builder, person: Person) -> Iterator[Callable[[], Awaitable[object]]]:
    if picture(f"people/{person.name}-100.png"):
        yield partial(_set_avatar, builder, person.name)
    # Visitors are often in another time zone. Don't ask them about it for each account.
    revision = personal_settings.PersonalSettingsUpdate(
        timezone=person.timezone, settings={"web_suggest_update_timezone": False}
    )
    yield partial(builder.submit, person.name, personal_settings.change, revision)
    if person.profile:
        yield partial(_set_profile, builder, person)
    if person.status:
        emoji_name, text = person.status
        status = personal.NewStatus(text=text, emoji_name=emoji_name)
        yield partial(builder.submit, person.name, personal.change_own_status, status)


async def _set_avatar(builder: Builder, name: str) -> None:
    await builder.submit(name, personal.change_own_avatar, await _keep_portrait(builder, name))


async def _set_profile(builder: Builder, person: Person) -> None:
    ids = {field.name: field.id for field in builder.log.state.profile_fields}
    pairs = zip(builder.cafe.fields, person.profile, strict=True)
    values = tuple((ids[pair["name"]], text) for pair, text in pairs if text)
    new = profiles.ProfileUpdate(values=values, render=builder.render)
    await builder.submit(person.name, profiles.change_own, new)


async def _add_emoji(builder: Builder, name: str) -> None:
    content = picture(f"emoji/{name}.png") or b""
    new = emoji.NewEmoji(name=name, file=await pictures.keep_emoji(builder.files, content, "png"))
    await builder.submit(builder.owner, emoji.add, new)


async def _create_channel(builder: Builder, planned: PlannedChannel) -> None:
    folder = next(
        (folder.id for folder in builder.log.state.folders if folder.name == planned.folder), None
    )
    new = channels.NewChannel(
        name=planned.name,
        description=names.channel_description(planned.description),
        rendered_description=builder.rendered(builder.owner, planned.description).html,
        is_private=planned.is_private,
        folder_id=folder,
    )
    now = builder.clock()
    absent = {
        person.name
        for person in builder.cafe.people
        if (person.joins and builder.calendar.time(person.joins) > now)
        or (person.leaves and builder.calendar.time(person.leaves) < now)
    }
    members = planned.members or [person.name for person in builder.cafe.people]
    await _subscribe(
        builder, (new,), [member for member in members if member not in absent], planned
    )


async def _subscribe_newcomer(builder: Builder, person: Person) -> None:
    """Subscribe someone who joins later to those of their channels that exist."""
    existing = tuple(
        channels.NewChannel(name=planned.name)
        for planned in builder.cafe.channels
        if (not planned.members or person.name in planned.members)
        and not planned.archived
        and builder.log.state.channel_named(planned.name) is not None
    )
    await _subscribe(builder, existing, [person.name])


async def _subscribe(
    builder: Builder,
    wanted: tuple[channels.NewChannel, ...],
    people: Sequence[str],
    planned: PlannedChannel | None = None,
) -> None:
    request = subscriptions.SubscribeRequest(
        channels=wanted,
        principals=builder.ids_of(people),
        notify_subscribed=planned is None,
        announce=planned is not None and planned.announced,
    )
    await builder.submit(builder.owner, subscriptions.subscribe, request, builder.render)


async def _archive(builder: Builder, name: str) -> None:
    await builder.submit(builder.owner, channels.archive, builder.channel(name).id)


async def _create_group(builder: Builder, group: Entry) -> None:
    new = groups.NewGroup(
        name=group["name"],
        description=group["description"],
        members=builder.ids_of(group["members"]),
        settings={"can_manage_group": Members(builder.ids_of([builder.owner]), ())},
    )
    await builder.submit(builder.owner, groups.create, new)


async def _deactivate(builder: Builder, name: str) -> None:
    await builder.submit(builder.owner, deactivation.deactivate, builder.user(name).id)
