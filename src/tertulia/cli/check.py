"""`tertulia check`: find problems of an installation."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import typer
from msgspec import Struct

from tertulia.app import founding
from tertulia.app.founding import NoOrganization
from tertulia.cli.commands import configured
from tertulia.cli.first_steps import settings_missing
from tertulia.cli.terminal import progress_bars
from tertulia.jobs.backups import JOB, LEASE, OTHERS_SECONDS
from tertulia.jobs.leases import LEASE_SECONDS
from tertulia.jobs.upkeep import troubles
from tertulia.log import replica
from tertulia.model.errors import FilesUnavailable
from tertulia.model.numbers import counted
from tertulia.service import breached_passwords
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, VaultError, load_secret
from tertulia.service.directory_methods import LdapMethod
from tertulia.store import (
    backups,
    consistency,
    file_modes,
    file_transfer,
    installation,
    nodes,
    pruning,
)
from tertulia.store.backups import StoredBackup
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.nodes import ListedNode
from tertulia.store.schema_upgrade import require_usable
from tertulia.store.store import database_at

LAG_SECONDS = 5.0
"""A node that lags by more seconds than this is a problem."""
CLOCK_SECONDS = 10.0
"""The number of seconds by which a node's clock can differ from the database's."""
VERSIONS = 2
"""The most versions that can serve at the same time, during an upgrade."""
EXAMPLE = "Example: `tertulia check --data-dir data`"


class Finding(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    check: str
    ok: bool
    detail: str


@configured
def check(config: Config, as_json: bool) -> None:
    """Check the installation: database, secret, log, tables, search, jobs, nodes, files,
    identity providers, and the list of known passwords.

    Nothing is changed, and the server can keep running. Prints a line for each check, and exits
    with code 1 if one of them fails. Features that aren't set up yet (address, email, backups) are
    listed, but aren't failures.
    """
    findings: list[Finding] = []
    for finding in _findings(config):
        findings.append(finding)
        if not as_json:
            sign = "ok    " if finding.ok else "FAILED"
            typer.echo(f"{sign}  {finding.check}: {finding.detail}")
    ok = all(finding.ok for finding in findings)
    to_do = settings_missing(config)
    if as_json:
        typer.echo(msgspec.json.encode({"ok": ok, "checks": findings, "to_do": to_do}).decode())
    elif to_do:
        typer.echo(f"to do   {', '.join(to_do)}: run `tertulia first-steps` to see how")
    if not ok:
        raise typer.Exit(1)


def _findings(settings: Config) -> Iterator[Finding]:
    try:
        database = database_at(settings.data_path, settings.database_url)
        if not database.exists():
            raise NoOrganization(settings.database_location)
        connection = database.connect(readonly=True)
    except DatabaseError as error:
        yield Finding(check="database", ok=False, detail=str(error))
        return
    with contextlib.closing(connection):
        connection.run(connection.dialect.begin_read)
        if not installation.is_founded(connection):
            raise NoOrganization(settings.database_location)
        schema = _schema(connection)
        yield schema
        yield _secret(connection, settings)
        if not schema.ok:
            return
        for name, look in _CHECKS:
            try:
                ok, detail = look(connection)
            except (msgspec.MsgspecError, ValueError, KeyError) as error:
                ok, detail = False, f"invalid data: {error}"
            yield Finding(check=name, ok=ok, detail=detail)
        yield _nodes(connection)
        yield _files(connection, settings)
        known = backups.last_backup(connection)
        none_yet = _first_backup(connection, settings)
    if settings.backup_to:
        yield _backups(settings, known, none_yet)
    if settings.sign_in:
        yield from asyncio.run(_providers(settings))
        yield from _directories(settings)
    if settings.breached_passwords_file:
        yield _breached_passwords(settings)
    yield _permissions(settings)


def _breached_passwords(settings: Config) -> Finding:
    """Check that the list of known passwords can be used."""
    trouble = breached_passwords.trouble(Path(settings.breached_passwords_file))
    detail = trouble or "the list of known passwords can be read"
    return Finding(check="breached passwords", ok=trouble is None, detail=detail)


async def _providers(settings: Config) -> list[Finding]:
    """Check that each identity provider responds."""
    from tertulia.identity.provider import ProviderDown  # Rarely needed.
    from tertulia.identity.providers import Providers

    providers = Providers(settings, time.time)
    try:
        answers = await providers.check_all()
    finally:
        await providers.close()
    return [
        Finding(check=f"sign-in with {name}", ok=False, detail=answer.reason)
        if isinstance(answer, ProviderDown)
        else Finding(check=f"sign-in with {name}", ok=True, detail=answer)
        for name, answer in answers.items()
    ]


def _directories(settings: Config) -> Iterator[Finding]:
    """Check that each directory responds and has people."""
    from tertulia.identity import ldap  # Rarely needed.

    for method in settings.sign_in:
        if isinstance(method, LdapMethod):
            name = f"sign-in with {method.name}"
            try:
                yield Finding(check=name, ok=True, detail=ldap.check(method))
            except ldap.DirectoryDown as error:
                yield Finding(check=name, ok=False, detail=error.reason)


FIRST_BACKUP_SECONDS = LEASE_SECONDS + OTHERS_SECONDS
"""The longest time, in seconds, until a started server makes the first backup: it may have to wait
for the lease of a server that was killed while making it."""


def _first_backup(connection: Connection, settings: Config) -> Finding:
    """Return the finding for an installation that never had a backup, which is only a problem if
    the server should have made one."""
    now, place = time.time(), settings.backup_to
    if trouble := troubles(connection).get(JOB):
        detail = f"no backups in {place}, because making one failed: {trouble}"
        return Finding(check="backups", ok=False, detail=detail)
    started = [node.started_at for node in nodes.list_nodes(connection) if node.is_living]
    if not started:
        detail = f"no backups in {place} yet: the server makes the first one when it starts"
    elif LEASE.is_held(connection, now, since=min(started)):
        detail = f"the first backup in {place} is being made"
    elif now - min(started) < FIRST_BACKUP_SECONDS:
        minutes = counted(math.ceil(FIRST_BACKUP_SECONDS / 60), "minute")
        detail = f"no backups in {place} yet: the server makes the first one within {minutes}"
    else:
        return Finding(check="backups", ok=False, detail=f"no backups in {place}")
    return Finding(check="backups", ok=True, detail=detail)


def _backups(settings: Config, known: tuple[float, int] | None, none_yet: Finding) -> Finding:
    """Check that the last automatic backup is recent. `known` is the last one that a node reported;
    a backup on that node's disk isn't visible here. `none_yet` is the finding without any."""
    try:
        now = time.time()
        made = backups.backups_made(asyncio.run(_kept(settings)), now)
    except (FilesUnavailable, OSError) as error:
        return Finding(check="backups", ok=False, detail=str(error))
    place = settings.backup_to
    last = made[-1].at if made else None
    if known and (last or 0.0) < known[0] <= now:
        detail = f"the last backup, {_hours(known[0], now)} old, isn't in {place} on this machine"
        if not settings.database_url:  # No other node could have made it.
            return Finding(check="backups", ok=False, detail=detail)
        ok = not backups.is_old(known[0], now)
        return Finding(check="backups", ok=ok, detail=f"{detail}, but another node made it")
    if last is None:
        return none_yet
    detail = f"{counted(len(made), 'backup')}, the last one {_hours(last, now)} old"
    return Finding(check="backups", ok=not backups.is_old(last, now), detail=detail)


def _hours(at: float, now: float) -> str:
    return counted(hours, "hour") if (hours := round((now - at) / 3600)) else "less than an hour"


async def _kept(settings: Config) -> list[StoredBackup]:
    storage = settings.opened_backups()
    try:
        return await backups.stored_backups(storage)
    finally:
        await storage.close()


def _schema(connection: Connection) -> Finding:
    version = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    newest = len(MIGRATIONS)
    try:
        require_usable(connection)
    except DatabaseError as error:
        return Finding(check="database", ok=False, detail=str(error))
    detail = f"{connection.dialect.name}, schema version {version}"
    if version != newest:
        detail += (
            f", which this version (schema version {newest}) can use: an upgrade is in progress"
        )
    return Finding(check="database", ok=True, detail=detail)


def _secret(connection: Connection, settings: Config) -> Finding:
    stored_secret = installation.value(connection, installation.SECRET)
    try:
        secret = load_secret(settings.data_path, settings.secret or None, create=False)
    except VaultError as error:
        return Finding(check="secret", ok=False, detail=str(error))
    with contextlib.closing(Vault(secret)) as vault:
        if stored_secret is None:
            return Finding(
                check="secret", ok=True, detail="present; compared when the server first starts"
            )
        fits = vault.fits(stored_secret)
    detail = "matches this installation" if fits else founding.WRONG_SECRET
    return Finding(check="secret", ok=fits, detail=detail)


def _log(connection: Connection) -> tuple[bool, str]:
    extent = consistency.extent(connection)
    if extent.is_contiguous:
        return True, f"entries {extent.pruned + 1} to {extent.head}, without gaps"
    text = counted(extent.entries, "entry", "entries")
    return False, (
        f"expected entries {extent.pruned + 1} to {extent.head}, but found {text}"
        f" from {extent.first} to {extent.last}"
    )


def _tables(connection: Connection) -> tuple[bool, str]:
    since = ""
    if forgotten := consistency.extent(connection).pruned:
        at = pruning.checkpoint_at(connection)
        if at < forgotten:
            return True, (
                "not compared with the log, because an earlier version deleted its first"
                " entries: a checkpoint is created when more entries are deleted"
            )
        since = f" since the checkpoint at entry {at}"
    with progress_bars() as progress:  # A long log takes minutes.
        wrong = replica.replay_differences(connection, progress)
    if not wrong:
        return True, f"match the log{since}"
    return False, "don't match the log: " + _listed(wrong)


def _references(connection: Connection) -> tuple[bool, str]:
    wrong = [
        (f"{reference.table}.{reference.column}", count)
        for reference, count in consistency.dangling(connection)
    ]
    if not wrong:
        return True, "all valid"
    return False, "point to missing rows: " + _listed(wrong)


def _search(connection: Connection) -> tuple[bool, str]:
    messages, missing = consistency.unsearchable(connection)
    if not missing:
        return True, f"all of {counted(messages, 'message')} indexed"
    return False, f"{missing:,} of {counted(messages, 'message')} not indexed"


def _files(connection: Connection, settings: Config) -> Finding:
    files, disk = settings.opened_files()
    try:
        count, lost = file_transfer.missing_files(connection, files, disk)
    except FilesUnavailable as error:
        return Finding(check="files", ok=False, detail=f"unavailable: {error}")
    present = counted(count, "uploaded file")
    if not lost:
        where = "" if files is disk else f" in {files.description}"
        return Finding(check="files", ok=True, detail=present + where)
    named = ", ".join(lost[:3]) + (", …" if len(lost) > 3 else "")
    detail = f"missing or incomplete: {len(lost):,} of {present}: {named}"
    return Finding(check="files", ok=False, detail=detail)


def _permissions(settings: Config) -> Finding:
    by_everybody, by_group = file_modes.exposed(settings.data_path)
    readable = by_everybody or by_group
    if not readable:
        detail = "only their owner can read the data directory and its files"
        return Finding(check="permissions", ok=True, detail=detail)
    named = ", ".join(map(str, readable[:3])) + (", …" if len(readable) > 3 else "")
    if not by_everybody:
        detail = f"the owner and the group can read {named}"
        return Finding(check="permissions", ok=True, detail=detail)
    remedy = file_modes.remedy(readable[0])
    detail = f"everyone on this machine can read {named}; to fix this, run {remedy}"
    return Finding(check="permissions", ok=False, detail=detail)


def _jobs(connection: Connection) -> tuple[bool, str]:
    failing = troubles(connection)
    if not failing:
        return True, "no job is failing"
    return False, "; ".join(f"{name}: {trouble}" for name, trouble in sorted(failing.items()))


def _nodes(connection: Connection) -> Finding:
    listed = nodes.list_nodes(connection)
    wrong = [*_node_problems(listed), *_differing_settings(listed)]
    living = [node for node in listed if node.is_living]
    if wrong:
        return Finding(check="nodes", ok=False, detail="; ".join(wrong))
    versions = sorted({node.entry.version for node in living})
    detail = f"{len(living)} serving" if living else "no node is serving"
    if len(versions) > 1:
        detail += f", with versions {' and '.join(versions)}: an upgrade is in progress"
    return Finding(check="nodes", ok=True, detail=detail)


def _node_problems(listed: Sequence[ListedNode]) -> Iterator[str]:
    """Yield problems of single nodes."""
    for node in listed:
        figures = node.figures
        if not node.is_living:
            yield (
                f"{node.name} has been gone for {node.silent_seconds:.0f} s without shutting down"
                f" (if this is expected, run `tertulia nodes forget {node.name}`)"
            )
            continue
        if node.state == "stale":
            yield f"{node.name} can't check whether it's up to date, and rejects all requests"
        elif figures.lag_seconds > LAG_SECONDS:
            yield (
                f"{node.name} has been {counted(figures.lag_entries, 'entry', 'entries')} behind"
                f" for {figures.lag_seconds:g} s"
            )
        if abs(figures.clock_ahead) > CLOCK_SECONDS:
            direction = "ahead of" if figures.clock_ahead > 0 else "behind"
            yield (
                f"the clock of {node.name} is {abs(figures.clock_ahead):.0f} s {direction} the"
                " database's: synchronize the machine's clock with NTP"
            )
    versions = {n.entry.version: n.entry.schema_version for n in listed if n.is_living}
    if len(versions) > VERSIONS:
        yield f"nodes with more than two versions are serving: {', '.join(sorted(versions))}"


def _differing_settings(listed: Sequence[ListedNode]) -> Iterator[str]:
    """Yield settings that differ between nodes."""
    settings = {node.name: node.entry.settings for node in listed if node.is_living}
    # Nodes with different versions may have different settings.
    known = set.intersection(*map(set, settings.values())) if settings else set()
    for name in sorted(known):
        holders: dict[str, list[str]] = {}
        for node, of_one in settings.items():
            holders.setdefault(of_one[name], []).append(node)
        if len(holders) > 1:
            sides = " and on ".join(", ".join(side) for side in holders.values())
            yield f"the setting {name} has different values on {sides}"


def _listed(counts: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts)


_CHECKS: tuple[tuple[str, Callable[[Connection], tuple[bool, str]]], ...] = (
    ("log", _log),
    ("tables", _tables),
    ("references", _references),
    ("search", _search),
    ("jobs", _jobs),
)
