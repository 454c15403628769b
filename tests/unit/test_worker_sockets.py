"""Several server processes: cores, shares of connections, and what a worker knows."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tertulia.app.config import ConfigError, load
from tertulia.app.serving import listening
from tertulia.app.serving.listening import Acceptor, has_more
from tertulia.app.serving.worker import (
    COUNTS_BYTES,
    VARIABLE,
    Counts,
    WorkerPlace,
    take_place,
    usable_cores,
)
from tertulia.cli.serve import _installation
from tertulia.log.head_watch import FILE, PositionFile
from tertulia.service.config import Config
from tertulia.store.installation import Position
from tests.unit.test_architecture import ROOT


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, 8),
        ({"": "max 100000"}, 8),
        ({"": "250000 100000"}, 3),
        ({"": "max 100000", "slice/unit": "50000 100000"}, 1),
        ({"slice": "400000 100000", "slice/unit": "max 100000"}, 4),
        ({"": "6400000 100000"}, 8),
        ({"slice/unit": "nonsense"}, 8),
    ],
)
def test_only_allowed_cores_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quotas: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    own = tmp_path / "own"
    own.write_text("1:name=systemd:/else\n0::/slice/unit\n")
    (tmp_path / "groups" / "slice" / "unit").mkdir(parents=True)
    for place, text in quotas.items():
        (tmp_path / "groups" / place / "cpu.max").write_text(text + "\n")
    assert usable_cores(tmp_path / "groups", own) == expected


def test_workers_identify_their_database_without_its_password() -> None:
    def named(url: str) -> str:
        return _installation(Config(database_url=url))

    chat = named("postgresql://chat:old@db:5432/chat?sslmode=require")
    assert named("postgresql://chat:n%40w@db:5432/chat?sslmode=require&password=x") == chat
    for other in ("chat:old@db2:5432/chat", "you:old@db:5432/chat", "chat:old@db:5432/other"):
        assert named(f"postgresql://{other}?sslmode=require") != chat
    assert named("postgresql://chat:old@db:5432/chat?options=-csearch_path%3Dx") != chat
    assert named("") != named("sqlite:////elsewhere")


def test_the_number_of_workers_is_a_number_or_auto(tmp_path: Path) -> None:
    file = tmp_path / "tertulia.toml"
    for text, expected in (("workers = 4", "4"), ('workers = "auto"', "auto"), ("", "1")):
        file.write_text(text)
        assert load({}, file=file, environment={}).workers == expected
    for text in ("workers = 0", "workers = true", 'workers = "many"', "workers = 1000"):
        file.write_text(text)
        with pytest.raises(ConfigError, match="workers"):
            load({}, file=file, environment={})


def test_a_worker_reads_its_place_from_the_environment_once() -> None:
    place = WorkerPlace(
        number=1, of=2, installation="i", bus="/b", listener=3, control=4, counts=5, slot=6
    )
    text = json.dumps({field: getattr(place, field) for field in WorkerPlace.__struct_fields__})
    environment = {VARIABLE: text, "PATH": "/bin"}
    assert take_place(environment) == place
    assert environment == {"PATH": "/bin"}
    assert take_place(environment) is None
    # An operator can't set it: it's refused as an unknown setting.
    environment[VARIABLE] = "2"
    assert take_place(environment) is None
    with pytest.raises(ConfigError, match=VARIABLE):
        load({}, environment=environment)


def test_a_supervisor_loads_almost_nothing() -> None:
    code = "import sys, tertulia.app.serving.process; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name for name in done.stdout.split() if name.startswith("tertulia.")}
    assert loaded == {
        "tertulia.app",
        "tertulia.app.logs",
        "tertulia.app.serving",
        "tertulia.app.serving.worker",
        "tertulia.app.serving.process",
        "tertulia.app.serving.supervisor",
    }
    assert not {"asyncio", "uvicorn", "uvloop", "starlette", "apsw"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("own", "least", "expected"),
    [
        (0, None, False),
        (9, None, False),
        (4, 0, False),
        (5, 0, True),
        (10, 20, False),
        (1030, 1000, False),
        (1040, 1000, True),
    ],
)
def test_a_worker_with_more_connections_than_others_yields(
    own: int, least: int | None, *, expected: bool
) -> None:
    assert has_more(own, least) == expected


@contextlib.contextmanager
def shared_counts(number: int) -> Iterator[list[Counts]]:
    with tempfile.TemporaryFile() as file:
        file.truncate(COUNTS_BYTES)
        yield [Counts(file.fileno(), slot) for slot in range(number)]


def test_workers_see_each_other_s_connection_counts_while_valid() -> None:
    with shared_counts(3) as (one, two, three):
        assert one.least(100.0) is None
        one.tell(5, 100.0)
        assert one.least(100.0) is None, "of its own it is not asked"
        two.tell(7, 100.0)
        three.tell(9, 100.5)
        assert one.least(100.9) == 7
        assert one.least(101.2) == 9, "the second stands still"
        three.withdraw()
        assert one.least(100.9) == 7


class _Connection(asyncio.Protocol):
    def __init__(self, server: "_Worker") -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.open.append(transport)


class _Worker:
    def __init__(self, listener: socket.socket, counts: Counts) -> None:
        self.open: list[asyncio.BaseTransport] = []
        self.acceptor = Acceptor(
            listener, counts, lambda: _Connection(self), lambda: len(self.open)
        )


@pytest.fixture
async def workers() -> AsyncIterator[tuple[int, list[_Worker]]]:
    """Yield the port of three workers with a shared socket."""
    with shared_counts(3) as counts, contextlib.ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        copies = [socket.socket(fileno=os.dup(first.fileno())) for _ in range(2)]
        listeners = [first, *map(stack.enter_context, copies)]
        found = [_Worker(one, own) for one, own in zip(listeners, counts, strict=True)]
        for worker in found:
            worker.acceptor.start()
        yield first.getsockname()[1], found
        for worker in found:
            worker.acceptor.close()
            await worker.acceptor.wait_closed()
            for transport in worker.open:
                transport.close()


@pytest.mark.usefixtures("anyio_backend")
async def test_connections_are_distributed_over_workers(
    workers: tuple[int, list[_Worker]],
) -> None:
    port, (one, two, three) = workers
    clients: list[asyncio.StreamWriter] = []

    async def connect(number: int) -> None:
        opened = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", port) for _ in range(number))
        )
        clients.extend(writer for _, writer in opened)
        async with asyncio.timeout(60):
            while sum(len(w.open) for w in (one, two, three)) < len(clients):  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    await connect(300)
    counts = [len(worker.open) for worker in (one, two, three)]
    assert max(counts) - min(counts) <= 4 * listening.BATCH_SIZE, counts
    # A leaving worker accepts no more, and no connection is lost.
    two.acceptor.close()
    left = len(two.open)
    await connect(100)
    assert len(two.open) == left
    for writer in clients:
        writer.close()


def test_the_position_file_of_several_nodes_never_goes_back(tmp_path: Path) -> None:
    early, late = PositionFile(tmp_path), PositionFile(tmp_path)
    early.write(Position("h", 5, "a"))
    late.write(Position("h", 9, "b"))
    early.write(Position("h", 7, "c"))
    assert PositionFile(tmp_path).read() == Position("h", 9, "b")
    # Except for another history, which has its own numbers.
    early.write(Position("i", 3, "d"))
    assert PositionFile(tmp_path).read() == Position("i", 3, "d")
    assert [place.name for place in tmp_path.iterdir()] == [FILE]
