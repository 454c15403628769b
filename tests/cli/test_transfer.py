"""`tertulia backup` and `tertulia restore`."""

import asyncio
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tertulia import demo
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.uploads import UploadStore
from tests import databases, postgres
from tests.cli.support import Place
from tests.pictures import picture
from tests.support import open_organization


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Another empty place, with a database of each kind."""
    if request.param == "sqlite":
        yield Place(tmp_path / "target")
        return
    with postgres.schema(request.getfixturevalue("postgres_url")) as url:
        yield Place(tmp_path / "target", url)


async def everything(place: Place) -> dict[str, Any]:
    async with open_organization(place.config) as org:
        state = org.node.state
        iris = org["iris"]
        found = await iris.get(
            "/messages",
            anchor="newest",
            num_before=100,
            num_after=0,
            narrow=[{"operator": "search", "operand": "almond"}],
        )
        return {
            "seq": state.seq,
            "records": {name: table.rows for name, table in state.tables.items()},
            "found": [(m["id"], m["content"], m["flags"]) for m in found.ok["messages"]],
            "key": iris.api_key,
        }


def test_backup_can_be_piped(tmp_path: Path) -> None:
    place, target = Place(tmp_path / "data"), Place(tmp_path / "target")
    place.create_organization()
    with place.program("backup", "-") as process:
        assert process.stdout is not None
        # As bytes, because the text layer hasn't read anything.
        written = process.stdout.buffer.read()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
    assert "and the secret" in errors
    (file := tmp_path / "piped.zip").write_bytes(written)
    assert target.run("restore", str(file)).exit_code == 0
    assert target.run("check").exit_code == 0


async def test_backup_restores_into_either_database(
    place: Place, target: Place, tmp_path: Path
) -> None:
    await databases.copied(place.config, demo.prepared)
    before = await everything(place)
    file = tmp_path / "backup.zip"
    for one, command in ((place, "backup"), (target, "restore"), (target, "check")):
        arguments = () if command == "check" else (str(file),)
        result = await asyncio.to_thread(one.run, command, *arguments)
        assert result.exit_code == 0, result.output
    assert len(before["found"]) >= 2
    assert await everything(target) == before
    async with open_organization(target.config) as org:
        sent = await org["iris"].send("kitchen", "grinder", "life goes on with almonds")
        assert sent > max(message_id for message_id, _, _ in before["found"])


async def test_backup_is_made_while_the_server_writes(place: Place, tmp_path: Path) -> None:
    await databases.copied(place.config, demo.prepared)
    target = Place(tmp_path / "target")
    file = str(tmp_path / "backup.zip")
    async with open_organization(place.config) as org:
        writing = True

        async def write() -> None:
            while writing:
                await org["iris"].send("general", "busy", "one more")

        writer = asyncio.create_task(write())
        result = await asyncio.to_thread(place.run, "backup", file)
        writing = False
        await writer
    assert result.exit_code == 0, result.output
    restored = await asyncio.to_thread(target.run, "restore", file)
    assert restored.exit_code == 0, restored.output
    checked = await asyncio.to_thread(target.run, "check")
    assert checked.exit_code == 0, checked.output


async def nothing(*_: object) -> None:
    """Stands for a function that a crash interrupts."""


def files_of(place: Place) -> dict[str, bytes]:
    root = place.data_dir / "files"
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file()
    }


async def test_backup_has_uploads_but_no_thumbnails(
    place: Place, target: Place, tmp_path: Path
) -> None:
    await databases.copied(place.config, demo.prepared)
    there = files_of(place)
    async with open_organization(place.config) as org:
        iris = org["iris"]
        path = await iris.upload("naïve.png", picture(9, 9), "image/png")
        with pytest.MonkeyPatch.context() as patched:
            # The server hasn't stored it yet.
            patched.setattr(UploadStore, "settle", nothing)
            other = await iris.upload("other.txt", b"other")
        await iris.open(f"/user_uploads/thumbnail/{path}/840x560.webp")
        await org.node.files.put("avatars/1/picture.png", b"avatar")
        org.node.uploads.begin().finish()
    file = str(tmp_path / "backup.zip")
    backed_up = await asyncio.to_thread(place.run, "backup", file)
    assert f"{len(there) + 3} files" in backed_up.output
    for command, arguments in (("restore", (file,)), ("check", ())):
        result = await asyncio.to_thread(target.run, command, *arguments)
        assert result.exit_code == 0, result.output
    places = [f"uploads/{one.rpartition('/')[0]}" for one in (path, other)]
    assert sorted(files_of(target)) == sorted([*there, *places, "avatars/1/picture.png"])
    async with open_organization(target.config) as org:
        assert (await org["iris"].open(f"/user_uploads/{path}")).content == picture(9, 9)
        assert (await org["iris"].open(f"/user_uploads/{other}")).content == b"other"
        thumbnail = await org["iris"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
        assert thumbnail.status_code == 200


@pytest.mark.parametrize(
    ("name", "content"),
    [("files/avatars/a", None), ("files/../../evil", b"x"), ("files//etc/evil", b"x")],
)
def test_backup_with_invalid_files_is_refused(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    (place.data_dir / "files" / "avatars").mkdir(parents=True)
    (place.data_dir / "files" / "avatars" / "a").write_bytes(b"a")
    file = tmp_path / "backup.zip"
    assert place.run("backup", str(file)).exit_code == 0
    if content is None:
        altered(file, name, None)
    else:
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(name, content)
        more = {**manifest_of(file), "files": 2}
        altered(file, "manifest.json", json.dumps(more).encode())
    target = Place(tmp_path / "deep" / "target")
    result = target.run("restore", str(file))
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    assert [path.name for path in target.data_dir.iterdir() if path.is_dir()] == []
    assert not list(tmp_path.rglob("evil"))


def test_backup_is_not_restored_over_existing_files(tmp_path: Path) -> None:
    _, file = backed_up(tmp_path)
    target = Place(tmp_path / "target")
    (target.data_dir / "files").mkdir(parents=True)
    (target.data_dir / "files" / "note").write_bytes(b"x")
    result = target.run("restore", str(file))
    assert result.exit_code == 1
    assert "already contains files" in result.stderr
    assert files_of(target) == {"note": b"x"}


def backed_up(tmp_path: Path) -> tuple[Place, Path]:
    place = Place(tmp_path / "data")
    place.create_organization()
    file = tmp_path / "backup.zip"
    assert place.run("backup", str(file)).exit_code == 0
    return place, file


def altered(file: Path, name: str, content: bytes | None) -> None:
    """Replace or remove a member of the archive."""
    with zipfile.ZipFile(file) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    del members[name]
    if content is not None:
        members[name] = content
    with zipfile.ZipFile(file, "w") as archive:
        for one, data in members.items():
            archive.writestr(one, data)


def manifest_of(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    return manifest


def test_backup_of_a_newer_version_is_refused(target: Place, tmp_path: Path) -> None:
    _, file = backed_up(tmp_path)
    newer = {**manifest_of(file), "schema_version": len(MIGRATIONS) + 1}
    altered(file, "manifest.json", json.dumps(newer).encode())
    result = target.run("restore", str(file))
    assert result.exit_code == 1
    assert "newer version" in result.stderr
    assert not target.data_dir.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tables/users.jsonl", b""),
        ("tables/users.jsonl", None),
        ("tables/users.jsonl", b"[1"),
        ("tables/users.jsonl", b"[1]\n"),
        ("tables/read_state.jsonl", b'[1,2,"no base64"]\n'),
        ("manifest.json", b"{}"),
        ("manifest.json", None),
        ("secret", None),
    ],
)
def test_damaged_backup_leaves_the_database_empty(
    target: Place, tmp_path: Path, name: str, content: bytes | None
) -> None:
    place, file = backed_up(tmp_path)
    sound = file.read_bytes()
    altered(file, name, content)
    result = target.run("restore", str(file))
    assert result.exit_code == 1
    assert "backup" in result.stderr
    file.write_bytes(sound)
    assert target.run("restore", str(file)).exit_code == 0
    assert (target.data_dir / "secret").read_text() == (place.data_dir / "secret").read_text()


def test_backup_is_not_restored_over_an_organization(tmp_path: Path) -> None:
    place, file = backed_up(tmp_path)
    user = place.add("ben")
    result = place.run("restore", str(file))
    assert result.exit_code == 1
    assert "already contains an organization" in result.stderr
    assert place.add("cleo")["user_id"] == user["user_id"] + 1


def test_different_secret_is_not_overwritten(tmp_path: Path) -> None:
    _, file = backed_up(tmp_path)
    target = Place(tmp_path / "target")
    target.data_dir.mkdir()
    (target.data_dir / "secret").write_text("another\n")
    result = target.run("restore", str(file))
    assert result.exit_code == 1
    assert "a different secret" in result.stderr
    assert (target.data_dir / "secret").read_text() == "another\n"


def test_backup_overwrites_nothing_and_is_private(tmp_path: Path) -> None:
    place, file = backed_up(tmp_path)
    before = file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0
    result = place.run("backup", str(file))
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert file.read_bytes() == before
    # In a shared directory, someone else may have put a file where it's written first.
    other = tmp_path / "other.zip"
    somebody_s = tmp_path / "somebody's"
    somebody_s.write_text("mine")
    (tmp_path / "other.zip.partial").symlink_to(somebody_s)
    assert place.run("backup", str(other)).exit_code == 0
    assert somebody_s.read_text() == "mine"
    assert not other.is_symlink()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    result = Place(tmp_path / "target").run("restore", str(file))
    assert result.exit_code == 1
    assert "isn't a Tertulia backup" in result.stderr
