"""Push notifications, pending and shown: a row for each subscription and conversation.

Each subscription has its own queue (`lanes.DEVICES`). A row stays after it was pushed, so that
it can be withdrawn when the messages are read elsewhere.
"""

import secrets
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tertulia.store.database import Connection, Row
from tertulia.store.lanes import DEVICES, Lease

MAX_CONVERSATIONS: Final = 50
"""Conversations per subscription. The oldest are deleted beyond that."""
MAX_MESSAGES: Final = 20
"""The newest messages per conversation."""
_COLUMNS: Final = "conversation, user_id, wanted, version, asked_at, message_ids"
_ALL: Final = f"subscription_id, {_COLUMNS}, shown_to"


class PushAction(StrEnum):
    """The action that is due for a conversation."""

    SHOW = "show"
    SHOWN = "shown"
    """Nothing, because it's already shown."""
    TAKE_BACK = "take back"
    SHOW_AGAIN = "show again"
    """Replace the notification that is shown."""


class Push(Struct, frozen=True, kw_only=True):
    """Messages of one conversation for one subscription."""

    subscription_id: int
    conversation: str
    user_id: int
    wanted: PushAction
    version: str
    """Changes with each request."""
    asked_at: float
    """UNIX seconds."""
    message_ids: tuple[int, ...]
    """Ascending."""
    shown_to: int
    """The newest message that was pushed; 0 if none was."""


class LeasedPushes(Struct, frozen=True, kw_only=True):
    """A subscription to be pushed to now."""

    lease: Lease
    pushes: tuple[Push, ...]
    """All of the subscription's pushes, including those that are shown."""


def request(
    connection: Connection,
    subscription_id: int,
    user_id: int,
    conversation: str,
    wanted: PushAction,
    message_ids: Iterable[int],
    at: float,
) -> None:
    """Queue a push. A pending one of the same conversation is merged into it."""
    key = (subscription_id, conversation)
    rows = connection.query(
        "SELECT wanted, message_ids FROM pushes WHERE subscription_id = ? AND conversation = ?", key
    )
    if wanted is PushAction.SHOW and any(before != PushAction.SHOW for before, _ in rows):
        wanted = PushAction.SHOW_AGAIN
    ids = {*message_ids, *(message_id for before, sent in rows for message_id in _ids(sent))}
    connection.run(
        f"INSERT INTO pushes (subscription_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (subscription_id, conversation) DO UPDATE SET user_id = excluded.user_id,"
        " wanted = excluded.wanted, version = excluded.version, asked_at = excluded.asked_at,"
        " message_ids = excluded.message_ids",
        (
            *key,
            user_id,
            wanted.value,
            secrets.token_hex(8),
            at,
            " ".join(map(str, sorted(ids)[-MAX_MESSAGES:])),
        ),
    )
    _drop_excess(connection, subscription_id)
    connection.run(
        "INSERT INTO push_lanes (subscription_id, due_at, failures, lease, pushed_at, trouble)"
        " VALUES (?, ?, 0, '', 0, '') ON CONFLICT (subscription_id) DO UPDATE SET"
        # A retry or a push in progress keeps its time.
        " due_at = COALESCE(push_lanes.due_at, excluded.due_at)",
        (subscription_id, at),
    )


def _drop_excess(connection: Connection, subscription_id: int) -> None:
    rows = connection.query(
        "SELECT conversation FROM pushes WHERE subscription_id = ?"
        f" ORDER BY asked_at DESC, conversation LIMIT 1000 OFFSET {MAX_CONVERSATIONS}",
        (subscription_id,),
    )
    connection.run_many(
        "DELETE FROM pushes WHERE subscription_id = ? AND conversation = ?",
        [(subscription_id, str(conversation)) for (conversation,) in rows],
    )


def lease(
    connection: Connection, now: float, lease_seconds: float, subscription_ids: Iterable[int]
) -> list[LeasedPushes]:
    """Lease the subscriptions that are due."""
    return [
        LeasedPushes(lease=lease, pushes=tuple(pushes_of(connection, lease.receiver_id)))
        for lease in DEVICES.lease(connection, now, lease_seconds, subscription_ids)
    ]


