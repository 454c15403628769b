"""Reading a mail that has come in, by a worker."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from tertulia.model.errors import Refused, Unavailable
from tertulia.service.mail_in.mails import ReceivedMail
from tertulia.workers import FILES, Allowance, Exceeded, Failed, Job, Unanswered

T = TypeVar("T")

MAX_SECONDS: Final = 5.0
"""Of the processor, for one mail; one of 25 MiB takes one or two."""
PATIENCE: Final = 60.0
"""Seconds until it is given up, waiting for its turn included."""
_WORK: Final = "tertulia.service.mail_in.mail_work"
READ: Final[Job[ReceivedMail]] = Job(f"{_WORK}:read", ReceivedMail, load=f"{_WORK}:load")
UNPACK: Final[Job[None]] = Job(f"{_WORK}:unpack", type(None), load=f"{_WORK}:load")


class TakesTooLong(Refused):
    """The mail takes longer to read than any may."""

    def __init__(self) -> None:
        super().__init__("This email takes too long to process.")


async def read(place: Path, *, quotes: bool, footers: bool, prefer_html: bool) -> ReceivedMail:
    """What the mail in the file says. Refused where it cannot be read, TakesTooLong among them;
    Unavailable where too much waits."""
    return await _done(READ, str(place), quotes, footers, prefer_html)


async def unpack(place: Path, into: Sequence[Path]) -> None:
    """Write the mail's files into these, in their order."""
    await _done(UNPACK, str(place), [str(one) for one in into])


async def _done(job: Job[T], *arguments: object) -> T:
    try:
        return await FILES.call(job, *arguments, allowance=Allowance(MAX_SECONDS, PATIENCE))
    except Failed:
        raise Refused("This email couldn't be read.") from None
    except Exceeded:
        raise TakesTooLong from None
    except Unanswered as error:
        raise Unavailable(
            "Too many emails are waiting to be processed. Try again later."
        ) from error
