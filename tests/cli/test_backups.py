"""Automatic backups."""

import asyncio
import contextlib
import dataclasses
import io
import json
import os
import shutil
import signal
import sys
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import msgspec
import pytest

from tertulia.app import backups
from tertulia.app.config import ConfigError, load
from tertulia.cli.errors import sentence_for
from tertulia.cli.terminal import as_interrupts
from tertulia.jobs import backups as backup_jobs
from tertulia.jobs import leases
from tertulia.jobs.backups import LEASE
from tertulia.jobs.backups import backups as backup_job
from tertulia.jobs.leases import LEASE_SECONDS, JobLeaseLost, while_renewing
from tertulia.jobs.programs import ProgramFailed, environment_of, run_command
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.store import backups as encrypted_backups
from tertulia.store import consistency, installation, nodes, transfer
from tertulia.store.backups import (
    StoredBackup,
    backups_made,
    delete_stale_directories,
    last_backup,
    last_due,
    name_at,
    set_last_backup,
    stored_backups,
    superseded_backups,
    temporary_directory,
)
from tertulia.store.database import Connection
from tertulia.store.disk_files import DiskFiles
from tertulia.store.nodes import NodeEntry, NodeFigures
from tertulia.store.store import database_at
from tertulia.store.transfer import try_restore
from tests.cli.support import Place, run
from tests.support import Organization, new_organization, row


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def kept(*texts: str) -> list[StoredBackup]:
    return [StoredBackup(name=name_at(at(text)), at=at(text), size=1) for text in texts]


@pytest.mark.parametrize(
    ("days", "weeks", "left"),
    [
        (1, 0, ["2026-03-12T09:00"]),
        (2, 0, ["2026-03-12T09:00", "2026-03-11T03:00"]),
        (1, 2, ["2026-03-12T09:00", "2026-03-08T03:00"]),
        (1, 3, ["2026-03-12T09:00", "2026-03-08T03:00", "2026-02-20T03:00"]),
        (9, 9, "all but one"),
    ],
)
def test_last_backup_of_each_day_and_week_is_kept(
    days: int, weeks: int, left: list[str] | str
) -> None:
    there = kept(
        *("2026-02-20T03:00", "2026-03-02T03:00", "2026-03-08T03:00", "2026-03-11T03:00"),
        *("2026-03-12T03:00", "2026-03-12T09:00"),
    )
    over = superseded_backups(there, days, weeks, at("2026-03-12T09:00"))
    expected = kept(*left) if isinstance(left, list) else [o for o in there if o is not there[4]]
    assert {one.name for one in there} - {one.name for one in over} == {o.name for o in expected}


def test_backup_from_the_future_replaces_no_other() -> None:
    now = at("2026-03-12T09:00")
    there = kept("2026-03-11T03:00", "2026-03-12T09:00", "2036-01-01T03:00")
    assert [one.name for one in superseded_backups(there, 1, 0, now)] == [there[0].name]
    assert backups_made(there, now) == there[:2]


def test_files_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    """A process locks its files. A file without a lock is kept for a day, because an older version
    may be writing it."""
    left, unheld, old, other = (tmp_path / f"backup-{n}" for n in ("left", "new", "old", "other"))
    for directory in (left, unheld, old, other):
        directory.mkdir()
        (directory / "backup.zip").write_bytes(b"secret")
    (left / "held").touch()
    (other / "notes").touch()
    # A directory that can't be read, such as another user's, doesn't prevent backups.
    odd = tmp_path / "backup-odd"
    (odd / "held").mkdir(parents=True)
    for directory in (old, other):
        os.utime(directory, (0, 0))
    with temporary_directory(tmp_path) as mine:
        kept = {mine.name, unheld.name, other.name, odd.name}
        assert {one.name for one in tmp_path.iterdir()} == kept
        (mine / "plain.zip").write_bytes(b"secret")
        delete_stale_directories(tmp_path)
        assert (mine / "plain.zip").exists()
    assert not mine.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_in_background", [False, True])
def test_stopped_command_leaves_no_files(
    tmp_path: Path, number: signal.Signals, is_in_background: bool
) -> None:
    keys = signal.SIG_IGN if is_in_background else signal.default_int_handler

    def command() -> None:
        with as_interrupts(), temporary_directory(tmp_path) as mine:
            (mine / "plain.zip").write_bytes(b"secret")
            signal.raise_signal(number)

    before = signal.signal(number, signal.SIG_DFL), signal.signal(signal.SIGINT, keys)
    try:
        with pytest.raises(KeyboardInterrupt):
            command()
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert list(tmp_path.iterdir()) == []


