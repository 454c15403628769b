"""A node that writes for another one of its machine."""

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
from tests.support import Reply
from tests.unit.test_log import until

A_WHILE = 0.05


@pytest.fixture
async def two(postgres_url: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Two nodes, of which the first has just written, as the second knows."""
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
    """Who has written goes on writing, however slow the machine is."""
    monkeypatch.setattr(forwarding, "WRITES_SECONDS", 1000.0)
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", 60.0)


def logs(two: Cluster) -> tuple[Log, Log]:
    writer, other = two.nodes
    return writer.node.log, other.node.log


async def sent(
    two: Cluster, content: str = "hello", topic: str = "t", channel: str = "lounge"
) -> Reply:
    """What the second node answers to a message, when it knows that the first one writes."""
    return await said(await told_who_writes(two), content, topic, channel)


async def told_who_writes(two: Cluster) -> Client:
    """A client, when the second node knows that the first one writes."""
    writer, other = logs(two)
    client: Client = two.client()
    for _ in range(5):
        await client.at(0).send("lounge", "before", "the first one writes")
        # An entry may have been read from the log before the database told of it: then by another.
        with contextlib.suppress(TimeoutError):
            await until(
                lambda: other.durable == writer.durable and bool(other._forwarding._writing),
                seconds=10,
            )
            break
    assert other._forwarding._writing
    return client


async def said(
    client: Client, content: str = "hello", topic: str = "t", channel: str = "lounge"
) -> Reply:
    """What the second node answers to a message."""
    return await client.at(1).post(
        "/messages", type="stream", to=channel, topic=topic, content=content
    )


def done(two: Cluster) -> tuple[int, int]:
    """How many commands the first node has carried out for the second one, as each counts."""
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
async def test_who_wrote_last_writes_for_the_others(
    two: Cluster, brings_entries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not brings_entries:
        monkeypatch.setattr(forwarding, "MOST_TOLD", -1)
    writer, other = logs(two)
    reply = await sent(two)
    assert done(two) == (1, 1)
    # It answers when it has the entry itself.
    assert other.durable == writer.durable
    assert other.state.last_message_id == reply.ok["id"]
    assert await contents(two) == ["hello"]
    await asyncio.gather(*(sent(two, f"{number}") for number in range(8)))
    assert sorted(await contents(two)) == [*"01234567", "hello"]


async def test_the_answer_brings_the_entries(two: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """So nobody waits until the database tells them."""
    writer, other = logs(two)
    monkeypatch.setattr(forwarding, "TOLD_SECONDS", 1000.0)
    client = await told_who_writes(two)
    hearing = other.store._hearing
    assert hearing is not None
    hearing.detach()  # It hears nothing from the database.
    assert (await said(client)).ok["id"] == other.state.last_message_id
    assert done(two) == (1, 1)
    assert other.position == writer.position


async def test_what_is_refused_there_is_refused_with_the_reason(two: Cluster) -> None:
    reply = await sent(two, channel="nowhere")
    reply.refused("STREAM_DOES_NOT_EXIST")
    assert done(two) == (0, 0)


async def test_a_long_message_is_not_forwarded(two: Cluster) -> None:
    (await sent(two, "ä" * 9999)).ok
    assert done(two) == (0, 0)


async def test_who_has_many_commands_writes_itself(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "MANY", 0)
    (await sent(two)).ok
    assert done(two) == (0, 0)


async def test_an_order_that_gets_lost_is_carried_out_here(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", A_WHILE)
    monkeypatch.setattr(Forwarding, "_begin", lambda *_: True)
    (await sent(two)).ok
    assert done(two) == (0, 0)
    assert await contents(two) == ["hello"]
    # It is not asked again soon.
    assert not logs(two)[1]._forwarding._writer()


async def test_what_was_done_without_an_answer_is_not_done_again(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = logs(two)

    def lose(_: str, number: int, __: bytes | None) -> None:
        # Its sender has waited long enough.
        other._forwarding._finish(number, forwarding._NO_ANSWER)

    monkeypatch.setattr(writer._forwarding, "_add_answer", lose)
    reply = await sent(two)
    assert done(two) == (1, 0)
    assert await contents(two) == ["hello"]
    assert writer.state.last_message_id == reply.ok["id"]


async def test_what_its_sender_has_given_up_is_not_begun(
    two: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = logs(two)
    monkeypatch.setattr(forwarding, "FORWARDED_SECONDS", A_WHILE)
    url = writer.store.database.url  # type: ignore[attr-defined]
    client = await told_who_writes(two)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT 1 FROM head WHERE id = 1 FOR UPDATE")
        sending = asyncio.create_task(said(client))
        await until(lambda: len(other._forwarding) == 1)
        await until(lambda: len(other._forwarding) == 0)
        await connection.rollback()
    (await sending).ok
    assert await contents(two) == ["hello"]


async def test_a_node_that_leaves_writes_for_nobody(two: Cluster) -> None:
    writer, other = logs(two)
    await sent(two)
    writer._forwarding.leave()
    (await sent(two)).ok
    assert done(two) == (1, 1)
    assert other._forwarding._writer() == ""
    other._forwarding._shunned.clear()
    writer._forwarding.close()
    (await sent(two)).ok
    assert done(two) == (1, 1)
    other._forwarding.close()
    (await sent(two)).ok


async def test_orders_of_others_are_not_carried_out(two: Cluster) -> None:
    """Of another version, of another history, of a kind that is not known, or no orders at all."""
    writer, _ = logs(two)
    answers: list[Any] = []
    place = writer._meeting_place
    assert place is not None

    def hear(datagram: bytes) -> None:
        answers.append(forwarding._decoder.decode(datagram))

    stranger = PeerSocket(place, "stranger", hear)
    try:
        history = writer.position.history
        order = forwarding._Order(7, "send", 1, 1e12, b"\xc0")
        for version, past, one in (
            ("0.0.0", history, order),
            (__version__, "another", order),
            (__version__, history, msgspec.structs.replace(order, errand="reign")),
            (__version__, history, order),
        ):
            asked = forwarding._Orders(version, past, "stranger", [one])
            assert stranger.send(writer.store.name, forwarding._encoder.encode(asked))
        writer._forwarding._on_datagram(b"nothing of the kind")
        writer._forwarding._on_datagram(b"\x95\xa6orders\xa1\xff")
        await until(lambda: sum(len(answer.results) for answer in answers) == 4)
        assert {tuple(one) for answer in answers for one in answer.results} == {(7, None)}
    finally:
        stranger.close()


async def test_the_meeting_place_is_the_users_alone(tmp_path: Path) -> None:
    place = tmp_path / "nodes"
    heard: list[bytes] = []
    first, second = PeerSocket(place, "a", heard.append), PeerSocket(place, "b", heard.append)
    assert second.send("a", b"hello")
    await until(lambda: heard == [b"hello"])
    assert not second.send("c", b"nobody")
    first.close()
    assert not second.send("a", b"gone")
    # One that was killed leaves its socket.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as killed:
        killed.bind(str(place / "killed"))
    PeerSocket(place, "d", heard.append).close()
    assert os.listdir(place) == ["b"]
    second.close()
    place.chmod(0o755)
    with pytest.raises(PermissionError):
        PeerSocket(place, "e", heard.append)
