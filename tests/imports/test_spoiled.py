"""Randomly damaged exports: an import of one ends, or reports what's wrong with it.

`python -m tests.imports.test_spoiled SECONDS [SEED]` runs this for a while.
"""

import asyncio
import copy
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tertulia.app.founding import opened_log
from tertulia.imports import importer
from tertulia.imports.dry_run import dry_run
from tertulia.imports.mattermost.source import MattermostExport
from tertulia.imports.progress import ImportRefused
from tertulia.imports.rocketchat.source import RocketChatDump
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.source import Source, SourceError
from tertulia.imports.zulip.source import ZulipExport
from tertulia.log.replica import replay_differences
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.store.database import READING
from tertulia.store.store import database_at
from tests.imports import mattermost_export, rocketchat_dump, slack_exports, zulip_export
from tests.imports.invented import imported
from tests.imports.rendering import SameProcess

pytestmark = pytest.mark.anyio
SEEDS: Final = 6
UNFORESEEN: Final = "The export can't be read:"
"""The beginning of errors that a source didn't foresee."""
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**53, 2**63, 2**64, 10**30, 0.5, -0.0, 1e300),
    *("", " ", "0", "x" * 70_000, "\0", "\x02P\x1f#11\x1fx\x03", "\ud83d", "\u202e", "\u200b"),
    *("../../etc/passwd", "<b>&amp;</b>", "@**all**", "* " * 2000, "[" * 3000, "`" * 999),
    *([], {}, [None], [[]], [{}], {"a": 1}, {"": []}, [1, "2", {}], {"$oid": 1}),
)
_DEPTH: Final = 40


def spoiled(value: Any, choose: random.Random, number: int) -> Any:
    """Return the value, changed in this many places."""
    value = copy.deepcopy(value)
    for _ in range(number):
        places = list(_places(value, 0))
        if not places:
            break
        parent, key = choose.choice(places)
        _spoil(parent, key, choose, places)
    return value


def _places(value: Any, depth: int) -> Iterator[tuple[Any, Any]]:
    """Yield the places in a value: its container, and its key."""
    if isinstance(value, dict | list) and depth < _DEPTH:
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key], depth + 1)


def _spoil(parent: Any, key: Any, choose: random.Random, places: list[tuple[Any, Any]]) -> None:
    match choose.randrange(8):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):  # A duplicate with the same ID.
            parent.append(copy.deepcopy(parent[key]))
        case 2:  # Another record's ID, or another type.
            other, place = choose.choice(places)
            parent[key] = copy.deepcopy(other[place])
        case 3:
            found: Any = parent[key]
            for _ in range(_DEPTH):
                found = [found] if choose.random() < 0.5 else {"a": found}
            parent[key] = found
        case 4 if isinstance(parent[key], str):
            text = parent[key]
            at = choose.randrange(len(text) + 1)
            odd = choose.choice([one for one in _ODD if isinstance(one, str)])
            parent[key] = text[:at] + odd + text[at:]
        case 5 if isinstance(parent[key], int):
            parent[key] += choose.choice((-1, 1, 7))
        case _:
            parent[key] = copy.deepcopy(choose.choice(_ODD))


def zulip(place: Path, choose: random.Random) -> Callable[[Path], Source]:
    builder = zulip_export.ZulipExportBuilder(choose.choice(zulip_export.LEVELS))
    given = (builder.realm, builder.messages, builder.flags, builder.attachments, builder.records)
    number = choose.randrange(1, 12)
    some = spoiled(list(given), choose, number)
    if isinstance(some, list) and len(some) == len(given):
        builder.realm, builder.messages, builder.flags, builder.attachments, builder.records = some
    try:
        export = builder.written(place)
    except (TypeError, ValueError, AttributeError, UnicodeError):  # The builder can't write it.
        return zulip(_fresh(place), choose)
    return lambda work: ZulipExport(export, work)