async def test_other_files_with_a_backups_name_are_ignored(tmp_path: Path) -> None:
    for name in ("tertulia-20260230T250000Z.zip", name_at(at("2026-03-11T03:00")), "notes.txt"):
        (tmp_path / name).touch()
    assert [one.at for one in await stored_backups(DiskFiles(tmp_path))] == [at("2026-03-11T03:00")]


def test_backup_is_due_daily_at_its_hour() -> None:
    assert last_due(at("2026-03-12T03:00"), 3) == at("2026-03-12T03:00")
    assert last_due(at("2026-03-12T02:59"), 3) == at("2026-03-11T03:00")
    assert last_due(at("2026-01-01T00:10"), 23) == at("2025-12-31T23:00")


async def test_another_node_takes_over_the_backup_of_a_dead_one(org: Organization) -> None:
    write = org.node.store.write
    assert await write(lambda c: LEASE.claimed(c, "one", 1000.0))
    assert not await write(lambda c: LEASE.claimed(c, "other", 1000.0 + LEASE_SECONDS - 1))
    await write(lambda c: LEASE.renewed(c, "one", 1500.0))
    # The nodes' clocks may differ a little.
    assert not await write(lambda c: LEASE.claimed(c, "other", 1490.0))
    assert not await write(lambda c: LEASE.claimed(c, "other", 1500.0 + LEASE_SECONDS - 1))
    assert await write(lambda c: LEASE.claimed(c, "other", 1500.0 + LEASE_SECONDS))
    # The first node was only suspended: it makes no backup, and doesn't end the other's lease.
    with pytest.raises(JobLeaseLost):
        await write(lambda c: LEASE.renewed(c, "one", 2101.0))
    await write(lambda c: LEASE.given_back(c, "one"))
    assert not await write(lambda c: LEASE.claimed(c, "one", 2101.0))
    await write(lambda c: LEASE.given_back(c, "other"))
    assert await write(lambda c: LEASE.claimed(c, "one", 2101.0))


async def test_lease_is_renewed_until_the_backup_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "RENEWED_SECONDS", 0.001)
    over, ended = asyncio.Event(), asyncio.Event()
    answers: list[Exception | None] = [None, Unavailable("The database is away."), None]

    async def work() -> None:
        try:
            await over.wait()
        finally:
            ended.set()

    async def renew() -> None:
        if not answers:
            over.set()
        elif (error := answers.pop(0)) is not None:
            raise error

    await while_renewing(work(), renew)
    over.clear()
    ended.clear()
    answers[:] = [None, JobLeaseLost("Another node makes it.")]
    with pytest.raises(JobLeaseLost):
        await while_renewing(work(), renew)
    assert ended.is_set()


