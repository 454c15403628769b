"""Pictures that people upload: looked at with care, and made the size that they are shown in.

What does so is in `work`, loaded with the first picture: Pillow takes memory, and a moment.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from tertulia.pictures.kinds import MAX_FRAMES, BadPicture, Described, Scaled

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

P = ParamSpec("P")
T = TypeVar("T")

_threads: Final = ThreadPoolExecutor(1, thread_name_prefix="pictures")


async def squared(content: bytes, size: int) -> Scaled:
    """The middle of the picture's first frame as a PNG of `size` by `size` pixels.

    Raises BadPicture.
    """
    from tertulia.pictures import work

    return await _apart(work.squared, content, size)


async def fitted(content: bytes, width: int, height: int) -> Scaled:
    """The picture's first frame as a PNG, made smaller where it is wider or higher than that.

    Raises BadPicture.
    """
    from tertulia.pictures import work

    return await _apart(work.fitted, content, width, height)


async def animated(content: bytes, size: int) -> Scaled | None:
    """All frames, each as large as fits into `size` by `size` pixels, as an animated GIF; None for
    a picture of one frame. Raises BadPicture."""
    from tertulia.pictures import work

    return await _apart(work.animated, content, size)


async def described(place: Path) -> Described:
    """What the picture in the file is. Raises BadPicture."""
    from tertulia.pictures import work

    return await _apart(work.described, place)


async def thumbnail(place: Path, width: int, height: int, *, moving: bool) -> Scaled:
    """The picture in the file as WebP, no larger than it is and no larger than that; all of its
    frames if `moving`. Raises BadPicture."""
    from tertulia.pictures import work

    return await _apart(work.thumbnail, place, (width, height), moving)


async def _apart(work: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(
        _threads, lambda: work(*arguments, **keywords)
    )


@lru_cache(512)
def drawn(number: int, letters: str, size: int) -> bytes:
    """A picture for somebody who has none, as a PNG of `size` by `size` pixels: their initials (A
    to Z; a pattern where there are none) on a colour that follows from the number."""
    from tertulia.pictures import work

    return work.drawn(number, letters, size)
