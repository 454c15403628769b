"""Digests of one-time secrets, such as links and assertions, that were used."""

import hashlib
from typing import Final

from tertulia.store.database import Connection

SKEW_SECONDS: Final = 600
"""Accepted difference between the clocks of nodes."""


def add(
    connection: Connection, purpose: str, secret: str, now: float, valid_seconds: float
) -> bool:
    """Record the use of a secret that is valid for up to `valid_seconds` more, and return whether
    it's the first one. Forget secrets that have expired, so that the table stays small."""
    connection.run("DELETE FROM used_secrets WHERE until < ?", (now,))
    digest = hashlib.sha256(f"{purpose}\0{secret}".encode()).hexdigest()
    rows = connection.query(
        "INSERT INTO used_secrets (digest, until) VALUES (?, ?)"
        " ON CONFLICT (digest) DO NOTHING RETURNING digest",
        (digest, now + valid_seconds + SKEW_SECONDS),
    )
    return bool(rows)
