"""Pictures made up for tests."""

import io

from PIL import Image


def picture(width: int, height: int, kind: str = "PNG", frames: int = 1, **how: object) -> bytes:
    """The bytes of a picture of one colour, or of several frames of different ones."""
    out = io.BytesIO()
    first, *more = (Image.new("RGB", (width, height), (n * 40, 9, 9)) for n in range(frames))
    first.save(out, kind, **({"save_all": True, "append_images": more} if more else {}), **how)
    return out.getvalue()


def blank(width: int, height: int) -> bytes:
    """The bytes of a PNG of one bit a pixel: of a large one, made quickly."""
    out = io.BytesIO()
    Image.new("1", (width, height)).save(out, "PNG")
    return out.getvalue()
