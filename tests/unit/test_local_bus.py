"""How processes with the same SQLite file notify each other and take turns."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tertulia.store import sqlite_connection
from tertulia.store.bus import Listener, LocalBus
from tertulia.store.database import WRITING, DatabaseUnavailable, TimeLimits
from tertulia.store.schema_upgrade import migrate
from tertulia.store.sqlite import SqliteDatabase

PATIENCE = 60


@pytest.fixture
def bus(several_nodes: Path) -> Iterator[LocalBus]:
    found = LocalBus(several_nodes)
    yield found
    found.close()


@pytest.fixture
def other(several_nodes: Path) -> Iterator[LocalBus]:
    found = LocalBus(several_nodes)
    yield found
    found.close()


def received(listener: Listener) -> list[int | str | None]:
    """Everything that waits for the listener."""
    found: list[int | str | None] = []
    listener.hear(0, found.append, found.append)
    return found


def test_a_broadcast_reaches_every_other_process(bus: LocalBus, other: LocalBus) -> None:
    with contextlib.closing(bus.listener()) as own, contextlib.closing(other.listener()) as one:
        bus.tell_growth(7)
        bus.send_to_peers(["a", "ä" * 20_000, "b", "c" * 500_000])
        bus.tell_growth(9)
        assert received(one) == ["a", "ä" * 20_000, "b", 9]
        assert received(own) == []
        with contextlib.closing(other.listener()) as late:
            bus.send_to_peers(["later"])
            assert received(one) == received(late) == ["later"]
        other.tell_growth(10)
        assert received(own) == [10]


def test_a_process_that_does_not_listen_delays_senders_only_briefly(
    bus: LocalBus, other: LocalBus, several_nodes: Path
) -> None:
    # Killed: the address has no listener anymore.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(several_nodes / "1-dead.socket"))
    with contextlib.closing(other.listener()) as slow:
        for number in range(2_000):
            bus.tell_growth(number)
        for _ in range(3):
            bus.send_to_peers(["x" * 30_000] * 100)
        # Some messages were lost; new ones arrive.
        received(slow)
        bus.send_to_peers(["again"])
        assert received(slow) == ["again"]
    assert [place.name for place in several_nodes.iterdir() if place.suffix] == []


def test_listening_can_be_stopped_immediately(bus: LocalBus) -> None:
    with contextlib.closing(bus.listener()) as listener:
        waiting = threading.Thread(
            target=listener.hear, args=(PATIENCE, lambda _: None, lambda _: None)
        )
        waiting.start()
        listener.wake()
        waiting.join(PATIENCE / 2)
        assert not waiting.is_alive()


def test_only_one_process_at_a_time_makes_a_checkpoint(bus: LocalBus, other: LocalBus) -> None:
    with bus.alone(lambda: True) as first:
        assert first
        with other.alone(lambda: False) as second:
            assert not second
    with other.alone(lambda: False) as third:
        assert third


@pytest.fixture
def database(tmp_path: Path, several_nodes: Path) -> Iterator[SqliteDatabase]:
    found = SqliteDatabase(tmp_path / "db", several_nodes)
    migrate(found, lambda _: None)
    yield found
    found.close()


def test_writers_take_turns(
    database: SqliteDatabase, tmp_path: Path, several_nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A waiting writer is woken up by the one that releases the lock, not by polling.
    monkeypatch.setattr(sqlite_connection, "_RETRY_SECONDS", PATIENCE)
    second = SqliteDatabase(tmp_path / "db", several_nodes)
    with (
        contextlib.closing(second),
        contextlib.closing(database.connect(readonly=False, limits=WRITING)) as one,
        contextlib.closing(second.connect(readonly=False, limits=WRITING)) as other,
    ):
        for end in ("COMMIT", "ROLLBACK", "close"):
            assert one.begin_at_once()
            assert not other.begin_at_once()
            entered = threading.Event()

            def enter(entered: threading.Event = entered) -> None:
                for statement in other.dialect.begin_write:
                    other.run(statement)
                entered.set()
                other.run("ROLLBACK")

            waiting = threading.Thread(target=enter)
            waiting.start()
            time.sleep(0.05)  # By then it's almost certainly waiting.
            assert not entered.is_set()
            if end == "COMMIT":
                one.commit()
            elif end == "ROLLBACK":
                one.run(end)
            else:
                one.close()
            waiting.join(PATIENCE / 2)
            assert entered.is_set(), end


def test_a_writer_does_not_wait_forever(database: SqliteDatabase) -> None:
    limits = TimeLimits(statement=1, lock=0.1, idle=1)
    with (
        contextlib.closing(database.connect(readonly=False, limits=WRITING)) as one,
        contextlib.closing(database.connect(readonly=False, limits=limits)) as other,
    ):
        assert one.begin_at_once()
        with pytest.raises(DatabaseUnavailable, match="is locking"):
            other.run(other.dialect.begin_write[0])
        # A command sends no notification, but is noticed.
        one.run("ROLLBACK")
        other.run(other.dialect.begin_write[0])
