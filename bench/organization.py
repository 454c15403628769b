"""The benchmark's organizations: people and channels, created in process through the log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from bench.api import basic
from tertulia.app.founding import opened_log, opened_vault
from tertulia.domain.accounts import users
from tertulia.domain.channels import subscription_changes
from tertulia.domain.channels.subscription_changes import COLORS
from tertulia.domain.organization import lifecycle
from tertulia.model.changes import AnyChange, ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.users import Credential, User
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision

BATCH = 500
"""Accounts per commit."""
BEGAN = 1_600_000_000
"""When the channels were created, in UNIX seconds."""
SMALL, MIDDLE, LARGE = "small", "middle", "large"
SIZES = {SMALL: 10, MIDDLE: 200, LARGE: 5000}
"""Additional channels and their numbers of subscribers, or all people if there are fewer."""


@dataclass(frozen=True)
class Organization:
    """The accounts and channels that requests use."""

    people: list[str]
    """Authorization headers. The first person is in every channel, and the next ones in most."""
    owner: str
    """The header of the organization's owner, who is in no channel."""
    first_user_id: int
    """The first person's ID. The others have the next IDs."""
    first_channel_id: int
    channels: int
    """The number of regular channels, `channel 0` and so on. Each has fewer subscribers than the
    previous one."""


async def create(config: Config, people: int, channels: int) -> Organization:
    """Create the organization and fill it."""
    vault = opened_vault(config, create=True)
    headers: list[str] = []
    async with opened_log(config, lambda _: None) as log:
        owner = await vault.credential(lifecycle.FIRST_USER, None)
        uuid = "00000000-0000-4000-8000-000000000001"
        await log.submit(None, lifecycle.create, "Bench", uuid, "o@example.com", "Owner", owner)
        as_owner = basic("o@example.com", vault.api_key(owner))
        first = log.state.users.next_id()
        everybody = range(first, first + people)
        left = iter(everybody)
        while ids := list(islice(left, BATCH)):
            batch = {}
            for user_id in ids:
                number = user_id - first
                address = f"p{number}@example.com"
                user = User(id=user_id, address=address, full_name=f"P {number}")
                batch[user] = await vault.credential(user_id, None)
                headers.append(basic(address, vault.api_key(batch[user])))
            await log.submit(None, _join, batch)
        begin = log.state.channels.next_id()
        await log.submit(None, _open, _channels(everybody, channels))
    vault.close()
    return Organization(headers, as_owner, first, begin, channels)


def _channels(people: range, count: int) -> Iterator[tuple[str, range]]:
    for number in range(count):
        yield f"channel {number}", people[: max(len(people) // (number + 1), 1)]
    for name, size in SIZES.items():
        yield name, people[:size]


def _join(context: CommandContext, batch: Mapping[User, Credential]) -> Decision[None]:
    state = context.state
    return Decision(
        None, [users.creation_change(state, user, credential) for user, credential in batch.items()]
    )


def _open(context: CommandContext, channels: Iterator[tuple[str, range]]) -> Decision[None]:
    state = context.state
    changes: list[AnyChange] = []
    begin = state.channels.next_id()
    for number, (name, user_ids) in enumerate(channels):
        channel = Channel(id=begin + number, name=name, created_at=BEGAN)
        people = [state.users[user_id] for user_id in user_ids]
        colors = dict.fromkeys(user_ids, COLORS[0])
        subscribed = subscription_changes.subscription_change(state, channel, people, colors)
        changes += [ChannelCreated(channel=channel), subscribed]
    return Decision(None, changes)
