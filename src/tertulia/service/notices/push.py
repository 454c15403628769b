"""Telling by push: what is to be told becomes a row for each program of the person's, which is
written in words when it is pushed."""

from collections.abc import Callable, Sequence
from typing import Final

from pyroaring import BitMap

from tertulia.domain.notices.rules import Way
from tertulia.log.log import Log
from tertulia.service.notices.means import IDLE_PATIENCE, Told
from tertulia.store import pushes
from tertulia.store.database import Connection
from tertulia.store.pushes import Wanted

PATIENCE: Final = 0.2


class ByPush:
    """Tells by push. `wanted` is called when there is something to be pushed."""

    way = Way.PUSH

    def __init__(self, log: Log, wanted: Callable[[], None]) -> None:
        self._log = log
        self.recorded = wanted
        self._version: object = None
        self._people = BitMap()

    @property
    def patience(self) -> float:
        return PATIENCE if self.reaches_somebody else IDLE_PATIENCE

    @property
    def reaches_somebody(self) -> bool:
        return bool(self._reached())

    def reached(self, people: BitMap) -> BitMap:
        """Those who have a program that is pushed to."""
        return people & self._reached()

    def _reached(self) -> BitMap:
        table = self._log.state.push_subscriptions
        if (table, table.version) != self._version:
            self._version = table, table.version
            self._people = BitMap(table.of_user)
        return self._people

    def records(self, told: Sequence[Told], now: float) -> Callable[[Connection], None]:
        own = self._log.state.push_subscriptions.of_user
        asked = [
            (subscription.id, one.user_id, one.conversation, one.message_ids)
            for one in told
            for subscription in own[one.user_id]
            if subscription.paused_until <= now
        ]

        def write(connection: Connection) -> None:
            for subscription_id, user_id, conversation, message_ids in asked:
                pushes.ask(
                    connection,
                    subscription_id,
                    user_id,
                    conversation,
                    Wanted.SHOW,
                    message_ids,
                    now,
                )

        return write
