"""Files on disk, and images."""

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tertulia import pictures
from tertulia.pictures import BadPicture
from tertulia.store.bucket_files import BucketFiles, S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_moves import MovingFiles
from tertulia.store.files import INCOMING
from tertulia.store.s3_addresses import S3Address, s3_address
from tertulia.store.uploads import UploadStore
from tests.pictures import blank, picture
from tests.support import row


async def test_a_file_is_complete_or_absent(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path / "files")
    assert await files.read("1/ab/note.txt") is None
    await files.put("1/ab/note.txt", b"one")
    await files.put("1/ab/note.txt", b"two")
    assert await files.read("1/ab/note.txt") == b"two"
    assert [path.name for path in (tmp_path / "files/1/ab").iterdir()] == ["note.txt"]
    await files.delete("1/ab/note.txt")
    await files.delete("1/ab/note.txt")
    assert await files.read("1/ab/note.txt") is None


NO_PATHS = (
    "",
    "..",
    "a/../../b",
    "/etc/passwd",
    "a//b",
    "a/",
    "a/.",
    "a\0b",
    "a\nb",
    "a/\x7f",
    "a/.hidden",
    ".a/b",
    "a\udc80",
    "\u00e9" * 101,
    "a/" * 400 + "b",
)
"""Paths that a disk or bucket can't have or would misinterpret."""


async def test_a_file_deleted_while_arrivals_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskFiles(tmp_path)
    uploads = UploadStore(disk, disk)
    for key in ("a" * 32, "b" * 32):
        await disk.put(f"{INCOMING}/{key}", b"arrived")
    listed = uploads.entries()
    monkeypatch.setattr(uploads, "entries", lambda: listed)
    await uploads.forget("a" * 32)
    assert await uploads.arrived(time.time() + 60) == {"b" * 32}


async def test_an_invalid_path_leads_nowhere(tmp_path: Path) -> None:
    disk = DiskFiles(tmp_path / "files")
    bucket = BucketFiles(address(), S3Keys(key_id="a", secret="b"), disk)
    for path in NO_PATHS:
        for files in (disk, bucket, MovingFiles(bucket, disk)):
            for ask in (files.put(path, b""), files.read(path), files.found(path)):
                with row(path), pytest.raises(ValueError, match="valid file path"):
                    await ask
            for delete in (files.delete, files.delete_below):
                with row(path), pytest.raises(ValueError, match="valid file path"):
                    await delete(path)


def address() -> S3Address:
    """The URL of a bucket on a server that doesn't answer."""
    found = s3_address("s3://files/own?endpoint=http://127.0.0.1:1")
    assert found is not None
    return found


async def test_unknown_files_are_left_alone(tmp_path: Path) -> None:
    disk = DiskFiles(tmp_path)
    ours = ("a/\u00e9", "a/e\u0301", "a/%2e%2e", "a/b c", "a/\u00e9" + "x" * 198)
    for number, path in enumerate(ours):
        await disk.put(path, b"%d" % number)
    for number, path in enumerate(ours):
        assert await disk.read(path) == b"%d" % number, "each is another"
    for name in (".snapshot/1", "a/.draft", "a/\udc80", "a/\x01"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"not ours")
    assert {one.path async for one in disk.below("")} == set(ours)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_an_image_is_cropped_to_a_square(kind: str) -> None:
    scaled = await pictures.squared(picture(300, 200, kind), 64)
    with Image.open(io.BytesIO(scaled.content)) as found:
        assert (found.format, found.size) == ("PNG", (64, 64))


async def test_an_animated_image_stays_animated() -> None:
    scaled = await pictures.animated(picture(300, 200, "GIF", frames=3), 64)
    assert scaled is not None
    with Image.open(io.BytesIO(scaled.content)) as found:
        assert (found.size, getattr(found, "n_frames", 1)) == ((64, 64), 3)
    assert await pictures.animated(picture(300, 200, "GIF"), 64) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"not a picture", picture(10, 10)[:40], b"<svg xmlns='http://www.w3.org/2000/svg'/>"],
    ids=["empty", "text", "cut off", "svg"],
)
async def test_a_file_that_is_no_image_is_refused(content: bytes) -> None:
    with pytest.raises(BadPicture):
        await pictures.squared(content, 64)


async def test_an_image_with_too_many_pixels_is_refused_without_decoding() -> None:
    with pytest.raises(BadPicture, match="pixels"):
        await pictures.squared(blank(20_000, 5_000), 64)


def gif(frames: int, blocks: int = 1, after: bytes = b"") -> bytes:
    """A GIF with this many frames of one pixel, each in this many blocks, followed by this data."""
    image = picture(1, 1, "GIF")
    start = image.index(b",")
    head, frame = image[:start], image[start:-1]
    table = 3 << ((frame[9] & 7) + 1) if frame[9] & 0x80 else 0
    bits = frame[: 11 + table]
    return head + (bits + b"\x01\x44" * blocks + b"\0" + after) * frames + b";"


async def test_the_frames_of_an_image_are_counted(tmp_path: Path) -> None:
    for frames in (1, 2, 5):
        for kind in ("GIF", "PNG", "WEBP"):
            place = tmp_path / f"{frames}.{kind}"
            place.write_bytes(picture(7, 5, kind, frames))
            found = await pictures.described(place)
            assert (found.width, found.height, found.animated) == (7, 5, frames > 1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: gif(pictures.MAX_FRAMES + 1),
        lambda: gif(1_000_000),
        lambda: gif(1, 1_000_001),
        # Decoders skip invalid data between two frames.
        lambda: gif(pictures.MAX_FRAMES + 1, after=b"\0\7"),
        lambda: gif(1, after=bytes(1_000_001)),
    ],
    ids=["frames", "many frames", "blocks", "frames apart", "nothing"],
)
async def test_an_image_with_too_much_data_is_not_decoded(
    tmp_path: Path, made: Callable[[], bytes]
) -> None:
    content = made()
    place = tmp_path / "picture"
    place.write_bytes(content)
    with pytest.raises(BadPicture, match="too many"):
        await pictures.described(place)
    with pytest.raises(BadPicture, match="too many"):
        await pictures.squared(content, 10)
