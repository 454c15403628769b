"""Opening archives of exports: damaged, unsafe, and crafted ones."""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tertulia.imports.archive import file_in, fingerprint_of, opened_directory
from tertulia.imports.source import SourceError

Made = Callable[[Path], None]


def tarred(*entries: tuple[str, bytes]) -> Made:
    """Return a function that writes a .tar.gz of these files."""

    def make(path: Path) -> None:
        with tarfile.open(path, "w:gz") as archive:
            for name, content in entries:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))

    return make


def zipped(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Made:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("x/a", content)

    return make


def changed(make: Made, *changes: tuple[int, bytes]) -> Made:
    """Return a function that makes a file, and then writes data at offsets."""

    def made(path: Path) -> None:
        make(path)
        content = bytearray(path.read_bytes())
        for at, piece in changes:
            at %= len(content)
            content[at : at + len(piece)] = piece
        path.write_bytes(content)

    return made


def with_endless_header(path: Path) -> None:
    """Write a small archive with a header that takes 64 MiB."""
    with gzip.open(path, "wb") as file:
        header = tarfile.TarInfo("header")
        header.type, header.size = tarfile.XHDTYPE, 64 * 1024 * 1024
        file.write(header.tobuf())
        for _ in range(64):
            file.write(b"1" * (1024 * 1024))
        file.write(tarfile.TarInfo("x/a").tobuf() + bytes(1024))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (tarred(("x/a", b"1"), ("x/a", b"2")), "two files with the same name"),
        (tarred(("x/a", b"1"), ("x/a/b", b"2")), "two files with the same name"),
        (tarred(("x/" + "a" * 256, b"")), "unsafe name"),
        (tarred(("/a", b"")), "unsafe name"),
        (tarred(("x/../../a", b"")), "unsafe name"),
        # Its content is unchanged, but its checksum isn't.
        (changed(tarred(("x/a", os.urandom(100_000))), (-8, b"\0\0\0\0")), "can't be read"),
        (changed(zipped(b"abc" * 10_000), (40, b"\xff" * 20)), "can't be read"),
        (changed(zipped(b"abc" * 10_000, zipfile.ZIP_LZMA), (45, b"\xff" * 20)), "can't be read"),
        (with_endless_header, "data between two files is far too large"),
    ],
)
def test_a_damaged_archive_is_refused_in_a_sentence(
    make: Made, reason: str, tmp_path: Path
) -> None:
    path, work = tmp_path / "export", tmp_path / "work"
    make(path)
    with pytest.raises(SourceError, match=reason):
        opened_directory(path, work)
    assert list(work.iterdir()) == []


def test_an_archive_that_claims_to_be_extracted_is_extracted_again(tmp_path: Path) -> None:
    path, work = tmp_path / "export", tmp_path / "work"
    tarred((".complete", b""), ("b", b"2"))(path)
    directory = opened_directory(path, work)
    (directory / "b").unlink()
    # As if the process had been killed before the end.
    for one in work.glob("*.complete"):
        one.unlink()
    assert (opened_directory(path, work) / "b").read_bytes() == b"2"


def test_a_directory_can_have_files_with_any_name(tmp_path: Path) -> None:
    before = fingerprint_of(tmp_path)
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"x")
    assert fingerprint_of(tmp_path) != before


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "loop", "../other", "missing"])
def test_a_name_that_no_file_can_have_is_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FileNotFoundError):
        file_in(tmp_path, name)