def slack(place: Path, choose: random.Random) -> Callable[[Path], Source]:
    files = slack_exports.SlackFiles()
    files.dms = [{"id": "D1", "created": 1, "members": ["U1ANN", "U2BEN"]}]
    files.say(
        "general",
        slack_exports.message(0, "Who has the *key*? <@U2BEN>", reactions=[
            {"name": "+1", "users": ["U2BEN"], "count": 1}
        ]),
        slack_exports.message(5, "I do <https://a.b|there>", "U2BEN", thread_ts=slack_exports.ts(0),
                              edited={"user": "U2BEN", "ts": slack_exports.ts(9)}),
        slack_exports.message(7, "x", blocks=[{"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}]}]),
        slack_exports.message(8, "", "B1", subtype="bot_message", username="Kettle",
                              attachments=[{"title": "Hot", "fields": [{"title": "a"}]}]),
        slack_exports.message(9, "", subtype="channel_join"),
        slack_exports.message(10, "", files=[{"id": "F1", "name": "a.txt", "mode": "hosted"}]),
    )  # fmt: skip
    files.say("D1", slack_exports.message(3, "psst"))
    names = ("users", "channels", "dms", "messages")
    some = spoiled({name: getattr(files, name) for name in names}, choose, choose.randrange(1, 12))
    for name in names:
        setattr(files, name, some.get(name, []))
    try:
        export = files.unpacked(place / "export")
    except (TypeError, ValueError, AttributeError, OSError, OverflowError):
        return slack(_fresh(place), choose)
    return lambda work: SlackExport(export, work)


def mattermost(place: Path, choose: random.Random) -> Callable[[Path], Source]:
    lines = spoiled(mattermost_export.sample(), choose, choose.randrange(1, 12))
    export = mattermost_export.written(place / "export.zip", lines)
    return lambda work: MattermostExport(export, work)


def rocketchat(place: Path, choose: random.Random) -> Callable[[Path], Source]:
    collections = spoiled(rocketchat_dump.sample(), choose, choose.randrange(1, 12))
    try:
        export = rocketchat_dump.written(place / "dump", collections)
    except (TypeError, ValueError, AttributeError, OSError, UnicodeError):
        return rocketchat(_fresh(place), choose)
    except Exception as error:
        if type(error).__module__ != "struct":
            raise
        return rocketchat(_fresh(place), choose)
    return lambda work: RocketChatDump(export, work)


def _fresh(place: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=place))


KINDS: Final[Mapping[str, Callable[[Path, random.Random], Callable[[Path], Source]]]] = {
    "zulip": zulip,
    "slack": slack,
    "mattermost": mattermost,
    "rocketchat": rocketchat,
}


async def tried(kind: str, seed: int, place: Path) -> str:
    """Damage an export and import it. Return the error; empty if there's no error."""
    choose = random.Random(f"{kind} {seed}")
    opened = KINDS[kind](place, choose)
    config = Config(data_dir=str(place / "data"))
    work = place / "data" / "import"
    work.mkdir(parents=True)
    source = None
    try:
        source = opened(work)
        await dry_run(source, lambda _: None, State())
        progress = await imported(config, source)
        assert progress.step == "done"
    except (SourceError, ImportRefused) as error:
        said = str(error)
    else:
        said = ""
    finally:
        if source is not None:
            source.close()
    assert not said.startswith(UNFORESEEN), said
    if (place / "data" / "tertulia.db").exists():
        with closing(
            database_at(config.data_path, "").connect(readonly=True, limits=READING)
        ) as connection:
            assert replay_differences(connection) == []
        async with opened_log(config, print) as log:
            assert said == "" or log.state.is_empty
    return said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_spoiled_export_is_imported_or_refused_as_a_whole(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "RenderPool", SameProcess)
    await tried(kind, seed, tmp_path)


def main() -> None:
    """Damage exports and import them until the time is over. Print the failures."""
    pytest.MonkeyPatch().setattr(importer, "RenderPool", SameProcess)
    until = time.monotonic() + float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    said: dict[str, int] = {}
    while time.monotonic() < until:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as place:
                began = time.monotonic()
                try:
                    found = asyncio.run(tried(kind, seed, Path(place)))
                except BaseException:
                    print(f"--- {kind} {seed}")
                    traceback.print_exc(file=sys.stdout)
                    if sys.exc_info()[0] is KeyboardInterrupt:
                        raise
                else:
                    said[f"{kind}: {found[:60]}"] = said.get(f"{kind}: {found[:60]}", 0) + 1
                took = time.monotonic() - began
                if took > 20:
                    print(f"--- {kind} {seed} took {took:.0f} s")
        seed += 1
    for text, number in sorted(said.items()):
        print(number, text)


if __name__ == "__main__":
    main()
