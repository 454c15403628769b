"""A node that writes for another one on the same machine."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from tertulia import __version__
from tertulia.log import forwarding
from tertulia.log.forwarding import Forwarding
from tertulia.log.log import Log
from tertulia.service.config import Config
from tertulia.store.bus import PeerSocket
from tests import postgres
from tests.nodes import Client, Cluster, cluster
from tests.support import Reply, until

A_WHILE = 0.05


@pytest.fixture
async def two(postgres_url: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Two nodes. The first has just written, and the second knows."""
    with postgres.schema(postgres_url) as url:
        config = Config(
            data_dir=str(tmp_path / "data"),
            database_url=url,
            external_url="http://chat.test",
            rate_limits=False,
        )
        async with cluster(config, 2) as found:
            await found.nodes[0].channel("lounge", "ann", "ben")
            yield found


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that wrote last remains the writer, however slow the machine is."""
    monkeypatch.setattr(forwarding, "WRITES_SECONDS", 1000.0)
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", 60.0)


def logs(two: Cluster) -> tuple[Log, Log]:
    writer, other = two.nodes
    return writer.node.log, other.node.log


async def send_forwarded(
    two: Cluster, content: str = "hello", topic: str = "t", channel: str = "lounge"
) -> Reply:
    """Send a message at the second node, which knows that the first one writes. Return the
    response."""
    return await send_at_second(await told_who_writes(two), content, topic, channel)


async def told_who_writes(two: Cluster) -> Client:
    """A client at the second node, once that knows that the first one writes."""
    writer, other = logs(two)
    client: Client = two.client()
    for _ in range(5):
        await client.at(0).send("lounge", "before", "the first one writes")
        # An entry may have been read from the log before the database's notification, and then
        # counts as another's.
        with contextlib.suppress(TimeoutError):
            await until(
                lambda: other.durable == writer.durable and bool(other.forwarding._writing),
                seconds=10,
            )
            break
    assert other.forwarding._writing
    return client


async def send_at_second(
    client: Client, content: str = "hello", topic: str = "t", channel: str = "lounge"
) -> Reply:
    """Send a message at the second node. Return the response."""
    return await client.at(1).post(
        "/messages", type="stream", to=channel, topic=topic, content=content
    )


def done(two: Cluster) -> tuple[int, int]:
    """The number of commands that the first node ran for the second, as counted by each."""
    writer, other = logs(two)
    return writer.measures.carried_out, other.measures.forwarded


async def contents(two: Cluster) -> list[str]:
    writer, other = logs(two)
    await until(lambda: writer.durable == other.durable)
    reply = (
        await two.client()
        .at(0)
        .get("/messages", anchor="newest", num_before=50, num_after=0, apply_markdown=False)
    )
    return [one["content"] for one in reply.ok["messages"] if one["subject"] == "t"]


@pytest.mark.parametrize("brings_entries", [True, False])
async def test_the_last_writer_writes_for_the_others(
    two: Cluster, brings_entries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not brings_entries:
        monkeypatch.setattr(forwarding, "MAX_BROADCAST", -1)
    writer, other = logs(two)
    reply = await send_forwarded(two)
    assert done(two) == (1, 1)
    # It responds once it has the entry itself.
    assert other.durable == writer.durable
    assert other.state.last_message_id == reply.ok["id"]
    assert await contents(two) == ["hello"]
    await asyncio.gather(*(send_forwarded(two, f"{number}") for number in range(8)))
    assert sorted(await contents(two)) == [*"01234567", "hello"]


async def test_the_reply_contains_the_log_entries(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the node doesn't wait for the database's notification."""
    writer, other = logs(two)
    monkeypatch.setattr(forwarding, "BROADCAST_SECONDS", 1000.0)
    client = await told_who_writes(two)
    hearing = other.store._hearing
    assert hearing is not None
    hearing.detach()  # The node doesn't wait for the database's notification.
    assert (await send_at_second(client)).ok["id"] == other.state.last_message_id
    assert done(two) == (1, 1)
    assert other.position == writer.position


async def test_a_refusal_is_forwarded_with_its_reason(two: Cluster) -> None:
    reply = await send_forwarded(two, channel="nowhere")
    reply.refused("STREAM_DOES_NOT_EXIST")
    assert done(two) == (0, 0)


