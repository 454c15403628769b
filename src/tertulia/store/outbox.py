"""Emails waiting to be sent.

Emails are leased while they are sent: `due_at` moves ahead, so they become due again if the sender
dies. An email is sent twice only if a node dies between sending it and deleting it.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.mail import OF_ACCOUNTS, Mail, MailKind
from tertulia.store.codec import encode
from tertulia.store.database import Connection
from tertulia.store.lanes import DeliveryFailure

KEPT_SECONDS: Final = 86400.0
"""The interval, in seconds, of checking whether a given-up invitation is still open."""
_GIVEN_UP: Final = "given_up"
"""The fact of a given-up email with the reason."""
_decoder: Final = msgspec.json.Decoder(Mail)
LAST_RANK: Final = 1
_RANKS: Final = {MailKind.MISSED_MESSAGES: LAST_RANK, MailKind.DIGEST: LAST_RANK}
"""The priorities of emails that are sent after others."""
_COLUMNS: Final = "id, asked_at, due_at, attempts, trouble, doc"


class QueuedMail(Struct, frozen=True, kw_only=True):
    """An email in the outbox. Times are in UNIX seconds."""

    id: str
    asked_at: float
    due_at: float
    attempts: int
    """The number of attempts, including the current one."""
    trouble: str
    """The reason why the last attempt failed."""
    mail: Mail

    @property
    def given_up(self) -> str:
        """The reason why it will never be sent; empty if it will."""
        return self.mail.facts.get(_GIVEN_UP, "")


def new_id() -> str:
    return secrets.token_hex(16)


def add(connection: Connection, mail: Mail, at: float, mail_id: str) -> None:
    """Add an email that is due now, unless its ID exists."""
    add_all(connection, {mail_id: mail}, at)


def add_all(connection: Connection, mails: Mapping[str, Mail], at: float) -> None:
    """Add several emails by their IDs."""
    connection.run_many(
        f"INSERT INTO mails ({_COLUMNS}, rank) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        [
            (mail_id, at, at, 0, "", encode(mail), _RANKS.get(mail.kind, 0))
            for mail_id, mail in mails.items()
        ],
    )


def lease(connection: Connection, now: float, lease: float, limit: int) -> list[QueuedMail]:
    """Lease up to `limit` due emails for `lease` seconds, oldest first. Emails that someone waits
    for come before bulk emails."""
    mails: list[QueuedMail] = []
    for rank in (0, LAST_RANK):
        rows = connection.query(
            f"SELECT {_COLUMNS} FROM mails WHERE rank = ? AND due_at <= ?"
            " ORDER BY due_at, asked_at, id LIMIT ?",
            (rank, now, limit - len(mails)),
        )
        mails += [_waiting(row) for row in rows]
    connection.run_many(
        "UPDATE mails SET due_at = ?, attempts = attempts + 1 WHERE id = ?",
        [(now + lease, mail.id) for mail in mails],
    )
    return [
        msgspec.structs.replace(mail, due_at=now + lease, attempts=mail.attempts + 1)
        for mail in mails
    ]


def remove(connection: Connection, waiting: QueuedMail) -> None:
    """Delete an email that was sent or is no longer needed."""
    connection.run(
        "DELETE FROM mails WHERE id = ? AND attempts = ?", (waiting.id, waiting.attempts)
    )


def give_up(connection: Connection, waiting: QueuedMail, now: float, reason: str) -> None:
    """Delete an email that can't be sent. An invitation stays in the outbox with the reason while
    it's open, because its link still works and someone has to share it in another way. It comes due
    every `KEPT_SECONDS` only so that it's deleted when the invitation ends."""
    if waiting.mail.kind is not MailKind.INVITATION:
        remove(connection, waiting)
        return
    facts = {**waiting.mail.facts, _GIVEN_UP: reason}
    connection.run(
        "UPDATE mails SET due_at = ?, trouble = '', doc = ? WHERE id = ? AND attempts = ?",
        (
            now + KEPT_SECONDS,
            encode(msgspec.structs.replace(waiting.mail, facts=facts)),
            waiting.id,
            waiting.attempts,
        ),
    )


def postpone(connection: Connection, waiting: QueuedMail, until: float, trouble: str) -> None:
    """Retry later, unless the lease was lost."""
    connection.run(
        "UPDATE mails SET due_at = ?, trouble = ? WHERE id = ? AND attempts = ?",
        (until, trouble, waiting.id, waiting.attempts),
    )


def reschedule(connection: Connection, waiting: QueuedMail, now: float, until: float) -> None:
    """Send the email later as if it were new, unless the lease was lost."""
    connection.run(
        "UPDATE mails SET asked_at = ?, due_at = ?, attempts = 0, trouble = ''"
        " WHERE id = ? AND attempts = ?",
        (now, until, waiting.id, waiting.attempts),
    )


def drop(
    connection: Connection, addresses: Collection[str], user_ids: Collection[int] = ()
) -> None:
    """Delete the emails to these addresses and about these accounts."""
    folded = {address.casefold() for address in addresses}
    ids = [
        mail.id
        for mail in queued(connection)
        if mail.mail.to.casefold() in folded
        or (mail.mail.kind in OF_ACCOUNTS and mail.mail.about in user_ids)
    ]
    connection.run_many("DELETE FROM mails WHERE id = ?", [(mail_id,) for mail_id in ids])


_CONFIRMATIONS: Final = frozenset({MailKind.CONFIRM_SIGN_UP, MailKind.CONFIRM_ADDRESS})


def drop_ended(
    connection: Connection, invitations: Collection[int], confirmations: Collection[int]
) -> None:
    """Delete the emails about all other invitations and confirmations, which have ended."""
    ids = [
        mail.id
        for mail in queued(connection)
        if (mail.mail.kind is MailKind.INVITATION and mail.mail.about not in invitations)
        or (mail.mail.kind in _CONFIRMATIONS and mail.mail.about not in confirmations)
    ]
    connection.run_many("DELETE FROM mails WHERE id = ?", [(mail_id,) for mail_id in ids])


def next_due(connection: Connection) -> float | None:
    ((due,),) = connection.query("SELECT MIN(due_at) FROM mails")
    return None if due is None else float(due)


def queued(connection: Connection) -> Sequence[QueuedMail]:
    """Return all emails, oldest first."""
    rows = connection.query(f"SELECT {_COLUMNS} FROM mails ORDER BY asked_at, id")
    return [_waiting(row) for row in rows]


def failing(connection: Connection) -> DeliveryFailure | None:
    """Return the emails that can't be sent, or None."""
    rows = connection.query("SELECT COUNT(*), MIN(asked_at) FROM mails WHERE trouble <> ''")
    ((number, since),) = rows
    if not number:
        return None
    ((reason,),) = connection.query(
        "SELECT trouble FROM mails WHERE trouble <> '' ORDER BY due_at DESC, id LIMIT 1"
    )
    return DeliveryFailure(of=None, waiting=int(number), since=float(since), reason=str(reason))


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
