"""Work on what users made up that has no bound within one step: regular expressions of grammars,
decoders of pictures, parsers of foreign pages.

Python cannot interrupt such a step, and while `re` is in one no other thread runs. So it is done
in a process beside the server, which is started when it is first wanted, is killed when it takes
longer than it may, and is replaced. `worker.Worker` is the server's side of it, `process` what
runs in the other.
"""

from typing import Final

from tertulia.workers.worker import (
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    TaskWorker,
    WorkerTask,
)

__all__ = [
    "FILES",
    "TEXTS",
    "TaskBudget",
    "TaskFailed",
    "TaskLimitExceeded",
    "TaskUnavailable",
    "TaskWorker",
    "WorkerTask",
]

_MIB: Final = 1024 * 1024

TEXTS: Final = TaskWorker("texts", memory=1024 * _MIB)
"""For what takes milliseconds and what a message waits for: code and formulas."""
FILES: Final = TaskWorker("files", memory=2048 * _MIB)
"""For what may take seconds: pictures, and pages of other servers."""
