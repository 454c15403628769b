"""Creating an organization, opening its log, and checking its secret."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager

from msgspec import Struct

from tertulia.domain.channels.channels import NewChannel
from tertulia.domain.organization import founding, lifecycle
from tertulia.domain.organization.founding import NewOrganization
from tertulia.log.head_watch import PositionFile
from tertulia.log.log import Log
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
    """There is no organization to open. `str(error)` says how to create one."""

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
    """Whether an organization exists, in a database of any version, without changing it. Raise
    DatabaseError if that is unknown."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        return False
    with closing(database.connect(readonly=True, limits=READING)) as connection:
        return installation.is_founded(connection)


@contextmanager
def founded_database(config: Config, *, readonly: bool = True) -> Iterator[Connection]:
    """Open the database of an organization, of any version, within the context. Raise
    NoOrganization."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        raise NoOrganization(config.database_location)
    with closing(database.connect(readonly=readonly)) as connection:
        if not installation.is_founded(connection):
            raise NoOrganization(config.database_location)
        yield connection


class Founder(Struct, frozen=True, kw_only=True):
    """The data for creating an organization: its name and its owner."""

    organization: str
    address: str
    full_name: str
    password: str


FIRST_CHANNELS = (("general", "For everyone: announcements and questions."),)
"""Name and description of the public channels that everyone is subscribed to."""


def require_empty(state: State) -> None:
    """Raise Refused if an organization exists."""
    if not state.is_empty:
        raise Refused(
            f"An organization already exists here: '{state.realm.name}'. Nothing was changed."
        )


async def found(log: Log, vault: Vault, founder: Founder) -> User:
    """Create the organization, its owner and its first channels. Return the owner.

    Raise Refused if an organization exists, or a name or the address is invalid.
    """
    render = Renderer(in_place=True).render
    owner = await log.submit(
        None,
        founding.create_organization,
        NewOrganization(
            name=founder.organization,
            uuid=str(uuid.uuid4()),
            address=founder.address,
            full_name=founder.full_name,
            credential=await vault.credential(lifecycle.FIRST_USER, founder.password),
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
    """Store the fingerprint that identifies the vault's secret."""
    fingerprint = vault.fingerprint
    await store.write(lambda c: installation.put(c, installation.SECRET, fingerprint))


async def require_fitting(log: Log, vault: Vault) -> None:
    """Raise VaultError unless the vault has the installation's secret."""
    kept = await log.store.read_log(
        lambda c: installation.value(c, installation.SECRET), READ_SECONDS
    )
    if kept is not None:
        if not vault.fits(kept):
            raise VaultError(WRONG_SECRET)
        return
    # If the fingerprint is missing, the API keys show whether the secret matches.
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
    on_peer_message: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    membership: Membership | None = None,
    absent: Exception | None = None,
) -> AsyncIterator[Log]:
    """Open the organization's migrated log within the context.

    With a `membership`, this is a server; otherwise DatabaseError is raised if a server is running
    and a migration is needed. Leftovers of killed backups are deleted. A missing database is
    created or, if `absent` is given, that error is raised before anything changes.
    """
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
        await log.open(on_peer_message or (lambda _: None))
        if membership is not None:
            membership.loaded(log)
        try:
            yield log
        finally:
            await log.close()


def opened_vault(config: Config, *, create: bool = False) -> Vault:
    """Return the vault with the installation's secret. Raise VaultError if it is missing."""
    return Vault(load_secret(config.data_path, config.secret or None, create=create))
