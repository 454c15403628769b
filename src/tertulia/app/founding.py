"""How an organization comes into being, and how an installation knows its secret again."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager

from msgspec import Struct

from tertulia.domain.channels.channels import NewChannel
from tertulia.domain.organization import founding, realms
from tertulia.domain.organization.founding import NewOrganization
from tertulia.log.log import Log
from tertulia.log.recovery import PositionFile
from tertulia.markup.render import Renderer
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, VaultError, load_secret
from tertulia.service.membership import Membership
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.store import backups, file_modes, installation
from tertulia.store.bus import peer_directory
from tertulia.store.database import READING, Connection
from tertulia.store.store import READ_SECONDS, Store, database_at


class NoOrganization(Exception):
    """There is nothing to open yet. `str(error)` says what to run first."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"There's no organization in {where} yet. To create it in a browser, run\n"
            "  tertulia serve\n"
            "or, to create it here,\n"
            "  tertulia init --org 'Example' --email you@example.com --full-name 'Your Name'\n"
            "with the same --data-dir or --database-url. To try out a demo instead, run\n"
            "  tertulia serve --demo --data-dir demo"
        )


def is_founded(config: Config) -> bool:
    """Whether there is an organization, in a database of whatever version. Looks without touching;
    DatabaseError where that cannot be known."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        return False
    with closing(database.connect(readonly=True, limits=READING)) as connection:
        return installation.is_founded(connection)


@contextmanager
def founded_database(config: Config, *, readonly: bool = True) -> Iterator[Connection]:
    """A connection to the organization's database, of whatever version it is, for the time of the
    context. NoOrganization where nothing was founded there."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        raise NoOrganization(config.place)
    with closing(database.connect(readonly=readonly)) as connection:
        if not installation.is_founded(connection):
            raise NoOrganization(config.place)
        yield connection


class Founder(Struct, frozen=True, kw_only=True):
    """What an organization begins with: its name and its owner."""

    organization: str
    address: str
    full_name: str
    password: str


FIRST_CHANNELS = (("general", "For everyone: announcements and questions."),)
"""Name and description of the public channels that everybody is subscribed to."""


def require_empty(state: State) -> None:
    """Refused where there is an organization already."""
    if not state.is_empty:
        raise Refused(
            f"An organization already exists here: '{state.realm.name}'. Nothing was changed."
        )


async def found(log: Log, vault: Vault, founder: Founder) -> User:
    """Create the organization, its owner and its first channels. Returns the owner.

    Refused where there is one already, and for what cannot be a name or an address.
    """
    render = Renderer(in_place=True).render
    owner = await log.submit(
        None,
        founding.found,
        NewOrganization(
            name=founder.organization,
            uuid=str(uuid.uuid4()),
            address=founder.address,
            full_name=founder.full_name,
            credential=await vault.credential(realms.FIRST_USER, founder.password),
            channels=tuple(
                NewChannel(
                    name=name,
                    description=text,
                    rendered_description=render(
                        CommandContext(log.state, log.clock(), None), text
                    ).html,
                    is_default=True,
                )
                for name, text in FIRST_CHANNELS
            ),
        ),
    )
    await remember_secret(log.store, vault)
    return owner


async def remember_secret(store: Store, vault: Vault) -> None:
    """Store by what the vault's secret is recognized."""
    fingerprint = vault.fingerprint
    await store.write(lambda c: installation.put(c, installation.SECRET, fingerprint))


async def require_fitting(log: Log, vault: Vault) -> None:
    """VaultError unless the vault has the secret that the installation was founded with."""
    kept = await log.store.read_log(
        lambda c: installation.value(c, installation.SECRET), READ_SECONDS
    )
    if kept is not None:
        if not vault.fits(kept):
            raise VaultError(WRONG_SECRET)
        return
    # Not founded by `found`, or that was cut short: the accounts' own keys show it.
    for credential in log.state.credentials:
        try:
            vault.api_key(credential)
        except VaultError:
            raise VaultError(WRONG_SECRET) from None
        break
    await remember_secret(log.store, vault)


WRONG_SECRET = (
    "The secret isn't the one that this installation was created with. Restore the file `secret`"  # noqa: S105 (a sentence)
    " from the data directory where the organization was created, or set TERTULIA_SECRET to it."
)


@asynccontextmanager
async def opened_log(
    config: Config,
    report: Callable[[str], None],
    *,
    on_announcement: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    membership: Membership | None = None,
    absent: Exception | None = None,
) -> AsyncIterator[Log]:
    """The organization's log, migrated and open, for the time of the context. It is a server's with
    a `membership`; else DatabaseError where a server runs and the database would be migrated. What
    backups left that were killed is deleted. Where no database is there, it is made, unless it is
    said what is to be raised then, before anything is touched (`absent`)."""
    serves = membership is not None
    database = database_at(config.data_path, config.database_url, config.bus)
    store = Store(database, serves=serves)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        with database.opening():
            if absent is not None and not database.exists():
                raise absent
            file_modes.directory(config.data_path)
            if backups.temporary_directories(config.data_path):
                await asyncio.to_thread(backups.delete_stale_directories, config.data_path)
            await store.migrate(report)
            if membership is not None:
                await stack.enter_async_context(membership.listed(store))
        log = Log(
            store,
            clock,
            elapsed,
            position_file=PositionFile(config.data_path) if serves else None,
            meeting_place=peer_directory() if serves else None,
        )
        await log.open(on_announcement or (lambda _: None))
        if membership is not None:
            membership.loaded(log)
        try:
            yield log
        finally:
            await log.close()


def opened_vault(config: Config, *, create: bool = False) -> Vault:
    """The vault with the installation's secret. VaultError where there is none."""
    return Vault(load_secret(config.data_path, config.secret or None, create=create))
