"""Random histories of an organization, and what must hold of it at any time.

Hypothesis does not drive event loops, so a test draws a seed and a length, and drives one itself.
Each step is a request as a client makes it where there is an endpoint for it, and otherwise
changes that are made without asking anybody.
"""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from tertulia.config import Config
from tertulia.model.changes import (
    AnyChange,
    ChannelChanged,
    ChannelCreated,
    Subscribed,
    Unsubscribed,
    UserChanged,
    UserDeactivated,
    UserReactivated,
)
from tertulia.model.channels import Channel
from tertulia.model.users import Role
from tertulia.state.organization import State
from tests.support import Organization, Reply, founded

PEOPLE = ("ann", "ben", "cleo", "gus", "robo")
TOPICS = ("", "lunch", "Lunch", "✔ lunch", "plans")
TEXTS = (
    "hello",
    "@**Ben** look",
    "@**all** everybody",
    "@**topic** you",
    "@_**Cleo** quietly",
    "@**Ann** and @**all** and @**topic**",
    "/me waves",
    "https://example.com",
)

Step = Callable[["History"], Awaitable[None]]


@dataclass
class History:
    """An organization to which random things happen."""

    org: Organization
    rng: random.Random
    sent: list[int] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """What was done, to be read when a test fails."""

    @property
    def state(self) -> State:
        return self.org.node.state

    async def step(self) -> None:
        """One more thing happens."""
        (step,) = self.rng.choices(list(STEPS), list(STEPS.values()))
        self.done.append(step.__name__)
        await step(self)

    async def run(self, steps: int) -> None:
        """So many things happen, one after the other."""
        for _ in range(steps):
            await self.step()

    # What they happen to

    def who(self) -> str:
        """Somebody whose account is active."""
        return self.rng.choice(
            [n for n in PEOPLE if self.state.users[self.org[n].user_id].is_active]
        )

    def channel(self) -> Channel | None:
        channels = list(self.state.channels)
        return self.rng.choice(channels) if channels else None

    def some_messages(self) -> list[int]:
        return sorted(self.rng.sample(self.sent, min(len(self.sent), self.rng.randint(1, 4))))

    def accepted(self, reply: Reply) -> bool:
        """A refusal is as good as an answer here; a mistake of the server is not."""
        assert reply.status < 500, (self.done, reply.body)
        return reply.status == 200

    async def do(self, *changes: AnyChange) -> None:
        await self.org.do(*changes)

    def sees(self, user_id: int, channel: Channel) -> bool:
        """Whether the channel is more than a name that the user may not know."""
        user = self.state.users[user_id]
        if channel.is_web_public or self.state.is_subscribed(user_id, channel.id):
            return True
        return not user.is_guest and (not channel.is_private or user.is_administrator)


async def send_to_channel(history: History) -> None:
    channel = history.channel()
    if channel is None:
        return
    rng = history.rng
    reply = await history.org[history.who()].post(
        "/messages",
        type="channel",
        to=channel.id,
        topic=rng.choice(TOPICS),
        content=rng.choice(TEXTS),
        read_by_sender=rng.choice([True, False]),
    )
    if history.accepted(reply):
        history.sent.append(reply.body["id"])


async def send_directly(history: History) -> None:
    rng = history.rng
    to = [history.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(1, 3))]
    reply = await history.org[history.who()].post(
        "/messages",
        type="direct",
        to=to,
        content=rng.choice(TEXTS),
        read_by_sender=rng.choice([True, False]),
    )
    if history.accepted(reply):
        history.sent.append(reply.body["id"])


async def send_at_once(history: History) -> None:
    """Several of these and of other things, which are committed together."""
    steps = [send_to_channel, send_directly, flag, send_to_channel]
    await asyncio.gather(*(step(history) for step in history.rng.sample(steps, 3)))


async def flag(history: History) -> None:
    if not history.sent:
        return
    rng = history.rng
    who = history.who()
    name = rng.choice(["read", "read", "read", "starred", "collapsed"])
    # Whoever names one message that they cannot read is refused all of them.
    for ids in (history.some_messages(), [rng.choice(history.sent)], [rng.choice(history.sent)]):
        reply = await history.org[who].post(
            "/messages/flags", messages=ids, op=rng.choice(["add", "remove"]), flag=name
        )
        history.accepted(reply)