def finish(
    connection: Connection,
    lane: LeasedPushes,
    shown: Sequence[Push],
    over: Sequence[Push],
    now: float,
    until: float | None,
    trouble: str,
) -> None:
    """Record the pushes that are now shown and those that are over. If the push service failed,
    `until` is when to retry. Newer requests stay, and nothing changes if the lease was lost."""
    if not DEVICES.holds(connection, lane.lease):
        return
    connection.run_many(
        "UPDATE pushes SET wanted = ?"
        " WHERE subscription_id = ? AND conversation = ? AND version = ?",
        [
            (PushAction.SHOWN.value, push.subscription_id, push.conversation, push.version)
            for push in shown
        ],
    )
    # A newer request was merged with the pushed messages, which aren't pushed again.
    connection.run_many(
        "UPDATE pushes SET shown_to = ?"
        " WHERE subscription_id = ? AND conversation = ? AND shown_to < ?",
        [
            (push.message_ids[-1], push.subscription_id, push.conversation, push.message_ids[-1])
            for push in shown
            if push.message_ids
        ],
    )
    connection.run_many(
        "DELETE FROM pushes WHERE subscription_id = ? AND conversation = ? AND version = ?",
        [(push.subscription_id, push.conversation, push.version) for push in over],
    )
    if shown:
        connection.run(
            "UPDATE push_lanes SET pushed_at = ? WHERE subscription_id = ?",
            (now, lane.lease.receiver_id),
        )
    left = connection.query(
        "SELECT 1 FROM pushes WHERE subscription_id = ? AND wanted <> ? LIMIT 1",
        (lane.lease.receiver_id, PushAction.SHOWN.value),
    )
    due = now if until is None else until
    DEVICES.release(
        connection, lane.lease, due if left else None, now, None if until is None else trouble
    )


def forget(connection: Connection, subscription_ids: Iterable[int]) -> None:
    """Delete subscriptions."""
    for subscription_id in subscription_ids:
        connection.run("DELETE FROM pushes WHERE subscription_id = ?", (subscription_id,))
        DEVICES.remove(connection, subscription_id)


def subscription_ids(connection: Connection) -> list[int]:
    return [int(value) for (value,) in connection.query("SELECT subscription_id FROM push_lanes")]


def pushes_of(connection: Connection, subscription_id: int) -> list[Push]:
    """Return a subscription's pushes, oldest first."""
    rows = connection.query(
        f"SELECT {_ALL} FROM pushes WHERE subscription_id = ? ORDER BY asked_at, conversation",
        (subscription_id,),
    )
    return [_push(row) for row in rows]


def shown_to(connection: Connection, user_ids: Iterable[int]) -> list[Push]:
    pushes: list[Push] = []
    for user_id in sorted(user_ids):
        rows = connection.query(
            f"SELECT {_ALL} FROM pushes WHERE user_id = ? AND wanted = ?",
            (user_id, PushAction.SHOWN.value),
        )
        pushes += [_push(row) for row in rows]
    return pushes


def all_shown(connection: Connection) -> list[Push]:
    rows = connection.query(
        f"SELECT {_ALL} FROM pushes WHERE wanted = ?",
        (PushAction.SHOWN.value,),
    )
    return [_push(row) for row in rows]


def statuses(
    connection: Connection, subscription_ids: Iterable[int]
) -> dict[int, tuple[float, str]]:
    """Return when each subscription was last pushed to (UNIX seconds, 0 for never), and why the
    last push failed, or ""."""
    statuses: dict[int, tuple[float, str]] = {}
    for subscription_id in subscription_ids:
        for pushed_at, trouble in connection.query(
            "SELECT pushed_at, trouble FROM push_lanes WHERE subscription_id = ?",
            (subscription_id,),
        ):
            statuses[subscription_id] = float(pushed_at), str(trouble)
    return statuses


def retract(connection: Connection, shown: Iterable[Push], at: float) -> int:
    """Withdraw the pushes that are still shown. Return their number."""
    count = 0
    for push in shown:
        key = (push.subscription_id, push.conversation, push.version)
        if connection.query(
            "SELECT 1 FROM pushes WHERE subscription_id = ? AND conversation = ? AND version = ?"
            " AND wanted = ?",
            (*key, PushAction.SHOWN.value),
        ):
            request(
                connection,
                push.subscription_id,
                push.user_id,
                push.conversation,
                PushAction.TAKE_BACK,
                push.message_ids,
                at,
            )
            count += 1
    return count


def _ids(text: object) -> tuple[int, ...]:
    return tuple(map(int, str(text).split()))


def _push(row: Row) -> Push:
    subscription_id, conversation, user_id, wanted, version, asked_at, message_ids, to = row
    return Push(
        subscription_id=int(subscription_id),
        conversation=str(conversation),
        user_id=int(user_id),
        wanted=PushAction(str(wanted)),
        version=str(version),
        asked_at=float(asked_at),
        message_ids=_ids(message_ids),
        shown_to=int(to),
    )
