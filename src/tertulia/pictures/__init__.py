"""Pictures that people upload: described, and scaled to the size in which they are shown.

`work` does it, in a worker: decoding takes memory, and as much time as the picture's author likes.
"""

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
"""Of the processor, for one picture. A large photograph takes less than one."""
PATIENCE: Final = 60.0
"""Seconds until it is given up, waiting for its turn included."""

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
    """The middle of the picture's first frame as a PNG of `size` by `size` pixels.

    Raises BadPicture, and Unavailable where too many pictures are waiting: as all of these do.
    """
    return await _done(SQUARED, content, size)


async def fitted(content: bytes, width: int, height: int) -> Scaled:
    """The picture's first frame as a PNG, made smaller where it is wider or higher than that."""
    return await _done(FITTED, content, width, height)


async def animated(content: bytes, size: int) -> Scaled | None:
    """All frames, each as large as fits into `size` by `size` pixels, as an animated GIF; None for
    a picture of one frame."""
    return await _done(ANIMATED, content, size)


async def described(place: Path) -> PictureInfo:
    """What the picture in the file is."""
    return await _done(DESCRIBED, str(place))


async def thumbnail(place: Path, width: int, height: int, *, moving: bool) -> Scaled:
    """The picture in the file as WebP, no larger than it is and no larger than that; all of its
    frames if `moving`."""
    return await _done(THUMBNAIL, str(place), width, height, moving)


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
    """A picture for somebody who has none, as a PNG of `size` by `size` pixels: their initials (A
    to Z; a pattern where there are none) on a colour that follows from the number."""
    from tertulia.pictures import work

    return work.drawn(number, letters, size)
