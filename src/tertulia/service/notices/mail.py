"""Telling by mail: what is to be told becomes a mail in the outbox, which is written when it is
sent."""

from collections.abc import Callable, Sequence
from functools import partial

from pyroaring import BitMap

from tertulia.domain.accounts import account_mails
from tertulia.domain.notices.rules import Way
from tertulia.log.log import Log
from tertulia.model.mail import MailKind
from tertulia.service.notices.means import IDLE_PATIENCE, Told
from tertulia.store import outbox
from tertulia.store.database import Connection

MESSAGES = "messages"
"""The fact of a mail that says which messages it is about."""


class ByMail:
    """Tells by mail. `site` is where the links in mails lead; `wanted` is called when there are
    some to be sent."""

    way = Way.MAIL
    patience = IDLE_PATIENCE
    reaches_somebody = True

    def __init__(self, log: Log, site: str, wanted: Callable[[], None]) -> None:
        self._log = log
        self._site = site
        self.recorded = wanted

    def reached(self, people: BitMap) -> BitMap:
        """All: everybody has an address."""
        return people

    def records(self, told: Sequence[Told], now: float) -> Callable[[Connection], None]:
        users = self._log.state.users
        mails = {
            outbox.new_id(): mail
            for one in told
            for mail in account_mails.about(
                MailKind.MISSED_MESSAGES,
                users[one.user_id],
                self._site,
                **{MESSAGES: " ".join(map(str, one.message_ids))},
            )
        }
        return partial(outbox.put_all, mails=mails, at=now)
