"""Mails that wait to be sent. A row is deleted when its mail is sent, or given up.

Whoever sends takes mails on a lease: `due_at` moves on, and should the sender die, they are due
again by themselves. So two nodes never send the same mail unless the first one was lost after
sending and before saying so.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.mail import OF_ACCOUNTS, Mail, MailKind
from tertulia.store.codec import encode
from tertulia.store.database import Connection

_decoder: Final = msgspec.json.Decoder(Mail)
LAST_RANK: Final = 1
_RANKS: Final = {MailKind.MISSED_MESSAGES: LAST_RANK, MailKind.DIGEST: LAST_RANK}
"""The mails that let others go first."""
_COLUMNS: Final = "id, asked_at, due_at, attempts, trouble, doc"


class QueuedMail(Struct, frozen=True, kw_only=True):
    """A mail in the outbox. Times are in UNIX seconds."""

    id: str
    asked_at: float
    due_at: float
    """When it is to be sent (again)."""
    attempts: int
    """How many attempts there were, with the present one."""
    trouble: str
    """Why the last attempt failed."""
    mail: Mail


def new_id() -> str:
    """A random ID for a mail."""
    return secrets.token_hex(16)


def add(connection: Connection, mail: Mail, at: float, mail_id: str) -> None:
    """Add a mail, to be sent at once, inside the transaction that is open. One that is there
    already stays as it is."""
    add_all(connection, {mail_id: mail}, at)


def add_all(connection: Connection, mails: Mapping[str, Mail], at: float) -> None:
    """The same for several, by their IDs."""
    connection.run_many(
        f"INSERT INTO mails ({_COLUMNS}, rank) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        [
            (mail_id, at, at, 0, "", encode(mail), _RANKS.get(mail.kind, 0))
            for mail_id, mail in mails.items()
        ],
    )


def lease(connection: Connection, now: float, lease: float, limit: int) -> list[QueuedMail]:
    """The mails that are due, at most so many, oldest first; those for which somebody sits and
    waits before those that come in great numbers. They are the caller's for the lease, in
    seconds."""
    found: list[QueuedMail] = []
    for rank in (0, LAST_RANK):
        rows = connection.query(
            f"SELECT {_COLUMNS} FROM mails WHERE rank = ? AND due_at <= ?"
            " ORDER BY due_at, asked_at, id LIMIT ?",
            (rank, now, limit - len(found)),
        )
        found += [_waiting(row) for row in rows]
    connection.run_many(
        "UPDATE mails SET due_at = ?, attempts = attempts + 1 WHERE id = ?",
        [(now + lease, one.id) for one in found],
    )
    return [
        msgspec.structs.replace(one, due_at=now + lease, attempts=one.attempts + 1) for one in found
    ]


def remove(connection: Connection, waiting: QueuedMail) -> None:
    """The mail was sent, or is given up."""
    connection.run(
        "DELETE FROM mails WHERE id = ? AND attempts = ?", (waiting.id, waiting.attempts)
    )


def postpone(connection: Connection, waiting: QueuedMail, until: float, trouble: str) -> None:
    """The attempt failed: try again then. Nothing happens where the lease has passed to another."""
    connection.run(
        "UPDATE mails SET due_at = ?, trouble = ? WHERE id = ? AND attempts = ?",
        (until, trouble, waiting.id, waiting.attempts),
    )


def reschedule(connection: Connection, waiting: QueuedMail, now: float, until: float) -> None:
    """Nobody is to have the mail before then: send it as if it were asked for now. Nothing happens
    where the lease has passed to another."""
    connection.run(
        "UPDATE mails SET asked_at = ?, due_at = ?, attempts = 0, trouble = ''"
        " WHERE id = ? AND attempts = ?",
        (now, until, waiting.id, waiting.attempts),
    )


def drop(
    connection: Connection, addresses: Collection[str], user_ids: Collection[int] = ()
) -> None:
    """Forget the mails that wait for these addresses, and those about these accounts."""
    folded = {address.casefold() for address in addresses}
    ids = [
        one.id
        for one in queued(connection)
        if one.mail.to.casefold() in folded
        or (one.mail.kind in OF_ACCOUNTS and one.mail.about in user_ids)
    ]
    connection.run_many("DELETE FROM mails WHERE id = ?", [(mail_id,) for mail_id in ids])


def next_due(connection: Connection) -> float | None:
    """When the next mail is due; None where none waits."""
    ((due,),) = connection.query("SELECT MIN(due_at) FROM mails")
    return None if due is None else float(due)


def queued(connection: Connection) -> Sequence[QueuedMail]:
    """Every mail that waits, oldest first."""
    rows = connection.query(f"SELECT {_COLUMNS} FROM mails ORDER BY asked_at, id")
    return [_waiting(row) for row in rows]


def _waiting(row: tuple[object, ...]) -> QueuedMail:
    mail_id, asked_at, due_at, attempts, trouble, doc = row
    return msgspec.convert(
        {
            "id": mail_id,
            "asked_at": asked_at,
            "due_at": due_at,
            "attempts": attempts,
            "trouble": trouble,
            "mail": _decoder.decode(str(doc)),
        },
        QueuedMail,
    )
