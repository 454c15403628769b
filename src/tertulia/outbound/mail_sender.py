"""Sending queued emails, with retries."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Final, Protocol

from tertulia.model.errors import Unavailable
from tertulia.model.mail import Mail
from tertulia.model.numbers import retry_pause
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.outbound.transports import TIMEOUT_SECONDS, Delayed, Transport, Undeliverable
from tertulia.store import outbox
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.outbox import QueuedMail
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.mail")

LEASE_SECONDS: Final = TIMEOUT_SECONDS * 4
"""The duration of a lease in seconds, longer than an attempt takes."""
MAX_CONCURRENT: Final = 4
"""The most emails that are sent at the same time."""
FIRST_PAUSE: Final = 60.0
LONGEST_PAUSE: Final = 4 * 3600.0
"""Pauses after failures double up to this many seconds."""
GIVEN_UP_AFTER: Final = 4 * 86400.0
"""The number of seconds after which an email is given up."""
ROUND_SECONDS: Final = 120.0
"""The number of seconds after which a round ends, between two emails. If the supervisor interrupted
it, emails could be sent twice."""
LONGEST_SLEEP: Final = 60.0
"""The longest sleep in seconds, since another node may have queued an email."""


class Postponed(Exception):
    """The recipient has quiet hours until the UNIX time `until`."""

    def __init__(self, until: float) -> None:
        self.until = until
        super().__init__()


class RendersMails(Protocol):
    """Renders emails."""

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """Render an email; None if it is no longer needed. Raise Postponed."""


class MailSender:
    """Sends emails for one node."""

    def __init__(
        self,
        store: Store,
        renderer: RendersMails,
        transport: Transport,
        clock: Callable[[], float],
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a sender. `clock` returns UNIX seconds, and `elapsed` monotonic seconds."""
        self._store = store
        self._renderer = renderer
        self._transport = transport
        self._clock = clock
        self._elapsed = elapsed

    async def once(self) -> float:
        """Send the emails that are due. Return the seconds until the next round."""
        await self.deliver(ROUND_SECONDS)
        due = await self._store.read(outbox.next_due)
        pause = LONGEST_SLEEP if due is None else max(due - self._clock(), 0.1)
        return min(pause, LONGEST_SLEEP)

    async def deliver(self, seconds: float = math.inf) -> None:
        """Send everything that is due, starting no email after `seconds`."""
        until = self._elapsed() + seconds
        while not _is_cancelled() and self._elapsed() < until and await self._is_due():
            taken = await self._store.write(self._take)
            # Wait for the others before failing, because interrupted emails could be sent twice.
            for ended in await asyncio.gather(*map(self._send, taken), return_exceptions=True):
                if ended is not None:
                    raise ended

    def _take(self, connection: Connection) -> list[QueuedMail]:
        return outbox.lease(connection, self._clock(), LEASE_SECONDS, MAX_CONCURRENT)

    async def _is_due(self) -> bool:
        due = await self._store.read(outbox.next_due)
        return due is not None and due <= self._clock()

    async def _send(self, waiting: QueuedMail) -> None:
        """Make one attempt. Content and recipient aren't logged."""
        facts = _facts(waiting)
        try:
            mail = await self._renderer.rendered(waiting.mail, self._clock())
        except Postponed as later:
            logger.info("mail postponed, recipient has quiet hours", extra={"fields": facts})
            now, until = self._clock(), later.until
            await self._store.write(lambda c: outbox.reschedule(c, waiting, now, until))
            return
        except (DatabaseError, Unavailable) as error:
            await self._postpone(waiting, type(error).__name__)
            return
        except Exception as error:  # Other emails are not affected.
            logger.exception("could not render a mail", extra={"fields": facts})
            await self._postpone_or_give_up(waiting, type(error).__name__)
            return
        if mail is None:
            logger.info("mail not sent, no longer needed", extra={"fields": facts})
            await self._store.write(lambda c: outbox.remove(c, waiting))
            return
        if waiting.given_up:
            await self._give_up(waiting, waiting.given_up)
            return
        try:
            await self._transport.send(mail, waiting.id)
        except Undeliverable as error:
            logger.warning(
                "mail given up, rejected by the mail server",
                extra={"fields": {**facts, "reason": str(error)}},
            )
            await self._give_up(waiting, str(error))
            return
        except (Delayed, TimeoutError) as error:
            await self._postpone_or_give_up(waiting, str(error) or "it took too long")
            return
        else:
            logger.info("mail sent", extra={"fields": facts})
        await self._store.write(lambda c: outbox.remove(c, waiting))

    async def _postpone_or_give_up(self, waiting: QueuedMail, trouble: str) -> None:
        if self._clock() - waiting.asked_at < GIVEN_UP_AFTER:
            await self._postpone(waiting, trouble)
            return
        logger.warning(
            "mail given up, retried for too long",
            extra={"fields": {**_facts(waiting), "reason": trouble}},
        )
        await self._give_up(waiting, trouble)

    async def _give_up(self, waiting: QueuedMail, reason: str) -> None:
        now = self._clock()
        await self._store.write(lambda c: outbox.give_up(c, waiting, now, reason))

    async def _postpone(self, waiting: QueuedMail, trouble: str) -> None:
        pause = retry_pause(waiting.attempts, FIRST_PAUSE, LONGEST_PAUSE, spread=0.25)
        until = self._clock() + pause
        logger.warning(
            "mail delayed",
            extra={"fields": {**_facts(waiting), "reason": trouble}},
        )
        await self._store.write(lambda c: outbox.postpone(c, waiting, until, trouble))


def _facts(waiting: QueuedMail) -> dict[str, str | int]:
    """Return the fields to log."""
    return {"mail": waiting.id, "kind": waiting.mail.kind.value, "attempt": waiting.attempts}


def _is_cancelled() -> bool:
    """Whether the task was canceled. The SMTP library may swallow the CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
