"""The organization that is measured: made in process before the server starts."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.asking import basic
from tertulia.app import opened_log, opened_vault
from tertulia.config import Config
from tertulia.domain import realms, subscribing, users
from tertulia.domain.subscribing import COLORS
from tertulia.model.changes import ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.users import Credential, User
from tertulia.state.moment import Decision, Moment

BATCH = 500
SMALL, MIDDLE, LARGE = "small", "middle", "large"
"""Channels of 10, 200 and 5,000 subscribers."""
SIZES = {SMALL: 10, MIDDLE: 200, LARGE: 5000}
SENDERS = 8
"""The first people; they are in all channels."""


@dataclass(frozen=True)
class Organization:
    """Who can be asked as: Authorization headers, the first of them in all channels."""

    people: list[str]


async def made(config: Config) -> Organization:
    """Found the organization and fill it, by the log alone."""
    vault = opened_vault(config, create=True)
    people: list[str] = []
    async with opened_log(config, lambda _: None) as log:
        owner = await vault.credential(realms.FIRST_USER, None)
        uuid = "00000000-0000-4000-8000-000000000000"
        await log.submit(None, realms.found, "Bench", uuid, "o@example.com", "Owner", owner)
        first = log.state.users.next_id()
        for start in range(0, SIZES[LARGE], BATCH):
            batch = {}
            for number in range(start, start + BATCH):
                user = User(
                    id=first + number, address=f"p{number}@example.com", full_name=f"P {number}"
                )
                batch[user] = await vault.credential(user.id, None)
                people.append(basic(user.address, vault.api_key(batch[user])))
            await log.submit(None, _join, batch)
        for name, size in SIZES.items():
            await log.submit(None, _open, name, range(first, first + size))
    vault.close()
    return Organization(people)


def _join(moment: Moment, batch: Mapping[User, Credential]) -> Decision[None]:
    state, now = moment.state, moment.now
    return Decision(None, [users.created(state, user, own, now) for user, own in batch.items()])


def _open(moment: Moment, name: str, user_ids: range) -> Decision[None]:
    state = moment.state
    channel = Channel(id=state.channels.next_id(), name=name, created_at=int(moment.now))
    people = [state.users[user_id] for user_id in user_ids]
    colors = dict.fromkeys(user_ids, COLORS[0])
    subscribed = subscribing.subscribed(state, channel, people, moment.now, colors)
    return Decision(None, [ChannelCreated(channel=channel), subscribed])
