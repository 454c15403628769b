"""Properties and limits of images."""

from dataclasses import dataclass
from typing import Final

MAX_PIXELS: Final = 90_000_000
"""The most pixels in all frames. Larger images aren't decoded, because a small file can be huge
when decoded."""
MAX_FRAMES: Final = 2000
"""The most frames. They're counted before a decoder does, which takes long for millions."""


class BadPicture(Exception):
    """The file isn't an image that can be displayed. The text is for its owner."""


@dataclass(frozen=True)
class Scaled:
    """A scaled image."""

    content: bytes
    media_type: str
    width: int
    height: int
    animated: bool = False


@dataclass(frozen=True)
class PictureInfo:
    """An image's properties, read without decoding it."""

    width: int
    """Pixels, after rotation."""
    height: int
    animated: bool
