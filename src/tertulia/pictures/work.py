"""Image processing with Pillow, which runs in a worker for `tertulia.pictures`."""

import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from PIL import ExifTags, Image, ImageDraw, ImageFont, ImageOps, ImageSequence

from tertulia.pictures.kinds import MAX_FRAMES, MAX_PIXELS, BadPicture, PictureInfo, Scaled

_MAX_BLOCKS: Final = 1_000_000
FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "AVIF")


def load(*_: object) -> None:
    """Load the decoders."""
    Image.init()


def squared(content: bytes, size: int) -> Scaled:
    with opened(content) as picture:
        fitted = ImageOps.fit(upright(picture), (size, size))
        return _png(fitted)


def fitted(content: bytes, width: int, height: int) -> Scaled:
    with opened(content) as picture:
        shown = upright(picture)
        shown.thumbnail((width, height))
        return _png(shown)


def animated(content: bytes, size: int) -> Scaled | None:
    with opened(content) as picture:
        if getattr(picture, "n_frames", 1) < 2:
            return None
        frames, durations = [], []
        for frame in ImageSequence.Iterator(picture):
            durations.append(frame.info.get("duration", 100))
            frames.append(ImageOps.pad(frame.convert("RGBA"), (size, size)))
        out = io.BytesIO()
        frames[0].save(
            out,
            "GIF",
            save_all=True,
            append_images=frames[1:],
            duration=durations,
            loop=0,
            disposal=2,
        )
        return Scaled(out.getvalue(), "image/gif", size, size, animated=True)


def described(path: str) -> PictureInfo:
    with opened(Path(path)) as picture:
        width, height = picture.size
        if picture.getexif().get(ExifTags.Base.Orientation) in _LYING:
            width, height = height, width
        return PictureInfo(width, height, _frames(picture, Path(path)) > 1)


_LYING: Final = frozenset({5, 6, 7, 8})
"""EXIF orientations that swap width and height."""


def thumbnail(path: str, width: int, height: int, moving: bool) -> Scaled:
    size = (width, height)
    with opened(Path(path)) as picture:
        if moving and _frames(picture, Path(path)) > 1:
            return _moving(picture, size)
        picture.draft("RGB", size)
        still = upright(picture)
        still.thumbnail(size)
        out = io.BytesIO()
        still.save(out, "WEBP", quality=80)
        return Scaled(out.getvalue(), "image/webp", still.width, still.height)


def _moving(picture: Image.Image, size: tuple[int, int]) -> Scaled:
    frames, durations = [], []
    for frame in ImageSequence.Iterator(picture):
        durations.append(int(frame.info.get("duration") or 100))
        shown = frame.convert("RGBA")
        shown.thumbnail(size)
        frames.append(shown)
    out = io.BytesIO()
    frames[0].save(
        out,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=picture.info.get("loop", 0),
        quality=70,
        method=2,
    )
    return Scaled(out.getvalue(), "image/webp", frames[0].width, frames[0].height, animated=True)


@contextmanager
def opened(content: bytes | Path) -> Iterator[Image.Image]:
    """Open the image without decoding it. Raise BadPicture if it isn't a safe image, or if decoding
    fails inside the context."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            source = io.BytesIO(content) if isinstance(content, bytes) else content
            picture = Image.open(source, formats=FORMATS)
            with picture:
                frames = _frames(picture, content)
                if frames > MAX_FRAMES or picture.width * picture.height * frames > MAX_PIXELS:
                    raise BadPicture("This image has too many pixels.")
                yield picture
    except BadPicture:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise BadPicture("This image has too many pixels.") from None
    except Exception as error:  # Decoders fail in many ways on malformed input.
        raise BadPicture("This file isn't an image that the server can read.") from error


def _frames(picture: Image.Image, content: bytes | Path) -> int:
    """Return the number of frames, or more than `MAX_FRAMES`."""
    match picture.format:
        case "GIF":
            with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
                return _frames_of_gif(file)
        case "TIFF":
            return 1  # The rest are other pages.
        case _:
            return getattr(picture, "n_frames", 1)


def _frames_of_gif(file: BinaryIO) -> int:
    """Count a GIF's frames without decoding them."""
    frames = blocks = 0

    def skip_table(flags: int) -> None:
        if flags & 0x80:
            file.seek(3 << ((flags & 7) + 1), io.SEEK_CUR)

    skip_table(file.read(13)[10])
    while frames <= MAX_FRAMES and (kind := file.read(1)) not in {b"", b";"}:
        if kind not in {b",", b"!"}:
            # Decoders skip unknown bytes.
            blocks += 1
            if blocks > _MAX_BLOCKS:
                return MAX_FRAMES + 1
            continue
        if kind == b",":
            frames += 1
            skip_table(file.read(9)[8])
        file.seek(1, io.SEEK_CUR)
        while size := file.read(1):
            blocks += 1
            if size == b"\0":
                break
            if blocks > _MAX_BLOCKS:
                return MAX_FRAMES + 1
            file.seek(size[0], io.SEEK_CUR)
    return frames


def upright(picture: Image.Image) -> Image.Image:
    """Return the first frame, rotated as the camera was held."""
    turned = ImageOps.exif_transpose(picture)
    return turned.convert("RGBA" if turned.has_transparency_data else "RGB")


def _png(picture: Image.Image) -> Scaled:
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return Scaled(out.getvalue(), "image/png", picture.width, picture.height)


def drawn(number: int, letters: str, size: int) -> bytes:
    # Steps by the golden ratio keep the hues of neighboring numbers far apart.
    hue = int(number * 0.618033988749895 % 1 * 360)
    picture = Image.new("RGB", (size, size), f"hsl({hue}, 45%, 40%)")
    brush = ImageDraw.Draw(picture)
    if letters:
        font = ImageFont.load_default(size * 0.42)
        brush.text((size / 2, size / 2), letters, fill="white", font=font, anchor="mm")
    else:
        _weave(brush, number, size)
    return _png(picture).content


def _weave(brush: ImageDraw.ImageDraw, number: int, size: int) -> None:
    """Draw a symmetric pattern of squares."""
    squares = random.Random(number)  # noqa: S311 (what it draws is no secret)
    unit = size / 7
    for column in range(3):
        for row in range(5):
            if squares.random() < 0.5:
                continue
            for place in {column, 4 - column}:
                left, top = (place + 1) * unit, (row + 1) * unit
                brush.rectangle((left, top, left + unit - 1, top + unit - 1), fill="white")
