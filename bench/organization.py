"""The organization that is measured: made in process before the server starts."""

from dataclasses import dataclass

from bench.asking import basic
from tertulia.app import opened_log, opened_vault
from tertulia.config import Config
from tertulia.domain import realms
from tertulia.model.changes import AnyChange, ChannelCreated, Subscribed, UserCreated
from tertulia.model.channels import Channel
from tertulia.model.users import PersonalSettings, User
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
    """Found the organization and fill it."""
    vault = opened_vault(config, create=True)
    people: list[str] = []
    async with opened_log(config, lambda _: None) as log:

        async def do(changes: list[AnyChange]) -> None:
            def decide(_: Moment) -> Decision[None]:
                return Decision(None, changes)

            await log.submit(None, decide)

        owner = await vault.credential(realms.FIRST_USER, None)
        uuid = "00000000-0000-4000-8000-000000000000"
        await log.submit(None, realms.found, "Bench", uuid, "o@example.com", "Owner", owner)
        first = log.state.users.next_id()
        for start in range(0, SIZES[LARGE], BATCH):
            batch: list[AnyChange] = []
            for number in range(start, start + BATCH):
                user = User(
                    id=first + number, address=f"p{number}@example.com", full_name=f"P {number}"
                )
                credential = await vault.credential(user.id, None)
                people.append(basic(user.address, vault.api_key(credential)))
                settings = PersonalSettings(user_id=user.id)
                batch.append(UserCreated(user=user, credential=credential, settings=settings))
            await do(batch)
        channel_id = log.state.channels.next_id()
        for offset, (name, size) in enumerate(SIZES.items()):
            channel = Channel(id=channel_id + offset, name=name, created_at=int(log.clock()))
            colors = {first + number: "#76ce90" for number in range(size)}
            subscribed = Subscribed(channel_id=channel.id, colors=colors, after=0)
            await do([ChannelCreated(channel=channel), subscribed])
    vault.close()
    return Organization(people)
