"""A source with an invented organization, and a function that imports it."""

import io
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from tertulia.app.founding import opened_log, opened_vault
from tertulia.imports.importer import Importer
from tertulia.imports.progress import Progress, Tell
from tertulia.imports.records import (
    SourceChannel,
    SourceEdit,
    SourceMessage,
    SourceOrganization,
    SourceReaction,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, Survey
from tertulia.imports.target import ImportTarget
from tertulia.model.reactions import EmojiKind
from tertulia.model.users import Role
from tertulia.service.config import Config

BEGAN = 1_600_000_000
"""The time of the first message, in UNIX seconds."""


class Invented:
    """An organization with three people and two channels; `messages` alternate between them, and
    every fourth one is direct."""

    kind = "invented"

    def __init__(self, messages: int, *, size: int = 10, keeps_ids: bool = True) -> None:
        self.keeps_ids = keeps_ids
        self._messages = messages
        self._size = size
        self.files: dict[str, bytes] = {}

    def survey(self) -> Survey:
        return Survey(
            fingerprint=f"invented {self._messages}",
            name="Harbor Café",
            origin="Invented 1.0",
            messages=self._messages,
        )

    def organization(self, report: ImportReport) -> SourceOrganization:
        report.skip("invoices", "There is no place for them here.", "May")
        return SourceOrganization(
            name="Harbor Café",
            created_at=BEGAN,
            settings={"default_language": "de", "unheard_of": 1},
            users=(
                SourceUser(key=11, full_name="Ann", address="ann@example.com", role=Role.OWNER),
                SourceUser(key=12, full_name="Ben", address="ben@example.com"),
                SourceUser(key=13, full_name="Cleo", address="", is_active=False),
            ),
            channels=(
                SourceChannel(key=21, name="kitchen"),
                SourceChannel(key=22, name="office", is_private=True, history_public=False),
            ),
            subscriptions=(
                SourceSubscription(channel=21, user=11),
                SourceSubscription(channel=21, user=12, color="#ff0000", is_muted=True),
                SourceSubscription(channel=22, user=11),
                # Ben was subscribed to the office in the middle, and again at the end.
                SourceSubscription(channel=22, user=12, spans=((110, 120), (130, None))),
            ),
        )

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        for first in range(int(after or 0), self._messages, self._size):
            last = min(first + self._size, self._messages)
            yield MessageBatch(tuple(map(self.message, range(first, last))), str(last))

    def message(self, n: int) -> SourceMessage:
        """Return the message with this number. The first one has ID 101."""
        choose = random.Random(n)
        common = {
            "key": 101 + n,
            "sender": choose.choice((11, 12)),
            "sent_at": BEGAN + 60 * n,
            "content": f"**Message** {n} for @**Ben**",
            "reactions": (SourceReaction(12, EmojiKind.UNICODE, "1f44d", "+1"),) * (n % 5 == 0),
            "edits": (SourceEdit(at=BEGAN + 60 * n + 9, user=11, was_content="*Mesage*"),)
            * (n % 7 == 0),
            "unread_by": (12,) * (n % 3 == 0),
        }
        if n % 4 == 3:
            return SourceMessage(people=(11, 12), **common)  # type: ignore[arg-type]
        return SourceMessage(channel=21 + n % 2, topic=f"Topic {n % 6}", **common)  # type: ignore[arg-type]

    def open(self, place: str) -> BinaryIO:
        try:
            return io.BytesIO(self.files[place])
        except KeyError:
            raise FileNotFoundError(place) from None

    def close(self) -> None:
        pass


class Killed(BaseException):
    """An import was ended, as by a signal, so nothing handles it as an error."""


def kill_after(commits: int) -> Callable[[object], None]:
    """Return a function that an import calls after each commit, and that ends it at this one."""
    numbers = itertools.count(1)
    return _kill_when(lambda _: next(numbers) == commits)


def kill_at_message(number: int) -> Tell:
    """Return a function that ends an import when it has written this number of messages."""
    return _kill_when(lambda progress: progress.messages >= number)


def _kill_when(condition: Callable[[Any], bool]) -> Callable[[Any], None]:
    def tell(progress: Any) -> None:
        if condition(progress):
            raise Killed

    return tell


async def imported(
    config: Config,
    source: Source,
    tell: Tell = lambda _: None,
    *,
    matches_accounts: bool = True,
) -> Progress:
    """Import the source as `tertulia import` does."""
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    try:
        async with opened_log(config, print) as log:
            importer = Importer(
                ImportTarget(log, vault, files, disk),
                source,
                tell=tell,
                processes=1,
                matches_accounts=matches_accounts,
            )
            return await importer.run()
    finally:
        vault.close()