async def create_channel(history: History) -> None:
    state, rng = history.state, history.rng
    if len(state.channels) >= 5:
        return
    is_private = rng.random() < 0.4
    new_id = state.channels.next_id()
    people = [history.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(1, 4))]
    channel = Channel(
        id=new_id,
        name=f"Channel {new_id}",
        created_at=int(history.org.node.clock()),
        is_private=is_private,
        history_public=not is_private or rng.random() < 0.5,
    )
    # Who could not see it before can now: guests, and of a private one all but administrators.
    gained = [
        user_id
        for user_id in people
        if state.users[user_id].is_guest
        or (is_private and not state.users[user_id].is_administrator)
    ]
    await history.do(
        ChannelCreated(channel=channel),
        Subscribed(
            channel_id=new_id,
            colors=dict.fromkeys(people, "#76ce90"),
            after=state.last_message_id,
            gained=tuple(gained),
        ),
    )


async def subscribe(history: History) -> None:
    channel, state = history.channel(), history.state
    if channel is None or channel.is_archived:
        return
    user_id = history.org[history.who()].user_id
    if state.is_subscribed(user_id, channel.id):
        return
    await history.do(
        Subscribed(
            channel_id=channel.id,
            colors={user_id: history.rng.choice(["#76ce90", "#fae589"])},
            after=state.last_message_id,
            gained=() if history.sees(user_id, channel) else (user_id,),
        )
    )


async def unsubscribe(history: History) -> None:
    channel, state = history.channel(), history.state
    if channel is None:
        return
    user_id = history.org[history.who()].user_id
    if not state.is_subscribed(user_id, channel.id):
        return
    user = state.users[user_id]
    loses = not channel.is_web_public and (
        user.is_guest or (channel.is_private and not user.is_administrator)
    )
    await history.do(
        Unsubscribed(
            channel_id=channel.id,
            user_ids=(user_id,),
            until=state.last_message_id,
            lost=(user_id,) if loses else (),
        )
    )


async def archive(history: History) -> None:
    channel = history.channel()
    if channel is None or history.rng.random() < 0.5:
        return
    was = {"is_archived": channel.is_archived}
    values = {"is_archived": not channel.is_archived}
    await history.do(ChannelChanged(channel_id=channel.id, values=values, was=was))


async def change_role(history: History) -> None:
    name = history.rng.choice(["ben", "cleo"])
    user = history.state.users[history.org[name].user_id]
    role = history.rng.choice([Role.MEMBER, Role.MODERATOR, Role.ADMINISTRATOR])
    if user.is_active and role is not user.role:
        change = UserChanged(user_id=user.id, values={"role": role}, was={"role": user.role})
        await history.do(change)


async def deactivate_or_reactivate(history: History) -> None:
    name = history.rng.choice(["ben", "gus"])
    user = history.state.users[history.org[name].user_id]
    await history.do(
        UserDeactivated(user_id=user.id) if user.is_active else UserReactivated(user_id=user.id)
    )


STEPS: dict[Step, int] = {
    send_to_channel: 10,
    send_directly: 4,
    send_at_once: 3,
    flag: 6,
    create_channel: 3,
    subscribe: 4,
    unsubscribe: 3,
    archive: 1,
    change_role: 1,
    deactivate_or_reactivate: 1,
}


@asynccontextmanager
async def beginning(config: Config, seed: int) -> AsyncIterator[History]:
    """A new organization with `PEOPLE` and two channels, before anything has happened."""
    async with founded(config) as org:
        await org.add("ben")
        await org.add("cleo")
        await org.add("gus", Role.GUEST)
        await org.add("robo", owner="ben")
        await org.channel("lounge", "ann", "ben", "gus")
        await org.channel("den", "ben", "cleo", is_private=True, history_public=False)
        yield History(org, random.Random(seed))


def on_a_new_database(
    url: str, seed: int, test: Callable[[History, Config], Awaitable[None]]
) -> None:
    """Run the test with an organization of its own, on an event loop of its own."""

    async def run(config: Config) -> None:
        async with beginning(config, seed) as history:
            try:
                await test(history, config)
            except BaseException as error:
                error.add_note(f"seed {seed}: {', '.join(history.done)}")
                raise

    with tempfile.TemporaryDirectory(prefix="tertulia-") as directory:
        config = Config(data_dir=directory, database_url=url, external_url="http://chat.test")
        asyncio.run(run(config))


def same(one: State, other: State) -> None:
    """Fails with what differs between two states."""
    assert one.seq == other.seq
    for name, table in one.tables.items():
        rows = other.tables[name].rows
        for key in table.rows.keys() | rows.keys():
            assert table.rows.get(key) == rows.get(key), (name, key)
            assert msgspec.json.encode(table.rows[key]) == msgspec.json.encode(rows[key])
    indexes = [name for name, value in vars(one).items() if isinstance(value, dict)]
    for name in set(indexes) - {"tables"}:
        assert without_empty(getattr(one, name)) == without_empty(getattr(other, name)), name


def without_empty(index: dict[object, object]) -> dict[object, object]:
    """An index may keep empty sets where there was something once."""
    return {
        key: value for key, value in index.items() if value or not isinstance(value, set | dict)
    }
