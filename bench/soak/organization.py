"""The organization of the soak test, created in process before the server starts."""

import random
from collections.abc import Sequence

import msgspec

from bench.api import basic
from tertulia.app.founding import opened_log, opened_vault
from tertulia.domain.accounts import users
from tertulia.domain.channels import subscription_changes
from tertulia.domain.channels.subscription_changes import COLORS
from tertulia.domain.organization import lifecycle
from tertulia.model.changes import ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.users import Credential, User
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision

BATCH = 500
CHANNELS = 100
HOMES = 2
"""The number of permanent channels of each person, in addition to the channel of everyone."""
FULL_CHANNELS = 6
"""The number of permanent channels of people with full clients."""
EVERYBODY = "everybody"


class Person(msgspec.Struct):
    """A person's account, with credentials."""

    id: int
    email: str
    api_key: str
    homes: list[int]
    """The channels that the person never leaves."""

    @property
    def authorization(self) -> str:
        return basic(self.email, self.api_key)


class Organization(msgspec.Struct):
    """The people and channels of the soak test."""

    people: list[Person]
    full: list[Person]
    """People with full clients."""
    channels: dict[int, str]
    """Names by ID, without the channel of everyone."""
    everybody: int
    """The channel of everyone."""


async def founded(config: Config, people: int, full: int, chance: random.Random) -> Organization:
    """Create the organization and fill it through the log."""
    vault = opened_vault(config, create=True)
    result: list[Person] = []
    async with opened_log(config, lambda _: None) as log:
        owner = await vault.credential(lifecycle.FIRST_USER, None)
        uuid = "00000000-0000-4000-8000-000000000000"
        await log.submit(None, lifecycle.create, "Soak", uuid, "o@example.com", "Owner", owner)
        first = log.state.users.next_id()
        total = people + full
        for start in range(0, total, BATCH):
            batch: dict[User, Credential] = {}
            for number in range(start, min(start + BATCH, total)):
                name = f"p{number}"
                user = User(id=first + number, address=f"{name}@example.com", full_name=name)
                batch[user] = await vault.credential(user.id, None)
                result.append(Person(user.id, user.address, vault.api_key(batch[user]), []))
            await log.submit(None, join, list(batch.items()))
        inhabitants: list[list[int]] = [[] for _ in range(CHANNELS)]
        for number, person in enumerate(result):
            homes = HOMES if number < people else FULL_CHANNELS
            for place in chance.sample(range(CHANNELS), homes):
                inhabitants[place].append(person.id)
        channels: dict[int, str] = {}
        for place, members in enumerate(inhabitants):
            channel_id = await log.submit(None, open_channel, f"channel {place}", members)
            channels[channel_id] = f"channel {place}"
            for user_id in members:
                result[user_id - first].homes.append(channel_id)
        everybody = await log.submit(
            None, open_channel, EVERYBODY, [person.id for person in result]
        )
    vault.close()
    return Organization(result[:people], result[people:], channels, everybody)


def join(context: CommandContext, batch: Sequence[tuple[User, Credential]]) -> Decision[None]:
    """Create these accounts, unless they exist."""
    state = context.state
    return Decision(
        None, [users.creation_change(state, user, credential) for user, credential in batch]
    )


def open_channel(context: CommandContext, name: str, user_ids: Sequence[int]) -> Decision[int]:
    """Create a public channel with these subscribers. Return its ID."""
    state = context.state
    channel = Channel(id=state.channels.next_id(), name=name, created_at=int(context.now))
    people = [state.users[user_id] for user_id in user_ids]
    colors = dict.fromkeys(user_ids, COLORS[0])
    subscribed = subscription_changes.subscription_change(state, channel, people, colors)
    return Decision(channel.id, [ChannelCreated(channel=channel), subscribed])
