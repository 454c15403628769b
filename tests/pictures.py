"""Generate images for tests."""

import io

from PIL import Image


def picture(width: int, height: int, kind: str = "PNG", frames: int = 1, **how: object) -> bytes:
    """An encoded image of one color, or of several frames in different colors."""
    out = io.BytesIO()
    first, *more = (Image.new("RGB", (width, height), (n * 40, 9, 9)) for n in range(frames))
    first.save(out, kind, **({"save_all": True, "append_images": more} if more else {}), **how)
    return out.getvalue()


def blank(width: int, height: int) -> bytes:
    """A PNG with one bit per pixel: a fast way to make a large one."""
    out = io.BytesIO()
    Image.new("1", (width, height)).save(out, "PNG")
    return out.getvalue()
