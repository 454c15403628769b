"""The meaning of every release's stored data stays the same."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.log import replica
from tertulia.service.config import Config
from tertulia.service.credentials import SECRET_FILE
from tertulia.store import consistency
from tertulia.store.log_formats import FIRST_FORMAT, IGNORED, LOG_FORMAT, SINCE
from tertulia.store.schema_upgrade import migrate
from tertulia.store.store import SQLITE_FILE, database_at
from tests.cli.support import run
from tests.stored.recording import RELEASES, owner_view
from tests.stored.shapes import GOLDEN, OF_THE_LOG, Shapes, shapes, written
from tests.support import Listener, Organization, TestClock, open_organization

FOLDERS = sorted(path for path in RELEASES.iterdir() if (path / "shapes.json").exists())
each_release = pytest.mark.parametrize("release", FOLDERS, ids=lambda path: path.name)

_STRETCHES = "none: an ID by itself is read as before, beside pairs of them"
CONVERTED: dict[str, str] = {
    "MessagesMoved.lost": _STRETCHES,
    "MessagesMoved.marked_read": _STRETCHES,
    "MessagesMoved.mentioned": _STRETCHES,
    "MessagesMoved.recorded": _STRETCHES,
}
"""Structs (`Name`), fields, and values (`Name.field`) that an earlier release stored differently,
with the migration that converts them."""

RENAMED = {"ImageInfo": "Picture", "PartialUpload": "Partial", "RealmPicture": "Picture"}
"""Untagged structs by their present names, with their names in earlier releases. These names
aren't stored."""


def test_the_golden_file_is_current() -> None:
    """If this fails, read `CONVERTED` above, then run `python -m tests.stored.shapes`."""
    assert json.loads(GOLDEN.read_text()) == json.loads(written())


def differences(old: Shapes, new: Shapes) -> Iterator[str]:
    """The differences that change the meaning of stored data."""
    new = {**new, **{old_name: new[name] for name, old_name in RENAMED.items() if name in new}}
    for name, shape in old.items():
        if name not in new:
            yield f"{name} is gone"
        elif "fields" not in shape:
            for one, value in shape.items():
                if new[name].get(one) != value:
                    yield f"{name}.{one} was {value}"
        elif new[name]["tag"] != shape["tag"]:
            yield f"{name} had the tag {shape['tag']}"
        else:
            for field in shape["fields"].keys() | new[name]["fields"].keys():
                was, now = shape["fields"].get(field), new[name]["fields"].get(field)
                if reason := _changed(was, now):
                    yield f"{name}.{field} {reason}"


def _changed(was: Any, now: Any) -> str:
    if was is None:
        return "" if "default" in now else "is new, and old records have none: it needs a default"
    if now is None:
        return "is gone"
    types = {RENAMED.get(one, one) for one in now["type"].split(" | ")}
    if set(was["type"].split(" | ")) - types:
        return f"could be {was['type']}"
    if "default" in was and was["default"] != now.get("default", ...):
        return f"was {was['default']!r} where it is left out"
    return ""


@each_release
def test_data_of_every_release_keeps_its_meaning(release: Path) -> None:
    old = json.loads((release / "shapes.json").read_text())
    found = [one for one in differences(old, shapes()) if one.split()[0] not in CONVERTED]
    assert found == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: s.pop("A"), "A is gone"),
        (lambda s: s["A"].update(tag="b"), "A had the tag a"),
        (lambda s: s["A"]["fields"].pop("x"), "A.x is gone"),
        (lambda s: s["A"]["fields"]["x"].update(type="str"), "A.x could be int"),
        (lambda s: s["A"]["fields"]["x"].update(default=2), "A.x was 1 where it is left out"),
        (lambda s: s["A"]["fields"]["x"].pop("default"), "A.x was 1 where it is left out"),
        (lambda s: s["A"]["fields"].update(y={"type": "int"}), "A.y is new"),
        (lambda s: s["E"].update(ONE=2), "E.ONE was 1"),
    ],
)
def test_each_kind_of_difference_is_found(change: Any, told: str) -> None:
    old: Shapes = {
        "A": {"tag": "a", "fields": {"x": {"type": "int", "default": 1}}},
        "E": {"ONE": 1},
    }
    new = json.loads(json.dumps(old))
    assert list(differences(old, new)) == []
    change(new)
    (found,) = differences(old, new)
    assert found.startswith(told)


def test_additions_and_wider_types_are_no_differences() -> None:
    old: Shapes = {"A": {"tag": "a", "fields": {"x": {"type": "int"}}}, "E": {"ONE": 1}}
    new: Shapes = {
        "A": {
            "tag": "a",
            "fields": {"x": {"type": "int | none"}, "y": {"type": "int", "default": 0}},
        },
        "B": {"tag": "b", "fields": {}},
        "E": {"ONE": 1, "TWO": 2},
    }
    assert list(differences(old, new)) == []


