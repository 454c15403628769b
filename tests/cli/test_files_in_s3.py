"""Commands with files in a bucket, and `tertulia move-files`."""

import asyncio
import os
import secrets
from pathlib import Path

import msgspec
import pytest

from tertulia.app.backups import make
from tertulia.app.config import load
from tertulia.service.config import Config
from tertulia.store import file_moves
from tertulia.store.bucket_files import BucketFiles
from tests.cli import support
from tests.cli.support import Place
from tests.imports import mattermost_export
from tests.pictures import picture
from tests.s3 import ACCESS_KEY, SECRET_KEY, S3Server, Trouble
from tests.support import Organization, new_organization, open_organization, until


@pytest.fixture
def home(bucket: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A data directory, with the bucket's keys in the environment."""
    monkeypatch.setenv("TERTULIA_S3_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("TERTULIA_S3_SECRET_ACCESS_KEY", SECRET_KEY)
    return Place(tmp_path / "data")


def set_up(place: Place, **values: str) -> Config:
    """Write a settings file, and return the settings."""
    place.data_dir.mkdir(mode=0o700, exist_ok=True)
    text = "".join(f'{name} = "{value}"\n' for name, value in values.items())
    (place.data_dir / "tertulia.toml").write_text(text)
    known = {"s3_access_key_id": ACCESS_KEY, "s3_secret_access_key": SECRET_KEY, **values}
    return msgspec.convert({"data_dir": str(place.data_dir), "rate_limits": False, **known}, Config)


async def run(place: Place, *arguments: str) -> str:
    """Run a command, and return what it prints."""
    result = await asyncio.to_thread(place.run, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


async def failed(place: Place, *arguments: str) -> str:
    result = await asyncio.to_thread(place.run, *arguments)
    assert result.exit_code == 1, result.output
    return result.output


def on_disk(place: Place) -> list[str]:
    root = place.data_dir / "files"
    return [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]


async def opened(org: Organization, *paths: str) -> list[bytes]:
    answers = [await org["ann"].open(path) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    return [answer.content for answer in answers]


async def test_files_are_moved_to_a_bucket_and_back_while_serving(
    home: Place, bucket: S3Server
) -> None:
    prefix = secrets.token_hex(4)
    url = bucket.url(prefix)
    async with new_organization(set_up(home)) as org:
        ann = org["ann"]
        first = "/user_uploads/" + await ann.upload("p.png", picture(900, 600), "image/png")
        thumbnail = first.replace("uploads/", "uploads/thumbnail/", 1) + "/840x560.webp"
        await ann.raw("POST", "/users/me/avatar", files={"file": ("a.png", picture(9, 9))})
        avatar = (await ann.get("/users/me", client_gravatar=False)).ok["avatar_url"]
        gone = await ann.upload("gone.txt")
        there = await opened(org, first, thumbnail, avatar)
    assert "files_also_at" in await asyncio.to_thread(lambda: home.run("move-files").output)

    both = set_up(home, files_url=url, files_also_at="disk")
    async with open_organization(both) as org:
        second = "/user_uploads/" + await org["ann"].upload("new.txt", b"new")
        assert list(bucket.objects(f"{prefix}/uploads")) != []
        assert await opened(org, first, avatar, second) == [there[0], there[2], b"new"]
        # The copy from an interrupted run, which is too short.
        realm, digits, key, _ = first.removeprefix("/user_uploads/").split("/")
        bucket.put(f"{prefix}/uploads/{realm}/{digits}/{key}", b"short")
        assert "Copied 4 files" in await run(home, "move-files")
        await org["ann"].delete("/attachments/2")
        await until(lambda: not len(org.node.state.tables["removed_files"]))
        told = await run(home, "move-files")
        assert "Copied 0 files" in told
        assert "already existed" in told
        assert on_disk(home)
        assert f"Deleted 3 files from {home.data_dir / 'files'}" in await run(
            home, "move-files", "--delete"
        )
        assert on_disk(home) == []
        assert await opened(org, first, thumbnail, avatar, second) == [*there, b"new"]
        assert gone.split("/")[2] not in str(bucket.objects(prefix).keys())
    async with open_organization(set_up(home, files_url=url)) as org:
        assert await opened(org, first, thumbnail, avatar, second) == [*there, b"new"]
    set_up(home, files_url="disk", files_also_at=url)
    assert "Deleted 4 files" in await run(home, "move-files", "--delete")
    assert bucket.objects(prefix) == {}
    async with open_organization(set_up(home)) as org:
        assert await opened(org, first, thumbnail, avatar, second) == [*there, b"new"]


@pytest.mark.parametrize("wrong", ["deleted meanwhile", "not the same"])
async def test_changes_during_a_move_are_kept(
    home: Place, bucket: S3Server, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    prefix = secrets.token_hex(4)
    files, disk = set_up(home, files_url=bucket.url(prefix)).opened_files()
    await disk.put("avatars/a", b"content")
    stored = await disk.found("avatars/a")
    assert stored is not None
    if wrong == "not the same":
        monkeypatch.setattr(file_moves, "_digest_of", lambda _: b"another")
        with pytest.raises(file_moves.CopyMismatch):
            await file_moves.copy_file(stored, files)
        assert await disk.read("avatars/a") == b"content"
    else:
        put_from = BucketFiles.put_from

        async def slowly(self: BucketFiles, path: str, source: Path) -> None:
            await put_from(self, path, source)
            await disk.delete("avatars/a")

        monkeypatch.setattr(BucketFiles, "put_from", slowly)
        assert not await file_moves.copy_file(stored, files)
    assert bucket.objects(prefix) == {}


async def test_backup_includes_files_or_says_where_they_are(
    home: Place, bucket: S3Server, tmp_path: Path
) -> None:
    prefix = secrets.token_hex(4)
    config = set_up(home, files_url=bucket.url(prefix))
    async with new_organization(config) as org:
        path = "/user_uploads/" + await org["ann"].upload("big.bin", bytes(6 << 20))
        await org["ann"].raw("POST", "/users/me/avatar", files={"file": ("a.png", picture(9, 9))})
    assert "1 uploaded file in s3://files/" in await run(home, "check")
    whole, bare = str(tmp_path / "whole.zip"), str(tmp_path / "bare.zip")
    assert "3 files" in await run(home, "backup", whole)
    told = await run(home, "backup", "--no-files", bare)
    assert "0 files" in told
    assert f"They're in s3://files/{prefix}." in told

    onto_disk = Place(tmp_path / "disk")
    await run(onto_disk, "restore", whole)
    assert len(on_disk(onto_disk)) == 3
    other = Place(tmp_path / "other")
    elsewhere = set_up(other, files_url=bucket.url(f"{prefix}-2"))
    await run(other, "restore", whole)
    assert bucket.objects(f"{prefix}-2") == bucket.objects(prefix)
    again = Place(tmp_path / "again")
    set_up(again, files_url=bucket.url(prefix))
    assert "already contains files" in await failed(again, "restore", whole)
    assert "The backup doesn't include uploaded files" in await run(again, "restore", bare)
    for place in (onto_disk, other, again):
        await run(place, "check")
    async with open_organization(elsewhere) as org:
        assert await opened(org, path) == [bytes(6 << 20)]


async def test_bucket_errors_are_reported(home: Place, bucket: S3Server, tmp_path: Path) -> None:
    prefix = secrets.token_hex(4)
    async with new_organization(set_up(home, files_url=bucket.url(prefix))) as org:
        path = await org["ann"].upload("a.txt")
    realm, digits, key, _ = path.split("/")
    bucket.put(f"{prefix}/uploads/{realm}/{digits}/{key}", None)
    told = await failed(home, "check")
    assert f"missing or incomplete: 1 of 1 uploaded file: {path}" in told
    backup = tmp_path / "backup.zip"
    bucket.trouble(Trouble(status=403))
    assert "files: unavailable: s3://files" in await failed(home, "check")
    assert "s3://files" in await failed(home, "backup", str(backup))
    assert not [name for name in os.listdir(tmp_path) if name.startswith("backup")]
    set_up(home, files_url=bucket.url(f"{prefix}-2"), files_also_at=bucket.url(prefix))
    assert "s3://files" in await failed(home, "move-files")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"files_url": "ftp://x/y"}, "must be 'disk' or"),
        ({"files_url": "s3://U/"}, "valid bucket name"),
        ({"files_url": "s3://key:secret@bucket"}, "can't contain credentials"),
        ({"files_url": "s3://bucket/../x"}, "prefix"),
        ({"files_url": "s3://bucket?acl=public"}, "region, endpoint, style"),
        ({"files_url": "s3://bucket?endpoint=minio:9000"}, "endpoint"),
        ({"files_url": "s3://bucket?style=odd"}, "style must be one of"),
        ({"files_url": "s3://bucket?encryption=rot13"}, "encryption must be one of"),
        ({"files_url": "s3://bucket?kms_key=x"}, "kms_key requires"),
        ({"files_also_at": "disk"}, "different location"),
        ({"file_downloads": "redirect"}, "requires a bucket"),
        ({"files_url": "s3://bucket", "file_downloads": "redirect"}, "can't sign URLs"),
        ({"s3_access_key_id": "x"}, "s3_access_key_id and s3_secret_access_key together"),
    ],
)
def test_conflicting_settings_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], told: str
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    place = Place(tmp_path / "data")
    set_up(place, **values)
    result = place.run("check")
    assert (result.exit_code, "Setting" in result.output) == (2, True)
    assert told in result.output