def test_backup_is_made_verified_listed_and_restored(tmp_path: Path, place: Place) -> None:
    to = tmp_path / "backups"
    place.create_organization()
    (place.data_dir / "tertulia.toml").write_text(f'backup_to = "{to}"\nbackup_keep_days = 1\n')
    for old in kept("2026-03-11T03:00", "2026-03-12T03:00"):
        to.mkdir(exist_ok=True)
        (to / old.name).write_bytes(b"x")
    left, current, other = ".tertulia-20260311T03.0123456789abcdef", ".t.0123456789abcdef", ".nfs12"
    for name in (left, current, other):
        (to / name).write_bytes(b"x")
    for name in (left, other):
        os.utime(to / name, (0, 0))
    (to / "another.zip").write_bytes(b"not ours")
    result = place.run("backups")
    assert result.stdout.count("2026-03-1") == 2
    flags = [*place.flags, "--json"]
    result = run("backups", "make", *flags)
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["deleted"] == [
        name_at(at("2026-03-11T03:00"))
    ]  # The other is the last of its week.
    assert not (to / made["deleted"][0]).exists()
    assert (to / "another.zip").exists()
    assert not (to / left).exists(), "a killed process left it"
    assert (to / current).exists()
    assert (to / other).exists()
    assert not list(place.data_dir.glob("backup-*")), "nothing is left where it was made"
    assert place.run("check").exit_code == 0
    target = Place(tmp_path / "target")
    file = to / made["backup"]["name"]
    assert target.run("restore", str(file)).exit_code == 0
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_check_without_a_backup_fails_only_if_there_should_be_one(place: Place) -> None:
    place.create_organization()
    text = f'backup_to = "{place.data_dir / "none"}"'
    (place.data_dir / "tertulia.toml").write_text(text, encoding="utf-8")

    def write(change: Callable[[Connection], object]) -> None:
        database = database_at(place.data_dir, place.database_url)
        with contextlib.closing(database.connect(readonly=False)) as connection:
            change(connection)

    def found() -> tuple[bool, str]:
        result = place.run("check", "--json")
        (one,) = (one for one in json.loads(result.stdout)["checks"] if one["check"] == "backups")
        return one["ok"], one["detail"].replace(str(place.data_dir), "")

    def serve_since(connection: Connection, seconds: float) -> None:
        entry = NodeEntry(run="n", host="", pid=7, version="1", schema_version=20, log_format=100)
        nodes.register(connection, "n", entry, NodeFigures(state="serving"), lambda _: True)
        connection.run("UPDATE nodes SET started_at = started_at - ?", (seconds,))

    assert found() == (
        True,
        "no backups in /none yet: the server makes the first one when it starts",
    )
    # A server was killed while it made the first backup, and starts again.
    write(lambda c: LEASE.claimed(c, "killed", time.time() - 30))
    write(lambda c: serve_since(c, 10))
    assert found() == (
        True,
        "no backups in /none yet: the server makes the first one within 20 minutes",
    )
    write(lambda c: LEASE.renewed(c, "killed", time.time()))
    assert found() == (True, "the first backup in /none is being made")
    write(lambda c: serve_since(c, 7200))
    assert found() == (True, "the first backup in /none is being made")
    write(lambda c: LEASE.given_back(c, "killed"))
    assert found() == (False, "no backups in /none")
    write(lambda c: installation.put(c, "job.backups", "the disk is full"))
    assert found() == (
        False,
        "no backups in /none, because making one failed: the disk is full",
    )


async def test_check_tells_backups_of_other_nodes_from_lost_ones(
    config: Config, tmp_path: Path
) -> None:
    place = Place(Path(config.data_dir), config.database_url)
    (tmp_path / "backups").mkdir()
    made = time.time() - 3 * 3600
    async with new_organization(config) as org:
        await org.node.store.write(lambda c: set_last_backup(c, (made, 4096)))
    text = f'backup_to = "{tmp_path / "backups"}"'
    (place.data_dir / "tertulia.toml").write_text(text, encoding="utf-8")
    result = await asyncio.to_thread(run, "check", *place.flags, "--json")
    (found,) = (one for one in json.loads(result.stdout)["checks"] if one["check"] == "backups")
    assert "3 hours old, isn't in" in found["detail"]
    assert found["ok"] is bool(config.database_url)


