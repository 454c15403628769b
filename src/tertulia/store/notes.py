"""What a commit writes besides the log: queues, presence, emails, calls of bots' services."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from tertulia.model.mail import Mail
from tertulia.model.queues import QueueRecord
from tertulia.model.webhooks import ServiceCall
from tertulia.store import bots, installation, outbox, webhooks
from tertulia.store.bots import StorageChanged
from tertulia.store.codec import encode
from tertulia.store.database import Connection


class QueueDeleted(Struct, frozen=True):
    """A queue was deleted."""

    id: str


class QueueSeen(Struct, frozen=True):
    """When a queue was last polled, in UNIX seconds; written now and then."""

    id: str
    seen_at: int


class PresenceSeen(Struct, frozen=True):
    """When a user was last present, written now and then. UNIX seconds, 0 for never."""

    user_id: int
    active_at: int
    idle_at: int


class MailQueued(Struct, frozen=True):
    """A mail is to be sent. `at` is when it was asked for, in UNIX seconds."""

    mail: Mail
    at: float
    id: str = field(default_factory=outbox.new_id)
    """Written twice, it is one mail by this ID."""


class CallQueued(Struct, frozen=True):
    """A bot's service is to be told of a message. `at` is when it was sent, in UNIX seconds."""

    call: ServiceCall
    at: float
    id: str = field(default_factory=outbox.new_id)
    """Written twice, it is one call by this ID."""


class InputSeen(Struct, frozen=True):
    """A user gave input to a client on a day (of UNIX time)."""

    user_id: int
    day: int


class FactSet(Struct, frozen=True):
    """A value of the installation was set (`installation.put`)."""

    key: str
    value: str


class Probe(Struct, frozen=True):
    """Writes nothing: it is there to try whether something can be written."""


Note = (
    QueueRecord
    | QueueDeleted
    | QueueSeen
    | PresenceSeen
    | InputSeen
    | MailQueued
    | CallQueued
    | FactSet
    | Probe
    | StorageChanged
)
"""What is committed beside the log: it is no change of the organization."""


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
"""Notes that come in great numbers, and are written by one statement: it, and its parameters."""


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
        case MailQueued(mail=mail, at=at, id=mail_id):
            outbox.add(connection, mail, at, mail_id)
        case CallQueued(call=call, at=at, id=call_id):
            webhooks.add_call(connection, call, at, call_id)
        case Probe():
            pass  # `head.noted` says that the batch was committed.
