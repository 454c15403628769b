"""Processes for untrusted work that has no bound within one step: regular expressions of grammars,
image decoders, parsers of other servers' pages. Python can't interrupt such a step, and while `re`
runs no other thread does. So it runs in a process that is started on demand, killed when it exceeds
its limits, and replaced. `worker` is the server's side, and `process` runs in the other process."""

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
"""The worker for work of milliseconds that a message waits for: code and formulas."""
FILES: Final = TaskWorker("files", memory=2048 * _MIB)
"""The worker for work that may take seconds: images, and pages of other servers."""