async def test_a_node_with_older_backups_keeps_what_another_one_reported(
    org: Organization, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It checks again within an hour, and then also deletes the files of killed processes."""
    now = org.node.clock()

    async def make(_: Config, *words: str) -> None:
        assert words == ("backups", "make")
        (tmp_path / name_at(now - 60)).write_bytes(b"xyz")

    monkeypatch.setattr(backup_jobs, "run_command", make)
    config = msgspec.structs.replace(
        org.node.config, data_dir=str(tmp_path / "data"), backup_to=str(tmp_path)
    )
    job = backup_job(cast(Any, SimpleNamespace(config=config, log=org.node.log)))
    left = left_by_a_killed_one(config.data_path)
    for reported, expected in (
        ((now - 10, 4096), (now - 10, 4096)),
        ((now - 7200, 4096), (int(now - 60), 3)),
        ((now + 3600, 4096), (int(now - 60), 3)),  # Reported by a node with a wrong clock.
    ):
        with row(reported):
            await org.node.store.write(partial(set_last_backup, last=reported))
            assert await job.once() <= 3600
            assert await org.node.store.read(last_backup) == expected
            assert not left.exists()


def test_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    (file := tmp_path / "b.zip").unlink(missing_ok=True)
    assert place.run("backup", str(file)).exit_code == 0
    assert try_restore(file, tmp_path).tables
    assert not list(tmp_path.glob("*/trial*"))
    short = tmp_path / "short.zip"
    with zipfile.ZipFile(file) as given, zipfile.ZipFile(short, "w") as cut:
        for name in given.namelist():
            content = given.read(name)
            cut.writestr(name, b"" if name == "tables/users.jsonl" else content)
    with pytest.raises(Exception, match=r"damaged: users should have \d+ rows, but has 0"):
        try_restore(short, tmp_path)


def test_encrypted_backup_is_never_stored_in_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no time does a file with a name contain readable data, whatever kills the process."""
    place, to, key = Place(tmp_path / "data"), tmp_path / "backups", tmp_path / "backups.key"
    place.create_organization()
    recipient = json.loads(run("backups", "new-key", str(key), "--json").stdout)["recipient"]
    (place.data_dir / "tertulia.toml").write_text(
        f'backup_to = "{to}"\nbackup_recipients = "{recipient}"\n'
    )
    seen: list[str] = []

    def looking(owner: Any, name: str, data_dir: Path) -> None:
        does = getattr(owner, name)

        def look(*given: Any, **named: Any) -> Any:
            done = does(*given, **named)
            for one in data_dir.glob("backup-*/**/*"):
                if one.is_file() and one.name != "held":
                    assert one.read_bytes().startswith(b"age-encryption.org/v1"), one
            seen.append(name)
            return done

        monkeypatch.setattr(owner, name, look)

    looking(backups, "back_up", place.data_dir)
    looking(transfer, "_fill", place.data_dir)  # A table of the trial restore.
    looking(consistency, "dangling", place.data_dir)
    looking(encrypted_backups, "encrypt_file", place.data_dir)
    result = run("backups", "make", *place.flags)
    assert result.exit_code == 0, result.output
    assert {seen[0], *seen[-2:]} == {"back_up", "dangling", "encrypt_file"}
    (made,) = to.iterdir()
    target = Place(tmp_path / "target")
    seen.clear()
    looking(transfer, "_fill", target.data_dir)
    assert target.run("restore", str(made), "--identity", str(key)).exit_code == 0
    assert seen
    # Files of an older version are deleted by the next command.
    left = left_by_a_killed_one(place.data_dir)
    assert run("users", "list", *place.flags).exit_code == 0
    assert not left.exists()


def test_encrypted_backup_opens_only_with_its_key(tmp_path: Path) -> None:
    place, to = Place(tmp_path / "data"), tmp_path / "backups"
    place.create_organization()
    key, other = tmp_path / "backups.key", tmp_path / "other.key"
    recipient = json.loads(run("backups", "new-key", str(key), "--json").stdout)["recipient"]
    assert oct(key.stat().st_mode & 0o777) == "0o600"
    assert run("backups", "new-key", str(key)).exit_code == 2, "a key is never written over"
    assert run("backups", "new-key", str(other)).exit_code == 0
    (place.data_dir / "tertulia.toml").write_text(
        f'backup_to = "{to}"\nbackup_recipients = "{recipient}"\n'
    )
    result = run("backups", "make", *place.flags)
    assert result.exit_code == 0, result.output
    (kept_one,) = to.iterdir()
    assert kept_one.name.endswith(".zip.age")
    assert kept_one.name in place.run("backups").stdout
    assert not list(place.data_dir.glob("backup-*")), "nothing readable is left"
    by_hand = tmp_path / "by-hand.zip.age"
    written = place.answer("backup", str(by_hand), "--recipient", recipient)
    assert written["encrypted"] is True
    for nobody in ("", " , "):  # Like an unset shell variable.
        refused = place.run(
            "backup", str(tmp_path / "open"), "--recipient", recipient, "--recipient", nobody
        )
        assert refused.exit_code == 2
        assert "--recipient is empty" in refused.stderr

    target = Place(tmp_path / "target")
    for file in (kept_one, by_hand):
        content = file.read_bytes()
        assert content.startswith(b"age-encryption.org/v1")
        assert b"manifest.json" not in content
        refused = target.run("restore", str(file))
        assert refused.exit_code == 1
        assert "--identity FILE" in refused.stderr
        refused = target.run("restore", str(file), "--identity", str(other))
        assert refused.exit_code == 1
        assert "other.key can't decrypt" in refused.stderr
        short = tmp_path / "short.age"
        short.write_bytes(content[:-9])
        refused = target.run("restore", str(short), "--identity", str(key))
        assert refused.exit_code == 1
        assert "damaged" in refused.stderr
        refused = target.run("restore", str(file), "--identity", str(by_hand))
        assert refused.exit_code == 1
        assert "age identity" in refused.stderr
        assert not list(target.data_dir.iterdir()), "what was refused left nothing"
    assert target.run("restore", str(by_hand), "--identity", str(key)).exit_code == 0
    assert [entry.name for entry in target.data_dir.glob("backup-*")] == []
    assert target.run("check").exit_code == 0


class Full(io.RawIOBase):
    def __init__(self, error: OSError) -> None:
        self.error = error

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise self.error


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_encryption_errors_are_reported(size: int) -> None:
    (to,) = encrypted_backups.age_recipients(encrypted_backups.new_identity()[1])
    for error, said, kind in (
        (OSError("no room"), r"couldn't be written: .*no room", OSError),
        (BrokenPipeError(32, "Broken pipe"), "^.Errno 32. Broken pipe$", BrokenPipeError),
    ):
        with (
            pytest.raises(kind, match=said),
            encrypted_backups.encrypted_backup(cast(BinaryIO, Full(error)), [to]) as file,
        ):
            file.write(bytes(size))


def left_by_a_killed_one(data_dir: Path) -> Path:
    """A scratch directory whose process is gone."""
    left = data_dir / "backup-left"
    left.mkdir(parents=True)
    (left / "held").touch()
    (left / "plain.zip").write_bytes(b"secret")
    return left


async def test_files_of_a_failed_process_are_deleted_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = left_by_a_killed_one(tmp_path)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ProgramFailed):
        await run_command(load({"data_dir": str(tmp_path)}, environment={}), "backups", "make")
    assert not left.exists()


