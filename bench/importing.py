"""A process that imports an organization of a generated source, for `bench/cases/imports.py`.

Another kind of export is a function that writes one, in `KINDS`: it is read by the real source.
"""

import argparse
import asyncio
import io
import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from tertulia.app.founding import opened_log, opened_vault
from tertulia.imports.importer import Importer
from tertulia.imports.records import (
    SourceChannel,
    SourceMessage,
    SourceOrganization,
    SourceReaction,
    SourceSubscription,
    SourceUser,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, Survey
from tertulia.model.reactions import EmojiKind
from tertulia.model.users import Role
from tertulia.service.config import Config

PEOPLE: Final = 200
CHANNELS: Final = 40
TOPICS: Final = 2000
AT_ONCE: Final = 500
_BEGAN: Final = 1_500_000_000
_TEXT: Final = (
    "the meeting moved because nobody could find the notes from last week and so we should look at"
    " them again before lunch, thanks for the quick fix of the harbor door"
)
_WORDS: Final = _TEXT.split()


class Generated:
    """A team that talked, the same each time."""

    kind = "generated"
    keeps_ids = True

    def __init__(self, messages: int) -> None:
        self._messages = messages

    def survey(self) -> Survey:
        return Survey(
            fingerprint=f"generated {self._messages}",
            name="Bench",
            origin="the benchmark",
            messages=self._messages,
        )

    def organization(self, report: ImportReport) -> SourceOrganization:
        people = range(10, 10 + PEOPLE)
        return SourceOrganization(
            name="Bench",
            users=tuple(
                SourceUser(
                    key=one,
                    full_name=f"Person {one}",
                    address=f"person{one}@example.com",
                    role=Role.OWNER if one == 10 else Role.MEMBER,
                )
                for one in people
            ),
            channels=tuple(
                SourceChannel(key=one, name=f"channel {one}") for one in range(1, CHANNELS + 1)
            ),
            subscriptions=tuple(
                SourceSubscription(channel=channel, user=one)
                for one in people
                for channel in range(1, CHANNELS + 1)
                if (one + channel) % 3
            ),
        )

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        for first in range(int(after or 0), self._messages, AT_ONCE):
            last = min(first + AT_ONCE, self._messages)
            yield MessageBatch(tuple(map(_message, range(first, last))), str(last))

    def open(self, place: str) -> BinaryIO:
        return io.BytesIO()

    def close(self) -> None:
        pass


def _message(n: int) -> SourceMessage:
    choose = random.Random(n)
    topic = choose.randrange(TOPICS)
    words = choose.choices(_WORDS, k=choose.randrange(3, 40))
    if n % 10 == 0:
        words += [f"@**Person {10 + choose.randrange(PEOPLE)}**", "**now**", "`make it`"]
    if n % 50 == 0:
        words += ["\n```python\nfor one in several:\n    print(one)\n```"]
    thumb = SourceReaction(10 + choose.randrange(PEOPLE), EmojiKind.UNICODE, "1f44d", "+1")
    return SourceMessage(
        key=n + 1,
        sender=10 + choose.randrange(PEOPLE),
        sent_at=_BEGAN + 30 * n,
        channel=1 + topic % CHANNELS,
        topic=f"topic {topic}",
        content=" ".join(words),
        reactions=(thumb,) if n % 4 == 0 else (),
        unread_by=(11,) if n % 100 == 0 else (),
    )


KINDS: Final[Mapping[str, Callable[[int, Path], Source]]] = {
    "generated": lambda messages, _: Generated(messages),
}
"""Sources by kind, for a number of messages and a directory for the export."""


async def _imported(config: Config, source: Source) -> None:
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    began = time.monotonic()
    async with opened_log(config, lambda _: None) as log:
        progress = await Importer(log, vault, files, disk, source).run()
    own = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "seconds": time.monotonic() - began,
                "cpu": own.ru_utime + own.ru_stime,
                "others_cpu": others.ru_utime + others.ru_stime,
                "messages": progress.report.imported["messages"],
            }
        ),
        flush=True,
    )
    vault.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="generated")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--config", required=True, help="The server's configuration as JSON.")
    options = parser.parse_args()
    given = msgspec.json.decode(options.config, type=Config)
    export = Path(given.data_dir) / "export"
    os.makedirs(export, exist_ok=True)
    asyncio.run(_imported(given, KINDS[options.kind](options.messages, export)))