async def test_a_long_message_is_not_forwarded(two: Cluster) -> None:
    (await send_forwarded(two, "ä" * 9999)).ok
    assert done(two) == (0, 0)


async def test_a_node_with_many_commands_writes_itself(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "MANY_COMMANDS", 0)
    (await send_forwarded(two)).ok
    assert done(two) == (0, 0)


async def test_a_lost_command_runs_locally(two: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", A_WHILE)
    monkeypatch.setattr(Forwarding, "_begin", lambda *_: True)
    (await send_forwarded(two)).ok
    assert done(two) == (0, 0)
    assert await contents(two) == ["hello"]
    # The other node isn't used again soon.
    assert not logs(two)[1].forwarding._writer()


async def test_a_command_that_ran_without_a_reply_is_not_repeated(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = logs(two)

    def lose(_: str, number: int, __: bytes | None) -> None:
        # Its sender has waited long enough.
        other.forwarding._finish(number, forwarding._NO_ANSWER)

    monkeypatch.setattr(writer.forwarding, "_add_answer", lose)
    reply = await send_forwarded(two)
    assert done(two) == (1, 0)
    assert await contents(two) == ["hello"]
    assert writer.state.last_message_id == reply.ok["id"]


async def test_an_abandoned_command_is_not_started(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = logs(two)
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", A_WHILE)
    url = writer.store.database.url  # type: ignore[attr-defined]
    client = await told_who_writes(two)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT 1 FROM head WHERE id = 1 FOR UPDATE")
        sending = asyncio.create_task(send_at_second(client))
        await until(lambda: len(other.forwarding) == 1)
        await until(lambda: len(other.forwarding) == 0)
        await connection.rollback()
    (await sending).ok
    assert await contents(two) == ["hello"]


async def test_a_leaving_node_writes_for_nobody(two: Cluster) -> None:
    writer, other = logs(two)
    await send_forwarded(two)
    writer.forwarding.leave()
    (await send_forwarded(two)).ok
    assert done(two) == (1, 1)
    assert other.forwarding._writer() == ""
    other.forwarding._avoided.clear()
    writer.forwarding.close()
    (await send_forwarded(two)).ok
    assert done(two) == (1, 1)
    other.forwarding.close()
    (await send_forwarded(two)).ok


async def test_foreign_commands_are_not_run(two: Cluster) -> None:
    """From another version or another history, of an unknown kind, or invalid."""
    writer, _ = logs(two)
    answers: list[Any] = []
    place = writer._meeting_place
    assert place is not None

    def hear(datagram: bytes) -> None:
        answers.append(forwarding._decoder.decode(datagram))

    stranger = PeerSocket(place, "stranger", hear)
    try:
        history = writer.position.history
        order = forwarding._ForwardedCommand(7, "send", 1, 1e12, b"\xc0")
        for version, past, one in (
            ("0.0.0", history, order),
            (__version__, "another", order),
            (__version__, history, msgspec.structs.replace(order, verb="reign")),
            (__version__, history, order),
        ):
            asked = forwarding._ForwardedCommands(version, past, "stranger", [one])
            assert stranger.send(writer.store.name, forwarding._encoder.encode(asked))
        writer.forwarding._on_datagram(b"nothing of the kind")
        writer.forwarding._on_datagram(b"\x95\xa6orders\xa1\xff")
        await until(lambda: sum(len(answer.results) for answer in answers) == 4)
        assert {tuple(one) for answer in answers for one in answer.results} == {(7, None)}
    finally:
        stranger.close()


async def test_only_the_user_can_access_the_sockets(tmp_path: Path) -> None:
    place = tmp_path / "nodes"
    heard: list[bytes] = []
    first, second = PeerSocket(place, "a", heard.append), PeerSocket(place, "b", heard.append)
    assert second.send("a", b"hello")
    await until(lambda: heard == [b"hello"])
    assert not second.send("c", b"nobody")
    first.close()
    assert not second.send("a", b"gone")
    # A killed node leaves its socket behind.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as killed:
        killed.bind(str(place / "killed"))
    PeerSocket(place, "d", heard.append).close()
    assert os.listdir(place) == ["b"]
    second.close()
    place.chmod(0o755)
    with pytest.raises(PermissionError):
        PeerSocket(place, "e", heard.append)
