"""Missed-message notifications reach exactly the people that a plain rule names, once each,
whatever happens and whichever node crashes."""

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from tertulia.app import composition
from tertulia.domain import channel_access
from tertulia.domain.notifications.rules import (
    ACTIVE_SECONDS,
    MAX_ACTIVE_SECONDS,
    MAX_QUIET_RECHECK_SECONDS,
    QUIET_RECHECK_SECONDS,
    QUIET_RECHECKS,
    RECHECK_SECONDS,
    NotificationMethod,
)
from tertulia.domain.organization.lifecycle import WELCOME_BOT
from tertulia.log.log import Log
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message
from tertulia.model.user_topics import Visibility
from tertulia.service.config import Config
from tertulia.service.notifications.mail import MESSAGES, MailChannel
from tertulia.service.notifications.notifier import NotificationChannel, Notifier
from tertulia.service.notifications.push import PushChannel
from tertulia.state.state import State
from tertulia.store import log_entries, message_marks, outbox, pushes, queries
from tertulia.store.database import Connection
from tests.property.histories import (
    STEPS,
    History,
    Step,
    delete_file,
    edit_message,
    on_a_new_database,
    send_directly,
    send_to_channel,
    set_topic,
)
from tests.property.personal_steps import rest, use_device
from tests.property.test_state import both, counts, examples, new_database, seeds
from tests.property.web_steps import WEB_STEPS
from tests.push_service import Browser
from tests.support import open_organization

WILDCARDS = Flag.CHANNEL_WILDCARD_MENTIONED | Flag.TOPIC_WILDCARD_MENTIONED
CHOICES = (
    "enable_offline_email_notifications",
    "enable_followed_topic_email_notifications",
    "enable_followed_topic_wildcard_mentions_notify",
    "enable_stream_email_notifications",
    "enable_offline_push_notifications",
    "enable_followed_topic_push_notifications",
    "enable_stream_push_notifications",
    "enable_online_push_notifications",
    "wildcard_mentions_notify",
)
PERIODS = (30, 120, 600)
KEYS = Browser().keys


