"""How the story leaves everybody: what they have read, starred, begun to write, and planned."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from tertulia.demo.cast import LEFT, OWNER, PEOPLE, Person
from tertulia.demo.script import Conversation, Said
from tertulia.demo.stage import CLIENT, Stage
from tertulia.domain.channels import subscriptions, user_topics
from tertulia.domain.messages import drafts, flags, reminders, scheduled, sending, snippets
from tertulia.model.composing import DraftKind
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.state.moment import Decision, Moment
from tertulia.store import queries
from tertulia.store.writing import PresenceSeen

RECENT: Final = 3 * 3600
"""Seconds. What is older, everybody has read, if nothing else is said."""
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
LATER: Final = (
    "iris",
    "general",
    "this week",
    "Good morning! The delivery comes **before** eight today, please leave the back door free."
    " @**all** whoever is first switches the oven on.",
    "+1 06:45",
)
REMINDED: Final = ("iris", "inspection", "+1 09:00", "Bring the folder with the certificates!")
"""Who, of which message, when, and with which note."""

Act = Callable[[Stage], Awaitable[object]]


def last_steps(told: Sequence[Conversation]) -> Iterator[Act]:
    """What is done at the end, after all that was said."""
    for who, name in PINNED:
        yield partial(_set, who=who, channel=name, setting="pin_to_top")
    for who, name in MUTED:
        yield partial(_set, who=who, channel=name, setting="is_muted")
    for talk in told:
        for who in talk.followed:
            yield partial(_hear, who=who, talk=talk, visibility=Visibility.FOLLOWED)
        for who in talk.muted:
            yield partial(_hear, who=who, talk=talk, visibility=Visibility.MUTED)
    for talk in told:
        for said in talk.said:
            for who in said.stars:
                yield partial(_star, who=who, said=said)
    for title, content in SNIPPETS:
        yield partial(_keep_snippet, title=title, content=content)
    for who, channel, topic, text in DRAFTS:
        yield partial(_begin_draft, who=who, channel=channel, topic=topic, text=text)
    yield _plan_message
    yield _plan_reminder
    for person in PEOPLE:
        if person.name != LEFT:
            yield partial(_read, person=person, told=told)


async def _set(stage: Stage, who: str, channel: str, setting: str) -> None:
    channel_id = stage.channel(channel).id
    given = subscriptions.Property(channel_id=channel_id, name=setting, value=True)
    await stage.submit(who, subscriptions.set_properties, [given])


async def _hear(stage: Stage, who: str, talk: Conversation, visibility: Visibility) -> None:
    channel_id = stage.channel(talk.channel).id
    await stage.submit(who, user_topics.set_visibility, channel_id, talk.topic, visibility)


async def _star(stage: Stage, who: str, said: Said) -> None:
    message_id, user_id = stage.message(said), stage.user(who).id
    (message,), relations = await stage.log.store.read(
        lambda c: (queries.messages(c, [message_id]), queries.relations(c, user_id, [message_id]))
    )
    known = flags.Known(
        message=message, flags=relations[message_id].flags, is_read=False, is_mentioned=False
    )
    await stage.submit(who, flags.change, [known], Flag.STARRED, True)


async def _keep_snippet(stage: Stage, title: str, content: str) -> None:
    await stage.submit(OWNER.name, snippets.create, title, content)


async def _begin_draft(stage: Stage, who: str, channel: str, topic: str, text: str) -> None:
    writing = drafts.Writing(
        kind=DraftKind.CHANNEL, to=(stage.channel(channel).id,), topic=topic, content=text
    )
    await stage.submit(who, drafts.create, [writing])


async def _plan_message(stage: Stage) -> None:
    who, channel, topic, text, at = LATER
    draft = sending.Draft(
        to=sending.ToChannel(topic, name=channel),
        content=text,
        rendered=stage.rendered(who, text),
        client=CLIENT,
        read_by_sender=True,
    )
    await stage.submit(who, scheduled.schedule, draft, int(stage.calendar.time(at)))


async def _plan_reminder(stage: Stage) -> None:
    who, label, at, note = REMINDED
    message_id = stage.message(stage.labels[label])
    found = await stage.log.store.read(queries.messages, [message_id])
    await stage.submit(
        who,
        reminders.set_reminder,
        stage.render,
        message_id,
        found[0],
        int(stage.calendar.time(at)),
        note,
    )


async def _read(stage: Stage, person: Person, told: Sequence[Conversation]) -> None:
    """Somebody has read everything but what is new to them; and is there, or was."""
    kept = {
        stage.message(said) for talk in told for said in _unread(talk, person.name, stage.clock())
    }
    user_id = stage.user(person.name).id
    seen_at = int(stage.calendar.end) - person.away
    await stage.log.snapshot(user_id, lambda _: None, lambda *_: None)
    await stage.submit(
        person.name, _mark_read, kept, notes=(PresenceSeen(user_id, seen_at, seen_at),)
    )


def _unread(talk: Conversation, name: str, now: float) -> Sequence[Said]:
    """What somebody has not read of a conversation: as it is written there, or what is recent, and
    newer than what they said in it themselves."""
    if name in talk.unread:
        return [said for said in talk.said if said.who != name][-talk.unread[name] :]
    if name == OWNER.name:
        return ()
    own = [n for n, said in enumerate(talk.said) if said.who == name]
    newer = talk.said[own[-1] + 1 :] if own else talk.said
    return [said for said in newer if said.at > now - RECENT]


def _mark_read(moment: Moment, kept: set[int]) -> Decision[None]:
    """Mark all that is unread as read, but these."""
    unread = moment.state.unread.unread_ids(moment.state, moment.actor.id)
    return flags.mark_given_read(moment, [one for one in unread if one not in kept])
