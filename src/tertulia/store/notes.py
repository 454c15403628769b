"""Data that a commit writes in addition to the log: queues, presence, emails, and calls of bots'
services."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from tertulia.model.audit_log import AuditRecord
from tertulia.model.mail import Mail
from tertulia.model.messages import MessageEdit
from tertulia.model.queues import QueueRecord
from tertulia.model.reactions import Reaction
from tertulia.model.webhooks import ServiceCall
from tertulia.store import audit_log, bots, installation, outbox, webhooks
from tertulia.store.bots import StorageChanged
from tertulia.store.codec import encode
from tertulia.store.database import Connection


class QueueDeleted(Struct, frozen=True):
    id: str


class QueueSeen(Struct, frozen=True):
    """The time when a queue was last polled (UNIX seconds), written occasionally."""

    id: str
    seen_at: int


class PresenceSeen(Struct, frozen=True):
    """The time when a user was last present (UNIX seconds, 0 for never), written occasionally."""

    user_id: int
    active_at: int
    idle_at: int


class MailQueued(Struct, frozen=True):
    """An email to send. `at` is the time of the request in UNIX seconds."""

    mail: Mail
    at: float
    id: str = field(default_factory=outbox.new_id)
    """Makes writing it twice harmless."""


class CallQueued(Struct, frozen=True):
    """A call of a bot's service. `at` is the time when the message was sent in UNIX seconds."""

    call: ServiceCall
    at: float
    id: str = field(default_factory=outbox.new_id)
    """Makes writing it twice harmless."""


class Audited(Struct, frozen=True):
    """A record for the audit log."""

    record: AuditRecord
    id: str = field(default_factory=installation.new_id)
    """Makes writing it twice harmless."""


class InputSeen(Struct, frozen=True):
    """A user was active on a day of UNIX time."""

    user_id: int
    day: int


class FactSet(Struct, frozen=True):
    """A fact about the installation changed (`installation.put`)."""

    key: str
    value: str


class FactsForgotten(Struct, frozen=True):
    """Facts about the installation whose keys begin with `prefix` were deleted."""

    prefix: str


class QueuesForgotten(Struct, frozen=True):
    """All stored queues were deleted, as `QueuesEnded` tells nodes that know them."""


class MessageHistoryImported(Struct, frozen=True):
    """Edits of imported messages and reactions to them, oldest first. They aren't changes, because
    they were made elsewhere, and clients get them with the messages."""

    edits: tuple[MessageEdit, ...] = ()
    reactions: tuple[Reaction, ...] = ()


class Probe(Struct, frozen=True):
    """Writes nothing, to test whether writing works."""


Note = (
    QueueRecord
    | QueueDeleted
    | QueueSeen
    | PresenceSeen
    | InputSeen
    | MailQueued
    | CallQueued
    | Audited
    | FactSet
    | FactsForgotten
    | QueuesForgotten
    | MessageHistoryImported
    | Probe
    | StorageChanged
)
"""Data that is committed with the log, but isn't a change of the organization."""


_OFTEN: Mapping[type, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    QueueSeen: (
        "UPDATE queues SET seen_at = ? WHERE id = ? AND seen_at < ?",
        lambda note: (note.seen_at, note.id, note.seen_at),
    ),
    PresenceSeen: (
        "INSERT INTO presence (user_id, active_at, idle_at) VALUES (?, ?, ?)"
        " ON CONFLICT (user_id) DO UPDATE SET"
        " active_at = excluded.active_at, idle_at = excluded.idle_at",
        lambda note: (note.user_id, note.active_at, note.idle_at),
    ),
}
"""Frequent notes, each with the one statement that writes it and its parameters."""


def _write_note(connection: Connection, note: Note) -> None:
    match note:
        case QueueRecord():
            connection.run(
                "INSERT INTO queues (id, user_id, seen_at, doc) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                (note.id, note.user_id, note.seen_at, encode(note)),
            )
        case QueueDeleted(id=queue_id):
            connection.run("DELETE FROM queues WHERE id = ?", (queue_id,))
        case InputSeen(user_id=user_id, day=day):
            connection.run(
                "INSERT INTO usage_days (user_id, day) VALUES (?, ?)"
                " ON CONFLICT (user_id, day) DO NOTHING",
                (user_id, day),
            )
        case StorageChanged():
            bots.write(connection, note)
        case FactSet(key=key, value=value):
            installation.put(connection, key, value)
        case FactsForgotten(prefix=prefix):
            installation.forget_all(connection, prefix)
        case QueuesForgotten():
            connection.run("DELETE FROM queues")
        case MailQueued(mail=mail, at=at, id=mail_id):
            outbox.add(connection, mail, at, mail_id)
        case CallQueued(call=call, at=at, id=call_id):
            webhooks.add_call(connection, call, at, call_id)
        case Audited(record=record, id=record_id):
            audit_log.add(connection, record, record_id)
        case Probe():
            pass  # `head.noted` records that the batch was committed.