@both
@examples(2)
@given(seed=seeds)
def test_notified_people_match_a_plain_rule(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    with new_database(request, kind) as url, pytest.MonkeyPatch.context() as patch:
        # Nodes' background tasks run only when the test says so.
        patch.setattr(composition, "jobs_of", lambda *_: ())
        on_a_new_database(url, seed, check_told)


async def check_told(history: History, config: Config) -> None:
    history.clock.stopped_at = history.clock()
    rules = [Rule(NotificationMethod.MAIL), Rule(NotificationMethod.PUSH)]
    for _ in range(8):
        await change_choices(history)
        await get_a_phone(history)
    async with open_organization(config, clock=history.clock) as other:
        for _ in range(5):
            await watched(history, rules, 75, other.node.log)
            # In some histories, nobody wants notifications for a long time.
            if all(rule.told for rule in rules):
                break
    assert any(rule.told for rule in rules), "nobody was told"
    async with open_organization(config, clock=history.clock) as later:
        again = History(later, history.rng, history.sent, history.done, history.clock)
        await watched(again, rules, 30, history.org.node.log)


async def watched(history: History, rules: "list[Rule]", steps: int, other: Log) -> None:
    """Do steps at one node. After each, that node or another processes notifications."""
    rng, log = history.rng, history.org.node.log
    logs = (log, other)

    def node(number: int) -> Notifier:
        by_mail = MailChannel(logs[number], "http://chat.test", lambda: None)
        means: list[NotificationChannel] = [by_mail, PushChannel(logs[number], lambda: None)]
        return Notifier(logs[number], history.org.node.delivery.presence, means)

    nodes = [node(0), node(1)]
    for _ in range(steps):
        (step,) = rng.choices(list(MADE), list(MADE.values()))
        history.done.append(step.__name__)
        await step(history)
        await history.org.tick()
        for one in logs:
            await one.catch_up()
        chosen = rng.randrange(2)
        seen = await log.store.read(cursor)
        if rng.random() < 0.1:
            await crash(history, nodes[chosen])
            nodes[chosen] = node(chosen)
            seen = min(seen, await log.store.read(cursor))
        elif rng.random() < 0.1:
            await nodes[1 - chosen].close()
            seen = await log.store.read(cursor)
        turn = nodes[chosen]._turn
        await nodes[chosen].once()
        if nodes[chosen]._holds_until > log.elapsed():
            # (On a database that isn't shared, a node may take over only from one that believes
            # so.)
            for rule in rules:
                if nodes[chosen]._turn != turn:
                    # If the previous node found nothing, process again.
                    rule.seen = min(rule.seen, seen)
                await rule.look(history)
                await rule.tell(history)
        for rule in rules:
            told = await (told_by_mail if rule.way is NotificationMethod.MAIL else told_by_push)(
                history
            )
            assert Counter(told) == Counter(rule.now), (rule.way, history.done)
            rule.now.clear()
    # The next node doesn't have to wait.
    for left in nodes:
        await left.close()


async def crash(history: History, node: Notifier) -> None:
    """Crash the node while it works, before or after a commit."""
    store = history.org.node.store
    real, lets = store.write, history.rng.randint(0, 2)

    class LostError(Exception):
        pass

    async def write(function: Any) -> Any:
        nonlocal lets
        if not lets:
            raise LostError
        lets -= 1
        return await real(function)

    store.write = write  # type: ignore[method-assign]
    try:
        await node.once()
    except LostError:
        pass
    finally:
        store.write = real  # type: ignore[method-assign]
    # After a while, other nodes notice.
    await store.tend_list(
        lambda c: c.run("UPDATE notice_cursor SET held_until = 0 WHERE holder = ?", (node._name,))
    )


def cursor(connection: Connection) -> int:
    """The last processed entry of the log."""
    ((seq,),) = connection.query("SELECT seq FROM notice_cursor")
    return int(seq)


async def told_by_mail(history: History) -> list[tuple[int, tuple[int, ...]]]:
    """Return who gets an email about which messages, and empty the outbox."""

    def take(connection: Connection) -> list[outbox.QueuedMail]:
        found = [one for one in outbox.queued(connection) if MESSAGES in one.mail.facts]
        for one in found:
            outbox.remove(connection, one)
        return found

    return [
        (one.mail.about or 0, tuple(map(int, one.mail.facts[MESSAGES].split())))
        for one in await history.org.node.store.write(take)
    ]


async def told_by_push(history: History) -> list[tuple[int, tuple[int, ...]]]:
    """Return who gets which pending push notifications."""

    def take(connection: Connection) -> list[pushes.Push]:
        ids = pushes.subscription_ids(connection)
        found = [push for one in ids for push in pushes.pushes_of(connection, one)]
        pushes.forget(connection, ids)
        return found

    found = await history.org.node.store.write(take)
    return [(one.user_id, one.message_ids) for one in found]


# Steps


async def change_choices(history: History) -> None:
    rng, who = history.rng, history.who()
    values: dict[str, Any] = {rng.choice(CHOICES): rng.random() < 0.8 for _ in range(2)}
    if rng.random() < 0.3:
        values["email_notifications_batching_period_seconds"] = rng.choice(PERIODS)
    history.accepted(await history.org[who].patch("/settings", **values))
    channel = history.channel()
    if channel is None:
        return
    names = ["email_notifications", "push_notifications", "wildcard_mentions_notify", "is_muted"]
    changed = {"property": rng.choice(names), "value": rng.random() < 0.5}
    reply = await history.org[history.who()].post(
        "/users/me/subscriptions/properties",
        subscription_data=[{"stream_id": channel.id, **changed}],
    )
    history.accepted(reply)


async def get_a_phone(history: History) -> None:
    person = history.org[history.who()]
    endpoint = f"https://push.example/{person.user_id}"
    reply = await person.post("/push_subscriptions", endpoint=endpoint, **KEYS)
    history.accepted(reply)


async def come(history: History) -> None:
    reply = await history.org[history.who()].post("/users/me/presence", status="active")
    history.accepted(reply)


async def time_goes_by(history: History) -> None:
    history.clock.ahead += history.rng.choice([5, 35, 121, 250, 250, 1300])


MADE: dict[Step, int] = {
    # A job removes files, and these nodes run no jobs. Each person has one phone without quiet
    # hours.
    **{s: n for s, n in STEPS.items() if s not in {*WEB_STEPS, delete_file, use_device}},
    change_choices: 25,
    get_a_phone: 10,
    come: 15,
    time_goes_by: 60,
    rest: 12,
}
for often in (send_to_channel, send_directly, edit_message, set_topic):
    MADE[often] *= 2


# The plain rule


class Rule:
    """A plain rule for who should be notified about which message."""

    def __init__(self, way: NotificationMethod) -> None:
        self.way = way
        self.seen = 0
        self.waiting: dict[tuple[int, str], set[tuple[int, float, float]]] = defaultdict(set)
        """By person and conversation: messages, when they are due, and when they expire."""
        self.now: list[tuple[int, tuple[int, ...]]] = []
        self.told: list[tuple[int, tuple[int, ...]]] = []

    async def look(self, history: History) -> None:
        log = history.org.node.log
        entries = await log.store.read(log_entries.entries, self.seen, 10**6, log.durable)
        for entry in entries:
            self.seen = entry.seq
            for user in history.state.users:
                if self.reaches(history.state, user.id) and self.newly_wants(
                    history.state, user.id, entry
                ):
                    self.note(history, user.id, entry)

    def note(self, history: History, user_id: int, entry: Entry) -> None:
        assert isinstance(entry.change, MessageSent | MessageEdited)
        message = entry.change.message
        period = history.state.settings[user_id].email_notifications_batching_period_seconds
        due = entry.at + (period if self.way is NotificationMethod.MAIL else 0)
        where = f"{message.direct_id}/{message.channel_id}/{topic_key(message.topic)}"
        self.waiting[user_id, where].add((message.id, due, due + MAX_ACTIVE_SECONDS))

    async def tell(self, history: History) -> None:
        now = history.clock()
        for (user_id, where), waiting in list(self.waiting.items()):
            due = {one for one in waiting if one[1] <= now}
            if not due:
                continue
            _, channel, _ = where.split("/", 2)
            channel_id = None if channel == "None" else int(channel)
            until = rests_until(history.state, user_id, now, channel_id)
            if until:
                waiting -= due
                if self.way is NotificationMethod.MAIL:
                    wait = min((until - now) / QUIET_RECHECKS, MAX_QUIET_RECHECK_SECONDS)
                    wait = max(wait, QUIET_RECHECK_SECONDS)
                    later = min(math.ceil(until / 60) * 60.0, now + wait)
                    waiting |= {(one, later, later + MAX_ACTIVE_SECONDS) for one, _, _ in due}
                continue
            latest = history.org.node.delivery.presence.of(user_id)
            settings = history.state.settings[user_id]
            waits = (
                self.way is NotificationMethod.MAIL or not settings.enable_online_push_notifications
            )
            if waits and latest is not None and now - latest.active_at < ACTIVE_SECONDS:
                waiting -= due
                later = now + RECHECK_SECONDS
                waiting |= {(one, later, end) for one, _, end in due if now < end}
                continue
            del self.waiting[user_id, where]
            by_conversation: dict[object, list[int]] = defaultdict(list)
            for message_id in sorted({one for one, _, _ in waiting}):
                message = await self.to_be_told(history, user_id, message_id)
                if message is not None:
                    by_conversation[message.conversation].append(message_id)
            if self.reaches(history.state, user_id):
                self.now += [(user_id, tuple(ids)) for ids in by_conversation.values()]
        self.told += self.now

    async def to_be_told(self, history: History, user_id: int, mid: int) -> Message | None:
        store, state = history.org.node.store, history.state
        found = await store.read(queries.messages, [mid])
        relation = (await store.read(message_marks.relations, user_id, [mid]))[mid]
        for message in found:
            if (
                state.users[user_id].is_active
                and channel_access.reads_message(state, state.users[user_id], message)
                and not relation.read
                and counts(state, user_id, message, relation)
                and self.wants(state, user_id, message, relation.flags)
            ):
                return message
        return None

    def newly_wants(self, state: State, user_id: int, entry: Entry) -> bool:
        change = entry.change
        if isinstance(change, MessageSent) and not change.gone:
            flags = change.flags.get(user_id, Flag(0))
            return user_id not in change.readers and self.wants(
                state, user_id, change.message, flags
            )
        if isinstance(change, MessageEdited) and not change.gone and not change.rendering_only:
            flags = change.flags.get(user_id, Flag(0))
            before = flags & ~change.mentioned.get(user_id, Flag(0))
            return (
                flags != before
                and user_id not in change.read_by
                and self.wants(state, user_id, change.message, flags)
                and not self.wants(state, user_id, change.message, before)
            )
        return False

    def wants(self, state: State, user_id: int, message: Message, flags: Flag) -> bool:
        """Whether someone wants to be notified about a message by this method."""
        user, choices = state.users[user_id], state.settings.get(user_id)
        if user.is_bot or user_id == message.sender_id or choices is None:
            return False
        if message.sender_id == WELCOME_BOT or (user_id, message.sender_id) in state.muted_users:
            return False
        addressed = self.chosen(choices, "enable_offline_email_notifications")
        if message.direct_id is not None:
            return addressed and user_id in state.directs[message.direct_id].members
        if addressed and flags & Flag.MENTIONED:
            return True
        own = state.subscription(user_id, message.channel_id or 0)
        if own is None or not own.is_active or not user.is_active:
            return False
        policy = state.visibility(user_id, own.channel_id, topic_key(message.topic))
        follows = policy is Visibility.FOLLOWED
        muted = policy is Visibility.MUTED or (own.is_muted and policy is Visibility.INHERIT)
        if addressed and (flags & WILDCARDS or message.mentions_all):
            if follows and choices.enable_followed_topic_wildcard_mentions_notify:
                return True
            counted = own.wildcard_mentions_notify
            counted = choices.wildcard_mentions_notify if counted is None else counted
            if counted and not muted:
                return True
        if follows and self.chosen(choices, "enable_followed_topic_email_notifications"):
            return True
        listens = self.chosen(own, "email_notifications")
        listens = (
            self.chosen(choices, "enable_channel_email_notifications")
            if listens is None
            else listens
        )
        return listens and not muted

    def reaches(self, state: State, user_id: int) -> bool:
        return (
            self.way is NotificationMethod.MAIL
            or state.push_subscriptions.of_user.count(user_id) > 0
        )

    def chosen(self, choices: Any, name: str) -> Any:
        """Someone's setting for this method, by the name of the setting for emails."""
        return getattr(
            choices, name if self.way is NotificationMethod.MAIL else name.replace("email", "push")
        )


def rests_until(state: State, user_id: int, now: float, channel_id: int | None) -> float:
    """Return the time until which someone's notifications about the channel are paused, or 0. None
    stands for direct messages. (None of their time zones changes its offset.)"""
    times = state.quiet_times.get(user_id)
    if times is None:
        return 0
    zone = state.users[user_id].timezone
    there = datetime.fromtimestamp(now, ZoneInfo(zone) if zone else UTC)
    passed = there.hour * 3600 + there.minute * 60 + there.second + there.microsecond / 1e6
    ends = [float(times.paused_until)] if times.paused_until > now else []
    for hours in times.hours:
        if hours.channel_ids and channel_id not in hours.channel_ids:
            continue
        length = (hours.end - hours.begin) * 60
        length += 86400 if length <= 0 else 0
        for ago in (0, 1):
            begun = ago * 86400 + passed - hours.begin * 60
            if (there.weekday() - ago) % 7 in hours.days and 0 <= begun < length:
                ends.append(round(now + length - begun))
    return max(ends, default=0)
