"""The last steps: personal settings, stars, snippets, drafts, scheduled messages, what is read."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from tertulia.demo.builder import CLIENT, Builder
from tertulia.demo.people import LEFT, OWNER, PEOPLE, Person
from tertulia.demo.script import Conversation, ScriptedMessage
from tertulia.domain.channels import subscriptions, user_topics
from tertulia.domain.messages import drafts, flags, reminders, scheduled, sending, snippets
from tertulia.model.drafts import DraftKind
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.state.moment import Decision, Moment
from tertulia.store import queries
from tertulia.store.writing import PresenceSeen

RECENT: Final = 3 * 3600
"""Seconds. Older messages are read by everybody, if the script does not say otherwise."""
PINNED: Final = (("iris", "kitchen"), ("june", "recipes"), ("marco", "workshop"))
MUTED: Final = (("iris", "long table"),)
SNIPPETS: Final = (
    (
        "Table for tonight",
        "Hello! Yes, we have a table for you at 20:00. We keep it for a quarter of an hour."
        " *Iris, Café Tertulia*",
    ),
    ("Out of stock", "Not today, I am afraid. Back on **{day}**, and worth the wait."),
    ("Lost and found", "It is in the blue box under the counter. So is everybody else's umbrella."),
)
DRAFTS: Final = (
    (
        "iris",
        "evenings",
        "piano",
        "About the piano: I like it. My knees, who would carry it, have asked for a meeting.",
    ),
    ("iris", "numbers", "rent", "Lucía, what if we offered them two years at"),
    ("june", "winter menu", "soup of the day", "Counter-proposal: bread *in* the soup. Like"),
)
SCHEDULED: Final = (
    "iris",
    "general",
    "this week",
    "Good morning! The delivery comes **before** eight today, please leave the back door free."
    " @**all** whoever is first switches the oven on.",
    "+1 06:45",
)
REMINDER: Final = ("iris", "inspection", "+1 09:00", "Bring the folder with the certificates!")
"""User, label of the message, time and note."""

Act = Callable[[Builder], Awaitable[object]]


def last_steps(conversations: Sequence[Conversation]) -> Iterator[Act]:
    """The steps after all messages."""
    for who, name in PINNED:
        yield partial(_set_channel_property, who=who, channel=name, setting="pin_to_top")
    for who, name in MUTED:
        yield partial(_set_channel_property, who=who, channel=name, setting="is_muted")
    for conversation in conversations:
        for who in conversation.followed:
            yield partial(
                _set_topic_visibility,
                who=who,
                conversation=conversation,
                visibility=Visibility.FOLLOWED,
            )
        for who in conversation.muted:
            yield partial(
                _set_topic_visibility,
                who=who,
                conversation=conversation,
                visibility=Visibility.MUTED,
            )
    for conversation in conversations:
        for scripted in conversation.messages:
            for who in scripted.stars:
                yield partial(_star, who=who, scripted=scripted)
    for title, content in SNIPPETS:
        yield partial(_create_snippet, title=title, content=content)
    for who, channel, topic, text in DRAFTS:
        yield partial(_create_draft, who=who, channel=channel, topic=topic, text=text)
    yield _schedule_message
    yield _set_reminder
    for person in PEOPLE:
        if person.name != LEFT:
            yield partial(_read_messages, person=person, conversations=conversations)


async def _set_channel_property(builder: Builder, who: str, channel: str, setting: str) -> None:
    channel_id = builder.channel(channel).id
    given = subscriptions.Property(channel_id=channel_id, name=setting, value=True)
    await builder.submit(who, subscriptions.set_properties, [given])


async def _set_topic_visibility(
    builder: Builder, who: str, conversation: Conversation, visibility: Visibility
) -> None:
    channel_id = builder.channel(conversation.channel).id
    await builder.submit(
        who, user_topics.set_visibility, channel_id, conversation.topic, visibility
    )


async def _star(builder: Builder, who: str, scripted: ScriptedMessage) -> None:
    message_id, user_id = builder.message_id(scripted), builder.user(who).id
    (message,), relations = await builder.log.store.read(
        lambda c: (queries.messages(c, [message_id]), queries.relations(c, user_id, [message_id]))
    )
    known = flags.KnownMessage(
        message=message, flags=relations[message_id].flags, is_read=False, is_mentioned=False
    )
    await builder.submit(who, flags.change, [known], Flag.STARRED, True)


async def _create_snippet(builder: Builder, title: str, content: str) -> None:
    await builder.submit(OWNER.name, snippets.create, title, content)


async def _create_draft(builder: Builder, who: str, channel: str, topic: str, text: str) -> None:
    writing = drafts.Writing(
        kind=DraftKind.CHANNEL, to=(builder.channel(channel).id,), topic=topic, content=text
    )
    await builder.submit(who, drafts.create, [writing])


async def _schedule_message(builder: Builder) -> None:
    who, channel, topic, text, at = SCHEDULED
    draft = sending.Draft(
        to=sending.ToChannel(topic, name=channel),
        content=text,
        rendered=builder.rendered(who, text),
        client=CLIENT,
        read_by_sender=True,
    )
    await builder.submit(who, scheduled.schedule, draft, int(builder.calendar.time(at)))


async def _set_reminder(builder: Builder) -> None:
    who, label, at, note = REMINDER
    message_id = builder.message_id(builder.labels[label])
    found = await builder.log.store.read(queries.messages, [message_id])
    await builder.submit(
        who,
        reminders.set_reminder,
        builder.render,
        message_id,
        found[0],
        int(builder.calendar.time(at)),
        note,
    )


async def _read_messages(
    builder: Builder, person: Person, conversations: Sequence[Conversation]
) -> None:
    """Mark all messages as read but those that are to be unread, and set the person's presence."""
    kept = {
        builder.message_id(scripted)
        for conversation in conversations
        for scripted in _unread(conversation, person.name, builder.clock())
    }
    user_id = builder.user(person.name).id
    seen_at = int(builder.calendar.end) - person.away
    await builder.log.snapshot(user_id, lambda _: None, lambda *_: None)
    await builder.submit(
        person.name, _mark_read, kept, notes=(PresenceSeen(user_id, seen_at, seen_at),)
    )


def _unread(conversation: Conversation, name: str, now: float) -> Sequence[ScriptedMessage]:
    """The messages of a conversation that the person has not read: as the script says, or else the
    recent ones after their own last message."""
    if name in conversation.unread:
        return [scripted for scripted in conversation.messages if scripted.who != name][
            -conversation.unread[name] :
        ]
    if name == OWNER.name:
        return ()
    own = [n for n, scripted in enumerate(conversation.messages) if scripted.who == name]
    newer = conversation.messages[own[-1] + 1 :] if own else conversation.messages
    return [scripted for scripted in newer if scripted.at > now - RECENT]


def _mark_read(moment: Moment, kept: set[int]) -> Decision[None]:
    """Mark all unread messages as read, except these."""
    unread = moment.state.unread.unread_ids(moment.state, moment.actor.id)
    return flags.mark_given_read(moment, [one for one in unread if one not in kept])
