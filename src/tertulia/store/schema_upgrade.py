"""Bringing a database to the program's schema version."""

import contextlib
from collections.abc import Iterator

from tertulia.store import installation, log_formats, migrations, nodes
from tertulia.store.database import MIGRATING, Connection, Database, DatabaseError
from tertulia.store.installation import require_known, require_known_schema
from tertulia.store.migrations import WITH_HISTORY, WITH_NODES, Contract, Expand, Report
from tertulia.store.nodes import NodeEntry


def version_of(connection: Connection) -> int:
    """Return the schema version, or 0 for an empty database."""
    connection.run(
        "CREATE TABLE IF NOT EXISTS installation (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
    )
    rows = connection.query("SELECT value FROM installation WHERE key = 'schema_version'")
    return int(rows[0][0]) if rows else 0


def require_usable(connection: Connection) -> None:
    """Raise DatabaseError if the database must be migrated first, and NewerDatabase if it is too
    new."""
    version = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    if version >= WITH_HISTORY:
        require_known(installation.head_position(connection))
    if version < _wanted_at_start(version):
        raise DatabaseError(
            f"The database has schema version {version}, but this version of Tertulia needs"
            f" version {len(migrations.MIGRATIONS)}. Run `tertulia serve` to migrate it."
        )


def _wanted_at_start(version: int) -> int:
    """Return the version needed to serve. Pending Contract migrations can wait."""
    wanted = len(migrations.MIGRATIONS)
    while wanted > version and isinstance(migrations.MIGRATIONS[wanted - 1], Contract):
        wanted -= 1
    return wanted


def _require_unserved(database: Database) -> None:
    servers = database.servers()
    if servers:
        raise DatabaseError(
            "The database needs to be migrated, but a server of the older version is still"
            f" using it: {' and '.join(servers)}. Stop that server first, or use its own"
            " version of this command. Nothing was changed."
        )


def migrate(
    database: Database,
    report: Report,
    until: int | None = None,
    *,
    beside_servers: bool = False,
) -> None:
    """Migrate the database to what the program needs (or to version `until`) in one transaction, so
    that a failure changes nothing. Concurrent processes wait for the first. If no node of an older
    version is alive, this includes `settle`.

    SQLite databases are copied first. Raise NewerDatabase if the database is too new, and
    DatabaseError if it must change while another process serves, unless that is allowed with
    `beside_servers`.
    """
    with _migrating(database) as connection:
        before = version_of(connection)
        if before >= WITH_HISTORY:
            require_known(installation.head_position(connection))
        else:
            require_known_schema(before)
        target = _wanted_at_start(before) if until is None else until
        if 0 < before < target and not beside_servers:
            _require_unserved(database)
        if before >= WITH_NODES and _living(database, connection):
            for statement in connection.dialect.beside_others:
                connection.run(statement)
        _apply(database, connection, before, target, report)
        made = max(before, target)
        has_left_some = until is None and made >= WITH_NODES and not is_settled(connection)
        if has_left_some and (beside_servers or not database.servers()):
            _settle(database, connection, made, report)
        after = version_of(connection)
    if 0 < before < after:
        report(f"Migrated the database from schema version {before} to {after}")


def is_settled(connection: Connection) -> bool:
    """Return whether `settle` has nothing to do."""
    made = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    return (
        made >= len(migrations.MIGRATIONS)
        and installation.head_position(connection).log_format >= log_formats.LOG_FORMAT
    )


def settle(database: Database, report: Report) -> None:
    """Finish an upgrade when no node of an older version is left: run the Contract migrations,
    and allow the newest log format. Otherwise, do what the remaining nodes allow."""
    with _migrating(database) as connection:
        require_known(installation.head_position(connection))
        before = version_of(connection)
        for statement in connection.dialect.beside_others:
            connection.run(statement)
        _settle(database, connection, before, report)
        after = version_of(connection)
    if before < after:
        report(f"Migrated the database from schema version {before} to {after}")


@contextlib.contextmanager
def _migrating(database: Database) -> Iterator[Connection]:
    """Open a transaction that no other migration can enter."""
    with contextlib.closing(database.connect(readonly=False, limits=MIGRATING)) as connection:
        for statement in database.dialect.begin_migration:
            connection.run(statement)
        try:
            yield connection
            connection.commit()
        except BaseException:
            with contextlib.suppress(
                Exception
            ):  # There is nothing to roll back without a transaction.
                connection.run("ROLLBACK")
            raise


def _living(database: Database, connection: Connection) -> list[NodeEntry]:
    """Return the nodes that serve. An SQLite file is served by one version at a time, so listed
    nodes are leftovers."""
    if not database.is_shared:
        return []
    return [node.entry for node in nodes.list_nodes(connection) if node.is_living]


def _settle(database: Database, connection: Connection, version: int, report: Report) -> None:
    living = _living(database, connection)
    oldest = min((node.schema_version for node in living), default=len(migrations.MIGRATIONS))
    if oldest >= len(migrations.MIGRATIONS):
        _apply(database, connection, version, len(migrations.MIGRATIONS), report)
    log_format = min([log_formats.LOG_FORMAT, *(node.log_format for node in living)])
    connection.run(
        "UPDATE head SET log_format = ? WHERE id = 1 AND log_format < ?", (log_format, log_format)
    )


def _apply(
    database: Database, connection: Connection, version: int, target: int, report: Report
) -> None:
    """Run the missing migrations inside the transaction."""
    if version >= target:
        return
    if version > 0:
        copy = database.backup_before_migration(version)
        if copy:
            report(f"The database as it was is kept in {copy}")
    least = 0
    for number in range(version, target):
        migration = migrations.MIGRATIONS[number]
        for step in migration(database.dialect):
            if isinstance(step, str):
                connection.run(step)
            else:
                step(connection, report)
        if not isinstance(migration, Expand):
            least = number + 1
    installation.put(connection, installation.SCHEMA_VERSION, str(target))
    if target >= WITH_HISTORY:
        connection.run(
            "UPDATE head SET schema_version = ? WHERE schema_version < ?", (least, least)
        )
