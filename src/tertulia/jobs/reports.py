"""The trouble that jobs are in, stored for `tertulia check`, which is another process."""

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
    """The jobs that were in trouble by their last report, each with what is wrong."""
    facts = installation.values(connection, PREFIX)
    return {key.removeprefix(PREFIX): value for key, value in facts.items() if value}


def reporter(log: Log, known: Iterable[str]) -> Callable[[Job], None]:
    """Stores what is wrong with a job, and when that is over. `known` are the jobs that were in
    trouble when the node started."""
    reported = set(known)

    def report(job: Job) -> None:
        if job.trouble is not None:
            reported.add(job.name)
        elif job.name in reported:
            reported.remove(job.name)
        else:
            return
        log.note(FactNoted(PREFIX + job.name, job.trouble or ""))

    return report
