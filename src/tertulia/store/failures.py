"""Deliveries that currently fail: emails, push notifications, and calls of bots' services."""

from msgspec import Struct

from tertulia.store.database import Connection


class DeliveryFailure(Struct, frozen=True, kw_only=True):
    """Failing deliveries of one kind or to one receiver."""

    of: int | None
    """The ID of a bot or a push subscription, or None for emails."""
    waiting: int
    """Pending deliveries."""
    since: float
    """UNIX seconds, or 0 if unknown."""
    reason: str
    """Why the last attempt failed."""


def mails(connection: Connection) -> DeliveryFailure | None:
    """Return the emails that can't be sent, or None."""
    rows = connection.query("SELECT COUNT(*), MIN(asked_at) FROM mails WHERE trouble <> ''")
    ((number, since),) = rows
    if not number:
        return None
    ((reason,),) = connection.query(
        "SELECT trouble FROM mails WHERE trouble <> '' ORDER BY due_at DESC, id LIMIT 1"
    )
    return DeliveryFailure(of=None, waiting=int(number), since=float(since), reason=str(reason))


def services(connection: Connection, limit: int) -> list[DeliveryFailure]:
    """Return up to `limit` bots whose services fail, longest first."""
    rows = connection.query(
        "SELECT bot_id, failing_since, trouble, (SELECT COUNT(*) FROM webhook_deliveries"
        " WHERE webhook_deliveries.bot_id = webhook_lanes.bot_id) FROM webhook_lanes"
        " WHERE failures > 0 ORDER BY failing_since, bot_id LIMIT ?",
        (limit,),
    )
    return [_failing(row) for row in rows]


def pushes(connection: Connection, limit: int) -> list[DeliveryFailure]:
    """Return up to `limit` push subscriptions that fail, longest first."""
    rows = connection.query(
        "SELECT subscription_id, failing_since, trouble, (SELECT COUNT(*) FROM pushes"
        " WHERE pushes.subscription_id = push_lanes.subscription_id AND wanted <> 'shown')"
        " FROM push_lanes WHERE failures > 0 ORDER BY failing_since, subscription_id LIMIT ?",
        (limit,),
    )
    return [_failing(row) for row in rows]


def _failing(row: tuple[object, ...]) -> DeliveryFailure:
    of, since, reason, waiting = row
    return DeliveryFailure(
        of=int(str(of)), waiting=int(str(waiting)), since=float(str(since)), reason=str(reason)
    )
