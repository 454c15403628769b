"""Facts about this installation, beside the organization: the schema's version, the secret's
fingerprint."""

from tertulia.store.database import Connection

SCHEMA_VERSION = "schema_version"
SECRET = "secret"  # noqa: S105 (the key of the fingerprint, not the secret)


def value(connection: Connection, key: str) -> str | None:
    """The value that was put under the key."""
    rows = connection.query("SELECT value FROM installation WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def put(connection: Connection, key: str, value: str) -> None:
    """Put the value under the key, inside the transaction that is open."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
