"""Setup for tests of an account's personal data."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tertulia.domain.accounts import users
from tertulia.model.users import PersonalSettings, Role, User
from tertulia.service.config import Config
from tests.support import Newcomer, Organization, Person, TestClock, new_organization

DAY = 86400
OTHERS = (Newcomer("ben"), Newcomer("cleo"), Newcomer("gus", Role.GUEST))


@asynccontextmanager
async def timed(config: Config) -> AsyncIterator[tuple[Organization, TestClock]]:
    """An organization of ann, ben, cleo, and the guest gus, with a clock that tests set. Ann and
    ben are in the channel "lounge"."""
    clock = TestClock()
    async with new_organization(config, clock=clock, others=OTHERS) as org:
        await org.channel("lounge", "ann", "ben")
        yield org, clock


def later(org: Organization, seconds: int = 60) -> int:
    """A time in the future."""
    return int(org.node.clock()) + seconds


def channel_id(org: Organization, name: str) -> int:
    """The ID of an existing channel."""
    channel = org.node.state.channel_named(name)
    assert channel is not None
    return channel.id


async def add_with(org: Organization, name: str, **settings: Any) -> Person:
    """A new account with its own personal settings."""
    state = org.node.state
    credential = await org.node.vault.credential(0, None)
    address = f"{name}@example.com"
    user = User(id=state.users.next_id(), address=address, full_name=name.title())
    change = users.creation_change(state, user, credential)
    own = PersonalSettings(user_id=user.id, **settings)
    await org.do(msgspec.structs.replace(change, settings=own))
    return org.person_of(name, user)


async def listed(person: Person, path: str, key: str) -> list[dict[str, Any]]:
    """The response of GET, which must equal what a new client gets."""
    found: list[dict[str, Any]] = (await person.get(path)).ok[key]
    data = (await person.register(fetch_event_types=[key], event_types=["heartbeat"])).data
    assert data[key] == found
    return found