def test_bucket_secret_is_not_shown(home: Place) -> None:
    set_up(home)
    shown = home.run("config", "--show").output
    assert SECRET_KEY not in shown
    assert 's3_secret_access_key = "********"' in shown


def test_bucket_addresses() -> None:
    config = Config(file_downloads="redirect")
    for url, origin in (
        ("s3://bucket", "https://s3.us-east-1.amazonaws.com"),
        ("s3://bucket?region=eu-north-1&style=host", "https://bucket.s3.eu-north-1.amazonaws.com"),
        ("s3://bucket/a/b?endpoint=https://r2.example", "https://r2.example"),
        ("s3://bucket?endpoint=https://o.example:9000&style=host", "https://bucket.o.example:9000"),
    ):
        assert msgspec.structs.replace(config, files_url=url).file_origins == [origin]


async def test_backups_are_stored_in_a_bucket(home: Place, bucket: S3Server) -> None:
    set_up(home, backup_to=bucket.url("daily"))
    await asyncio.to_thread(home.create_organization)
    given = load({"data_dir": str(home.data_dir)})
    settings = msgspec.structs.replace(given, backup_keep_days=1, backup_keep_weeks=0)
    first, second = [await make(settings, lambda *_: None) for _ in range(2)]
    told = await run(home, "backups")
    assert second.backup.name in told
    assert (first.backup.name in told) == (first.backup.name == second.backup.name)
    assert "ok      backups: 1 backup, the last one less than an hour old" in await run(
        home, "check"
    )


def test_an_import_stops_while_the_bucket_fails(
    home: Place, bucket: S3Server, tmp_path: Path
) -> None:
    set_up(home, files_url=bucket.url(secrets.token_hex(4)))
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    command = ("import", "mattermost", *home.flags, str(export))
    bucket.trouble(Trouble(methods="PUT", status=403))
    stopped = support.run(*command)
    assert stopped.exit_code == 1
    shown = " ".join(stopped.output.split())
    assert "The import stopped: s3://files" in shown
    assert "database" not in shown
    bucket.trouble()
    assert support.run(*command).exit_code == 0
