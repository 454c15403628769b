"""The demonstration: a small organization to look around in, the team of a café with two weeks of
talk.

It is created at the first start with `--demo`, with times as if it had just happened: `people` has
the accounts, `channels` the channels and groups, the files in `talk` the messages. `steps` turns
all of that into commands, which `builder` submits.
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
from tertulia.app.opening import opened_log, opened_vault
from tertulia.demo.people import OWNER, PEOPLE
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.vault import Vault
from tertulia.state.organization import State
from tertulia.store import installation
from tertulia.store.database import READING
from tertulia.store.store import database_at

PASSWORD: Final = "espresso-please"  # noqa: S105 (printed at every start; it guards nothing)
ORGANIZATION: Final = "Café Tertulia"
_MARK: Final = "demo"
_BEGUN, _DONE = "begun", "done"
_END: Final = "demo_end"
"""The time at which the talk ends, in UNIX seconds: that of the first start."""


class NotADemo(Refused):
    """The organization in this data directory is not a demonstration."""


class Resident(Struct, frozen=True, kw_only=True):
    """An account of the demonstration, and how to sign in to it."""

    full_name: str
    role: Role
    address: str
    password: str
    api_key: str


async def prepared(config: Config) -> list[Resident]:
    """Create the demonstration if there is no organization, or finish it if creating was
    interrupted. Returns its accounts. NotADemo where there is another organization."""
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
    """The same in a process of its own: what is loaded and drawn for that would otherwise stay with
    the server as long as it runs. To be called before there are threads and an event loop, and
    before the caller serves the database itself. NotADemo where there is another organization.

    What fails there is not said, and None returned: `prepared` finds it unfinished, goes on, and
    says it.
    """
    _require_demo(config)
    ours, theirs = os.pipe()
    answer, told = os.pipe()
    if child := os.fork():
        os.close(ours)
        os.close(told)
        try:
            with os.fdopen(answer, "rb") as found:
                residents = found.read()
            os.waitpid(child, 0)
        finally:
            os.close(theirs)
        if not residents:
            return None
        return msgspec.json.decode(residents, type=list[Resident])
    code = 1
    try:
        os.close(theirs)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, args=(ours,), daemon=True).start()
        with database_at(config.data_path, config.database_url).served():
            encoded = msgspec.json.encode(asyncio.run(prepared(config)))
        with os.fdopen(told, "wb") as file:
            file.write(encoded)
        code = 0
    finally:
        os._exit(code)


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)  # Returns when nobody can write to it any more.
    os._exit(1)


def _require_demo(config: Config) -> str | None:
    """The demonstration's mark in the database; None without an organization. Changes nothing."""
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
    # Imported here: only a first start needs the drawings and the script.
    from tertulia.demo.builder import STEP, Builder, Clock
    from tertulia.demo.script import Calendar
    from tertulia.demo.steps import BEGINNING, make

    clock = Clock(time.time())
    async with opened_log(config, lambda _: None, clock=clock) as log:
        begun = await log.store.read(installation.value, _MARK)
        vault = opened_vault(config, create=begun is None)
        try:
            end = await _end(log)
            calendar = Calendar(end)
            if log.state.is_empty:
                clock.now = calendar.time(BEGINNING)
                await _found(log, vault)
            done = await log.store.read(installation.value, STEP)
            files, disk = config.opened_files()
            builder = Builder(
                log=log,
                vault=vault,
                files=files,
                disk=disk,
                host=config.address_host,
                clock=clock,
                calendar=calendar,
                done=int(done or 0),
            )
            await make(builder, PASSWORD)
            await log.store.write(lambda c: installation.put(c, _MARK, _DONE))
        finally:
            vault.close()


async def _end(log: Log) -> float:
    """The time at which the talk ends. A start that goes on after an interruption has the same."""
    known = await log.store.read(installation.value, _END)
    if known is not None:
        return float(known)
    end = int(time.time())
    # The mark first: an interrupted demonstration without it would be refused as another
    # organization.
    await log.store.write(lambda c: installation.put(c, _MARK, _BEGUN))
    await log.store.write(lambda c: installation.put(c, _END, str(end)))
    return float(end)


async def _found(log: Log, vault: Vault) -> None:
    founder = founding.Founder(
        organization=ORGANIZATION,
        address=OWNER.address,
        full_name=OWNER.full_name,
        password=PASSWORD,
    )
    await founding.found(log, vault, founder)


def _residents(state: State, vault: Vault) -> list[Resident]:
    introduced = [person.address for person in PEOPLE if person.introduced]
    found = (state.user_with_address(address) for address in introduced)
    return [
        Resident(
            full_name=user.full_name,
            role=user.role,
            address=user.address,
            password=PASSWORD,
            api_key=vault.api_key(state.credentials[user.id]),
        )
        for user in found
        if user is not None and user.is_active
    ]
