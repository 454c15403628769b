"""The demo: a small organization to explore. It's the team of a café with two weeks of messages.

It's created at the first start with `--demo`, as if everything had just happened. `cafe.toml`,
`talk`, and `pictures` have its content, which `story` reads and `steps` turns into commands.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.app import founding
from tertulia.app.founding import opened_log, opened_vault
from tertulia.demo.story import cafe
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.state.state import State
from tertulia.store import installation
from tertulia.store.database import READING
from tertulia.store.store import database_at

PASSWORD: Final = "espresso-please"  # noqa: S105 (public: printed at every start)
_MARK: Final = "demo"
_BEGUN, _DONE = "begun", "done"
_END: Final = "demo_end"
"""The key of the fact with the UNIX time of the first start, at which the story ends."""


class NotADemo(Refused):
    """The organization in this data directory isn't a demo."""


class Resident(Struct, frozen=True, kw_only=True):
    """An account of the demo, with what's needed to sign in to it."""

    full_name: str
    role: Role
    address: str
    password: str
    api_key: str


async def prepared(config: Config) -> list[Resident]:
    """Create the demo if there's no organization, or complete it after an interruption. Return its
    accounts. Raises NotADemo if there's another organization."""
    mark = _require_demo(config)
    if mark != _DONE:
        await _make(config)
    async with opened_log(config, lambda _: None) as log:
        vault = opened_vault(config)
        try:
            await founding.require_fitting(log, vault)
            return _residents(log.state, vault)
        finally:
            vault.close()


def prepared_apart(config: Config) -> list[Resident] | None:
    """Call `prepared` in a child process: its 40 MB would otherwise stay with the server.

    Call this before threads and event loops start, and before serving the database. Returns None if
    the child failed: `prepared` then continues, and reports the error. Raises NotADemo if there's
    another organization.
    """
    _require_demo(config)
    lifeline, end = os.pipe()
    receiving, sending = os.pipe()
    if child := os.fork():
        os.close(lifeline)
        os.close(sending)
        try:
            with os.fdopen(receiving, "rb") as result:
                residents = result.read()
            os.waitpid(child, 0)
        finally:
            os.close(end)
        if not residents:
            return None
        return msgspec.json.decode(residents, type=list[Resident])
    code = 1
    try:
        os.close(end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
        with database_at(config.data_path, config.database_url).served():
            encoded = msgspec.json.encode(asyncio.run(prepared(config)))
        with os.fdopen(sending, "wb") as file:
            file.write(encoded)
        code = 0
    finally:
        os._exit(code)


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)  # Returns when the parent has ended.
    os._exit(1)


def _require_demo(config: Config) -> str | None:
    """Return the demo's mark in the database; None without an organization."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        return None
    with contextlib.closing(database.connect(readonly=True, limits=READING)) as connection:
        mark = installation.value(connection, _MARK)
        if mark is None and installation.is_founded(connection):
            raise NotADemo(
                "The organization here isn't a demo, so --demo doesn't change it. Run `serve`"
                " without --demo, or use a different --data-dir."
            )
    return mark


async def _make(config: Config) -> None:
    # Imported here because only the first start needs it.
    from tertulia.demo.builder import STEP, Builder, Clock
    from tertulia.demo.steps import build
    from tertulia.demo.story import Calendar

    clock = Clock(time.time())
    async with opened_log(config, lambda _: None, clock=clock) as log:
        begun = await log.store.read(installation.value, _MARK)
        vault = opened_vault(config, create=begun is None)
        try:
            calendar = Calendar(await _end(log))
            if log.state.is_empty:
                clock.now = calendar.time(cafe().founded)
                await _found(log, vault)
            done = await log.store.read(installation.value, STEP)
            files, disk = config.opened_files()
            builder = Builder(
                cafe=cafe(),
                log=log,
                vault=vault,
                files=files,
                disk=disk,
                host=config.address_host,
                clock=clock,
                calendar=calendar,
                password=PASSWORD,
                done=int(done or 0),
            )
            await build(builder)
            await log.store.write(lambda c: installation.put(c, _MARK, _DONE))
        finally:
            vault.close()


async def _end(log: Log) -> float:
    """Return the time at which the story ends, which stays the same after an interruption."""
    known = await log.store.read(installation.value, _END)
    if known is not None:
        return float(known)
    end = int(time.time())
    # Written first: without it, an interrupted demo would look like an ordinary organization.
    await log.store.write(lambda c: installation.put(c, _MARK, _BEGUN))
    await log.store.write(lambda c: installation.put(c, _END, str(end)))
    return float(end)


async def _found(log: Log, vault: Vault) -> None:
    owner = cafe().owner
    founder = founding.Founder(
        organization=cafe().organization,
        address=cafe().address(owner),
        full_name=owner.full_name,
        password=PASSWORD,
    )
    await founding.found(log, vault, founder)


def _residents(state: State, vault: Vault) -> list[Resident]:
    introduced = [cafe().address(person) for person in cafe().people if person.introduced]
    result = map(state.user_with_address, introduced)
    return [
        Resident(
            full_name=user.full_name,
            role=user.role,
            address=user.address,
            password=PASSWORD,
            api_key=vault.api_key(state.credentials[user.id]),
        )
        for user in result
        if user is not None and user.is_active
    ]