# Additions that nodes of the last release, running next to those of the next one, can't read

SIDE_BY_SIDE = [path for path in FOLDERS if path.name != "0.1.0"]
"""The releases whose nodes can run next to newer ones."""


def novelties(old: Shapes, new: Shapes) -> Iterator[str]:
    """The additions of the new shapes, with the names used in `log_formats.SINCE`."""
    for name, shape in new.items():
        if name not in old:
            yield name
        else:
            known = old[name].get("fields", old[name])
            yield from (f"{name}.{one}" for one in shape.get("fields", shape) if one not in known)


def test_new_log_formats_are_held_back_while_older_nodes_serve() -> None:
    """If this fails, add the new names to `SINCE` with a new format."""
    for release in SIDE_BY_SIDE[-1:]:
        old = json.loads((release / "shapes.json").read_text())
        assert set(novelties(old, shapes(OF_THE_LOG))) <= SINCE.keys() | IGNORED
    now = shapes(OF_THE_LOG)
    assert SINCE.keys() | IGNORED <= {
        one for name in now for one in (name, *members(name, now[name]))
    }
    assert all(FIRST_FORMAT < since <= LOG_FORMAT for since in SINCE.values())


def members(name: str, shape: Any) -> Iterator[str]:
    return (f"{name}.{one}" for one in shape.get("fields", shape))


def test_each_kind_of_addition_is_found() -> None:
    old: Shapes = {"A": {"tag": "a", "fields": {"x": {}}}, "E": {"ONE": 1}}
    new: Shapes = {
        "A": {"tag": "a", "fields": {"x": {}, "y": {}}},
        "B": {"tag": "b", "fields": {"z": {}}},
        "E": {"ONE": 1, "TWO": 2},
    }
    assert list(novelties(old, old)) == []
    assert list(novelties(old, new)) == ["A.y", "B", "E.TWO"]


# Old databases


def look_over(config: Config) -> None:
    """Check that the migrated tables match the log, and that all messages can be found."""
    connection = database_at(config.data_path, config.database_url).connect(readonly=True)
    try:
        connection.run(connection.dialect.begin_read)
        assert consistency.extent(connection).is_contiguous
        assert replica.replay_differences(connection) == []
        assert consistency.unsearchable(connection)[1] == 0
    finally:
        connection.close()


async def go_on(config: Config, recorded: dict[str, Any], *, queue: bool) -> None:
    """Check that the organization is served as before, and that people can continue to use it."""
    clock = TestClock(stopped_at=recorded["recorded_at"])
    async with open_organization(config, clock=clock) as org:
        ann = org["ann"]
        assert ann.api_key == recorded["api_key"]
        found = await owner_view(org)
        assert found == {name: recorded[name] for name in found}
        assert org.node.state.realm.upload_quota_per_user_mib is None  # That limit didn't exist.
        if queue:
            before = Listener(ann, recorded["queue_id"], recorded["last_event_id"], {})
            await before.events()
        await after(org)
    look_over(config)


async def after(org: Organization) -> None:
    """Check what happens after the stored history."""
    listener = await org["ann"].register()
    await org.channel("afterwards", "ann")
    sent = await org["ann"].send("afterwards", "news", "still here")
    messages = [e["message"]["id"] for e in await listener.events() if e["type"] == "message"]
    assert messages == [sent]


@each_release
async def test_a_backup_of_every_release_can_be_restored_and_used(
    config: Config, release: Path
) -> None:
    database = ("--database-url", config.database_url) if config.database_url else ()
    result = run("restore", "--data-dir", config.data_dir, *database, str(release / "backup.zip"))
    assert result.exit_code == 0, result.stderr
    look_over(config)
    recorded = json.loads((release / "found.json").read_text())
    await go_on(config, recorded, queue=False)


@each_release
async def test_a_database_of_every_release_is_migrated_and_keeps_its_queues(
    tmp_path: Path, release: Path
) -> None:
    config = Config(data_dir=str(tmp_path / "chat"), external_url="http://chat.test")
    config.data_path.mkdir()
    with gzip.open(release / f"{SQLITE_FILE}.gz") as packed:
        (config.data_path / SQLITE_FILE).write_bytes(packed.read())
    shutil.copy(release / SECRET_FILE, config.data_path / SECRET_FILE)
    migrate(database_at(config.data_path, ""), lambda _: None)
    look_over(config)
    recorded = json.loads((release / "found.json").read_text())
    await go_on(config, recorded, queue=True)
