"""The last steps: people's own settings, and what they have read."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from tertulia.demo.builder import Builder
from tertulia.demo.story import (
    Conversation,
    Entry,
    Person,
    ScriptedMessage,
)
from tertulia.domain.channels import subscription_settings, topics
from tertulia.domain.messages import drafts, flags, scheduled
from tertulia.model.drafts import DraftKind
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import message_marks, queries
from tertulia.store.notes import PresenceSeen

RECENT: Final = 3 * 3600
"""The age in seconds from which messages are read, unless the story says otherwise."""


# People's settings and read state


def personal_acts(
    builder: Builder, talks: Sequence[Conversation]
) -> Iterator[Callable[[], Awaitable[object]]]:
    """Yield the actions of all people, after the last message."""
    cafe = builder.cafe
    for name, marked in (("pin_to_top", cafe.pinned), ("is_muted", cafe.muted)):
        for fields in marked:
            yield partial(_set_property, builder, fields["who"], fields["channel"], name)
    for talk in talks:
        for people, visibility in (
            (talk.followed, Visibility.FOLLOWED),
            (talk.muted, Visibility.MUTED),
        ):
            for who in people:
                yield partial(_set_visibility, builder, who, talk, visibility)
    for talk in talks:
        for scripted in talk.messages:
            for who in scripted.stars:
                yield partial(_star, builder, who, scripted)
    for snippet in cafe.snippets:
        arguments = (drafts.create_snippet, snippet["title"], snippet["content"])
        yield partial(builder.submit, builder.owner, *arguments)
    for writing in cafe.drafts:
        yield partial(_save_draft, builder, writing)
    yield partial(_schedule, builder)
    yield partial(_remind, builder)
    for person in cafe.people:
        if not person.leaves:
            yield partial(_read, builder, person, talks)


async def _set_property(builder: Builder, who: str, channel: str, name: str) -> None:
    channel_id = builder.channel(channel).id
    given = subscription_settings.SubscriptionProperty(channel_id=channel_id, name=name, value=True)
    await builder.submit(who, subscription_settings.set_properties, [given])


async def _set_visibility(
    builder: Builder, who: str, talk: Conversation, visibility: Visibility
) -> None:
    channel_id = builder.channel(talk.channel).id
    await builder.submit(who, topics.set_visibility, channel_id, talk.topic, visibility)


async def _star(builder: Builder, who: str, scripted: ScriptedMessage) -> None:
    message_id, user_id = builder.ids[id(scripted)], builder.user(who).id
    (message,), relations = await builder.log.store.read(
        lambda c: (
            queries.messages(c, [message_id]),
            message_marks.relations(c, user_id, [message_id]),
        )
    )
    known = flags.KnownMessage(
        message=message, flags=relations[message_id].flags, is_read=False, is_mentioned=False
    )
    await builder.submit(who, flags.change, [known], Flag.STARRED, True)


async def _save_draft(builder: Builder, writing: Entry) -> None:
    new = drafts.DraftContent(
        kind=DraftKind.CHANNEL,
        to=(builder.channel(writing["channel"]).id,),
        topic=writing["topic"],
        content=writing["content"],
    )
    await builder.submit(writing["who"], drafts.create, [new])


async def _schedule(builder: Builder) -> None:
    scheduling = builder.cafe.scheduled
    draft = builder.draft(
        scheduling["who"], scheduling["content"], scheduling["channel"], scheduling["topic"]
    )
    at = int(builder.calendar.time(scheduling["at"]))
    await builder.submit(scheduling["who"], scheduled.schedule, draft, at, None)


async def _remind(builder: Builder) -> None:
    reminder = builder.cafe.reminder
    message_id = builder.ids[id(builder.labels[reminder["label"]])]
    (message,) = await builder.log.store.read(queries.messages, [message_id])
    at = int(builder.calendar.time(reminder["at"]))
    arguments = (builder.render, message_id, message, at, reminder["note"])
    await builder.submit(reminder["who"], scheduled.set_reminder, *arguments)


async def _read(builder: Builder, person: Person, talks: Sequence[Conversation]) -> None:
    """Mark messages as read, and set when the person was last online."""
    kept = {
        builder.ids[id(scripted)]
        for talk in talks
        for scripted in _unread(builder, talk, person.name)
    }
    user_id = builder.user(person.name).id
    seen_at = int(builder.calendar.end) - person.away
    await builder.log.snapshot(user_id, lambda _: None, lambda *_: None)
    notes = (PresenceSeen(user_id, seen_at, seen_at),)
    await builder.submit(person.name, _mark_read, kept, notes=notes)


def _unread(builder: Builder, talk: Conversation, name: str) -> Sequence[ScriptedMessage]:
    """Return a conversation's unread messages: those that the story names, or else the recent ones
    after the person's own last message."""
    if name in talk.unread:
        others = [scripted for scripted in talk.messages if scripted.who != name]
        return others[-talk.unread[name] :]
    if name == builder.owner:
        return ()
    numbers = [n for n, scripted in enumerate(talk.messages) if scripted.who == name]
    newer = talk.messages[numbers[-1] + 1 :] if numbers else talk.messages
    return [scripted for scripted in newer if scripted.at > builder.clock() - RECENT]


def _mark_read(context: CommandContext, kept: set[int]) -> Decision[None]:
    """Mark all unread messages as read, except these."""
    unread = context.state.unread.unread_ids(context.state, context.actor.id)
    return flags.mark_given_read(
        context, [message_id for message_id in unread if message_id not in kept]
    )
