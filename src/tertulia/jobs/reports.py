"""What is wrong with jobs, written down for `tertulia check`, which looks from outside."""

from collections.abc import Callable, Iterable
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.log.log import Log
from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.writing import FactNoted

PREFIX: Final = "job."
"""Before the names of jobs, among the facts about the installation."""


def troubles(connection: Connection) -> dict[str, str]:
    """The jobs that were in trouble when last heard of, each with what is wrong."""
    facts = installation.values(connection, PREFIX)
    return {key.removeprefix(PREFIX): value for key, value in facts.items() if value}


def reporter(log: Log, known: Iterable[str]) -> Callable[[Job], None]:
    """Writes down what is wrong with a job, and when that is over. `known` are those of which
    there was something to say when the node started."""
    told = set(known)

    def report(job: Job) -> None:
        if job.trouble is not None:
            told.add(job.name)
        elif job.name in told:
            told.remove(job.name)
        else:
            return
        log.note(FactNoted(PREFIX + job.name, job.trouble or ""))

    return report