async def test_server_deletes_what_a_killed_command_left(org: Organization, tmp_path: Path) -> None:
    config = msgspec.structs.replace(org.node.config, backup_to=str(tmp_path / "backups"))
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / name_at(org.node.log.clock())).touch()
    left = left_by_a_killed_one(config.data_path)
    job = backup_job(dataclasses.replace(org.node, config=config))
    assert 0 < await job.once() <= 3600
    assert not left.exists()


def test_server_makes_backups_automatically(tmp_path: Path) -> None:
    place, to = Place(tmp_path / "data"), tmp_path / "backups"
    place.create_organization()
    left = left_by_a_killed_one(place.data_dir)
    (place.data_dir / "tertulia.toml").write_text(f'backup_to = "{to}"\n')
    with place.serving() as (process, _):
        assert not left.exists()
        deadline = time.monotonic() + 60
        # A table of the trial restore.
        while not any(to.glob("tertulia-*.zip")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert any(to.glob("tertulia-*.zip")), errors
    assert "Traceback" not in errors
    assert place.run("check").exit_code == 0


def test_backup_process_has_the_servers_settings(tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text(
        'external_url = "https://chat.example.com"\n'
        '[[sign_in]]\nkind = "google"\nname = "google"\nclient_id = "c"\nclient_secret = "s"\n'
    )
    given = load({"data_dir": str(tmp_path), "dev": True, "port": 1}, environment={})
    assert given.sign_in
    environment = {"PATH": "/bin", "TERTULIA_SECRET_FILE": "/x", "CREDENTIALS_DIRECTORY": "/y"}
    made = environment_of(given, environment)
    assert made["PATH"] == "/bin"
    assert "CREDENTIALS_DIRECTORY" not in made
    assert load({}, environment=made) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backup_to": "s3://"}, "Setting backup_to: '' isn't a valid bucket name"),
        (
            {"backup_to": "s3://files", "files_url": "s3://files"},
            "a different location than files_url",
        ),
        ({"backup_to": "x/files", "data_dir": "x"}, "the directory of uploaded files"),
        (
            {"backup_recipients": "age1nobody"},
            "Setting backup_recipients: 'age1nobody' isn't an age rec",
        ),
        ({"backup_recipients": " ,"}, "Setting backup_recipients: it doesn't contain a recipient"),
        ({"backup_recipients": "AGE-SECRET-KEY-1XYZ"}, "a secret key isn't an age rec"),
    ],
)
def test_invalid_location_is_reported(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(given, environment={})


def test_listing_requires_a_location(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    result = place.run("backups")
    assert result.exit_code == 2
    assert "backup_to" in result.stderr


def test_options_before_a_command_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    result = run("backups", *place.flags, "make")
    assert (result.exit_code, result.stderr) == (2, "Put options after `make`.\n")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device"), "No space left on device."),
        (OSError(28, "No space left on device", "x.zip"), "x.zip: No space left on device."),
        (OSError("The backup couldn't be written: x."), "The backup couldn't be written: x."),
        (BrokenPipeError(32, "Broken pipe"), None),
        (TimeoutError(), None),
    ],
)
def test_machine_errors_are_reported_in_one_sentence(
    error: Exception, sentence: str | None
) -> None:
    assert sentence_for(error) == (None if sentence is None else (sentence, 1))
