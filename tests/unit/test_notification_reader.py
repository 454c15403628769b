"""When a node reads entries that other nodes wrote."""

import asyncio
import socket

import pytest

from tertulia.store import notification_reader
from tertulia.store.notification_reader import NotificationReader
from tests.support import until


async def turns() -> None:
    """Enough turns of the loop for every pending read."""
    for _ in range(5):
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_reads_are_combined_when_nobody_waits(
    is_awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_reader, "DEFER_SECONDS", 1000.0)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    heard: list[bytes] = []

    def read() -> bool:
        try:
            heard.append(ours.recv(100))
        except BlockingIOError:
            heard.append(b"")
        return heard[-1] != b"end"

    one = NotificationReader(lambda: is_awaited)
    one.now()  # There is nothing to listen to yet.
    with ours, theirs:
        one.attach(ours.fileno(), read)
        theirs.send(b"a")
        await until(lambda: heard == [b"a"])
        theirs.send(b"b")
        theirs.send(b"c")
        if is_awaited:
            await until(lambda: b"".join(heard) == b"abc")
        else:
            await turns()
            assert heard == [b"a"]
            one.gathered()
            assert heard == [b"a", b"bc"]
            one.now()
            assert heard == [b"a", b"bc", b""]
            theirs.send(b"d")
            await turns()
            assert len(heard) == 3
            one.listen()
            await until(lambda: heard[3:] == [b"d"])
            # A read in progress isn't repeated.
            one.listen()
            one.gathered()
            assert heard[3:] == [b"d"]
            # By itself, after a while.
            monkeypatch.setattr(notification_reader, "DEFER_SECONDS", 0.0)
            one.listen()
            theirs.send(b"e")
            theirs.send(b"f")
            await until(lambda: b"".join(heard) == b"abcdef")
        theirs.send(b"end")
        one.listen()
        await until(lambda: heard[-1] == b"end")
        # After closing, nothing reads what another node may own by now.
        theirs.send(b"more")
        one.now()
        await turns()
        assert heard[-1] == b"end"
        one.detach()
