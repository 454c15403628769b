"""What is known of a picture, and how large it may be."""

from dataclasses import dataclass
from typing import Final

MAX_PIXELS: Final = 90_000_000
"""Of all frames together. A picture of more is not decoded: a small file can be a huge picture."""
MAX_FRAMES: Final = 2000
"""Of one picture. They are counted before a decoder does it, which takes its time with millions."""


class BadPicture(Exception):
    """It is no picture that can be shown. `str(error)` says why, to whom it belongs."""


@dataclass(frozen=True)
class Scaled:
    """A picture in the size that was asked for."""

    content: bytes
    media_type: str
    width: int
    height: int
    animated: bool = False


@dataclass(frozen=True)
class PictureInfo:
    """What a picture is, without decoding it."""

    width: int
    """Pixels, of the picture upright."""
    height: int
    animated: bool
