"""The organization used in the test."""

from collections.abc import Sequence

from bench.soak.organization import join, open_channel

from tertulia.app.founding import opened_log, opened_vault
from tertulia.model.users import Credential, User
from tertulia.service.config import Config
from tests.chaos.requests import Account


async def add_people(config: Config, names: Sequence[str]) -> list[Account]:
    """Create members in an organization that no server has open."""
    vault = opened_vault(config)
    async with opened_log(config, lambda _: None) as log:
        first = log.state.users.next_id()
        batch: list[tuple[User, Credential]] = []
        for number, name in enumerate(names):
            user = User(id=first + number, address=f"{name}@example.com", full_name=name)
            batch.append((user, await vault.credential(user.id, None)))
        await log.submit(None, join, batch)
    found = [Account(user.id, user.address, vault.api_key(own)) for user, own in batch]
    vault.close()
    return found


async def add_channels(config: Config, named: dict[str, list[int]]) -> dict[str, int]:
    """Create public channels with these subscribers. Return their IDs by name."""
    async with opened_log(config, lambda _: None) as log:
        return {
            name: await log.submit(None, open_channel, name, user_ids)
            for name, user_ids in named.items()
        }
