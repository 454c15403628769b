"""Only their owner can read the files of an installation."""

import asyncio
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tertulia.service.config import Config
from tertulia.store import file_modes
from tertulia.store.store import database_at
from tests.cli.support import Place
from tests.pictures import picture
from tests.support import open_organization, until


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def wrong_modes(directory: Path) -> dict[str, str]:
    """The modes in the directory that differ from what they should be."""
    wrong = {}
    for place in (directory, *directory.rglob("*")):
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode != (file_modes.DIRECTORY if place.is_dir() else file_modes.FILE):
            wrong[str(place.relative_to(directory))] = oct(mode)
    return wrong


@pytest.mark.usefixtures("umask")
async def test_only_the_owner_can_read_what_a_server_writes(config: Config) -> None:
    place = Place(config.data_path, config.database_url)
    await asyncio.to_thread(place.create_organization)
    async with open_organization(config) as org:
        await org["ann"].upload()
        await org["ann"].upload("a.png", picture(600, 400), "image/png")
        tus = {"Tus-Resumable": "1.0.0", "Upload-Length": "5"}
        reply = await org["ann"].open("/login")
        assert reply.is_success
        begun = await org.http.post(
            "/api/v1/tus", headers=tus, auth=(org["ann"].email, org["ann"].api_key)
        )
        assert begun.status_code == 201
        await org.node.files.put("avatars/x", b"x")
        await org.http.post("/reset", data={"email": "ann@example.com"})
        await org.node.log.catch_up()
        await until(lambda: any(config.data_path.glob("mail/*.eml")))
        found = {place.name for place in config.data_path.iterdir()}
        assert {"secret", "files", "mail"} <= found
        assert config.database_url or {"tertulia.db", "tertulia.db-wal", "tertulia.db-shm"} <= found
        database = database_at(config.data_path, config.database_url)
        await asyncio.to_thread(database.backup_before_migration, 7)
        assert wrong_modes(config.data_path) == {}


@pytest.mark.usefixtures("umask")
def test_backups_and_restored_files_are_private(tmp_path: Path) -> None:
    place, again = Place(tmp_path / "data"), Place(tmp_path / "new" / "again")
    place.create_organization()
    copy = tmp_path / "b.zip"
    assert place.run("backup", str(copy)).exit_code == 0
    assert stat.S_IMODE(copy.stat().st_mode) == file_modes.FILE
    assert again.run("restore", str(copy)).exit_code == 0
    assert wrong_modes(again.data_dir) == {}


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    file_modes.directory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    file_modes.directory(tmp_path / "a" / "b")
    assert wrong_modes(tmp_path / "a") == {}


def test_check_reports_files_that_everyone_can_read(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    answer = place.answer("check")
    (one,) = (one for one in answer["checks"] if one["check"] == "permissions")
    assert (one["ok"], one["detail"].startswith("only their owner")) == (True, True)

    # Files in a directory that others can't enter aren't readable.
    database = place.data_dir / "tertulia.db"
    os.chmod(database, 0o644)
    assert place.run("check").exit_code == 0

    os.chmod(place.data_dir, 0o750)
    result = place.run("check")
    assert (result.exit_code, "the owner and the group can read" in result.stdout) == (0, True)

    os.chmod(place.data_dir, 0o755)
    result = place.run("check")
    assert result.exit_code == 1
    assert f"FAILED  permissions: everyone on this machine can read {place.data_dir}" in (
        result.stdout
    )
    assert str(database) in result.stdout
    (command,) = [
        line.partition("`")[2].rstrip("`\n")
        for line in result.stdout.splitlines()
        if "`chmod" in line
    ]
    subprocess.run(command, shell=True, check=True)
    assert place.run("check").exit_code == 0


def test_serve_warns_once_if_everyone_can_read_the_files(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    os.chmod(place.data_dir, 0o755)
    with place.serving() as (process, _):
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert said.count("everyone on this machine can read the data directory") == 1
    assert f'mend="chmod -R o-rwx {place.data_dir}"' in said
    assert stat.S_IMODE(place.data_dir.stat().st_mode) == 0o755
