"""Uploaded images: inspecting and scaling them. `work` runs in a worker process, because the time
and memory that decoding takes depend on the image."""

from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from tertulia.model.errors import Unavailable
from tertulia.pictures.kinds import MAX_FRAMES, BadPicture, PictureInfo, Scaled
from tertulia.workers import (
    FILES,
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    WorkerTask,
)

__all__ = [
    "MAX_FRAMES",
    "BadPicture",
    "Described",
    "Scaled",
    "animated",
    "described",
    "drawn",
    "fitted",
    "squared",
    "thumbnail",
]

T = TypeVar("T")

MAX_SECONDS: Final = 20.0
"""The most CPU seconds per image. A large photo takes less than a second."""
PATIENCE: Final = 60.0
"""The most seconds per image, including the wait for a worker."""

_WORK: Final = "tertulia.pictures.work"
_LOAD: Final = f"{_WORK}:load"
SQUARED: Final[WorkerTask[Scaled]] = WorkerTask(f"{_WORK}:squared", Scaled, load=_LOAD)
FITTED: Final[WorkerTask[Scaled]] = WorkerTask(f"{_WORK}:fitted", Scaled, load=_LOAD)
ANIMATED: Final[WorkerTask[Scaled | None]] = WorkerTask(
    f"{_WORK}:animated", Scaled | None, load=_LOAD
)
DESCRIBED: Final[WorkerTask[PictureInfo]] = WorkerTask(
    f"{_WORK}:described", PictureInfo, load=_LOAD
)
THUMBNAIL: Final[WorkerTask[Scaled]] = WorkerTask(f"{_WORK}:thumbnail", Scaled, load=_LOAD)


async def squared(content: bytes, size: int) -> Scaled:
    """Return the center of the first frame as a square PNG. Raise BadPicture, and Unavailable if
    too many images wait, as all of these functions do."""
    return await _done(SQUARED, content, size)


async def fitted(content: bytes, width: int, height: int) -> Scaled:
    """Return the first frame as a PNG, scaled down to fit."""
    return await _done(FITTED, content, width, height)


async def animated(content: bytes, size: int) -> Scaled | None:
    """Return all frames as an animated GIF that fits, or None for a still image."""
    return await _done(ANIMATED, content, size)


async def described(path: Path) -> PictureInfo:
    return await _done(DESCRIBED, str(path))


async def thumbnail(path: Path, width: int, height: int, *, moving: bool) -> Scaled:
    """Return the image as WebP, scaled down to fit; with all frames if `moving`."""
    return await _done(THUMBNAIL, str(path), width, height, moving)


async def _done(job: WorkerTask[T], *arguments: object) -> T:
    try:
        return await FILES.call(job, *arguments, allowance=TaskBudget(MAX_SECONDS, PATIENCE))
    except TaskFailed as error:
        if error.kind != BadPicture.__name__:
            raise
        raise BadPicture(str(error)) from None
    except TaskLimitExceeded:
        raise BadPicture("This image takes too long to process.") from None
    except TaskUnavailable as error:
        raise Unavailable("Too many images are waiting to be processed. Try again.") from error


@lru_cache(512)
def drawn(number: int, letters: str, size: int) -> bytes:
    """Draw a default avatar as a PNG: initials (A to Z), or a pattern without any, in a color
    that follows from the number."""
    from tertulia.pictures import work

    return work.drawn(number, letters, size)
