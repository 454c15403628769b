"""Facts about this installation, beside the organization: the schema's version, the secret's
fingerprint."""

from tertulia.store.database import Connection

SCHEMA_VERSION = "schema_version"
SECRET = "secret"  # noqa: S105 (the key of the fingerprint, not the secret)

CHANNEL = "channel"
"""The key of a random word that the name is made of by which nodes hear of each other: whoever may
connect to a PostgreSQL may listen and speak there to whatever they know the name of."""


def value(connection: Connection, key: str) -> str | None:
    """The value that was put under the key."""
    rows = connection.query("SELECT value FROM installation WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def values(connection: Connection, prefix: str) -> dict[str, str]:
    """What was put under keys that begin so, by key."""
    rows = connection.query("SELECT key, value FROM installation")
    return {str(key): str(value) for key, value in rows if str(key).startswith(prefix)}


def put(connection: Connection, key: str, value: str) -> None:
    """Put the value under the key, inside the transaction that is open."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def put_once(connection: Connection, key: str, text: str) -> str:
    """Put the value under the key, unless there is one, inside the transaction that is open.
    Returns the one that there is now."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (key, text),
    )
    return str(connection.query("SELECT value FROM installation WHERE key = ?", (key,))[0][0])


def forget(connection: Connection, key: str) -> None:
    """Take away what was put under the key, inside the transaction that is open."""
    connection.run("DELETE FROM installation WHERE key = ?", (key,))


def is_founded(connection: Connection) -> bool:
    """Whether the database, which may be of an older version, has an organization."""
    return value(connection, SCHEMA_VERSION) is not None and bool(
        connection.query("SELECT 1 FROM head WHERE seq > 0")
    )
