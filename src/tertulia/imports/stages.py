"""The progress of opening an export, which comes before its messages."""

import time
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

TOLD_SECONDS: Final = 0.5
"""The shortest interval, in seconds, between two updates of a stage."""

Stage = Literal["extracting", "reading", "sorting"]


class StageProgress(Struct, frozen=True):
    """How much of a stage is done."""

    stage: Stage
    done: int
    whole: int
    """In the same unit as `done`: bytes, files, or messages. Can be an estimate."""


TellStage = Callable[[StageProgress], None]
"""Called about twice a second while an export is opened."""


def tell_nobody(_: StageProgress) -> None:
    """Ignore the progress."""


class StageCounter:
    """Counts what a stage has done. Tells it when the stage begins, and then every
    `TOLD_SECONDS`."""

    def __init__(self, tell: TellStage, stage: Stage, whole: int) -> None:
        self._tell = tell
        self._stage: Stage = stage
        self._whole = whole
        self._done = 0
        self._told_at = 0.0
        self._tell_now()

    def add(self, number: int) -> None:
        self._done += number
        if time.monotonic() - self._told_at >= TOLD_SECONDS:
            self._tell_now()

    def _tell_now(self) -> None:
        self._told_at = time.monotonic()
        self._tell(StageProgress(self._stage, self._done, self._whole))
