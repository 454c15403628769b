"""The demonstration."""

import asyncio
from pathlib import Path

import pytest

from tertulia import demo
from tertulia.config import Config
from tertulia.domain import messages
from tertulia.model.errors import Refused
from tests.cli.support import Place
from tests.support import reopened


async def test_everybody_of_the_demonstration_can_sign_in(config: Config) -> None:
    residents = await demo.prepared(config)
    assert len({resident.role for resident in residents}) == 4
    async with reopened(config) as org:
        for resident in residents:
            reply = await org.nobody.post(
                "/fetch_api_key", username=resident.address, password=resident.password
            )
            assert reply.ok["api_key"] == resident.api_key


async def test_the_owner_finds_topics_and_an_unread_mention(config: Config) -> None:
    await demo.prepared(config)
    async with reopened(config) as org:
        found = (
            await org["iris"].get("/messages", anchor="oldest", num_before=0, num_after=100)
        ).ok["messages"]
        topics = {(m["stream_id"], m["subject"]) for m in found if m["type"] == "stream"}
        assert len(topics) >= 5
        assert any("mentioned" in m["flags"] and "read" not in m["flags"] for m in found)


async def test_a_second_start_finds_the_demonstration_again(config: Config) -> None:
    first = await demo.prepared(config)
    async with reopened(config) as org:
        before = org.node.state.seq
    assert await demo.prepared(config) == first
    async with reopened(config) as org:
        assert org.node.state.seq == before


async def test_a_start_that_was_cut_short_is_finished_by_the_next(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = messages.send
    sent = 0

    def failing(*arguments: object) -> object:
        nonlocal sent
        sent += 1
        if sent == 5:
            raise Refused("cut short")
        return send(*arguments)  # type: ignore[arg-type]  # handed on as they came

    with monkeypatch.context() as patch:
        patch.setattr(messages, "send", failing)
        with pytest.raises(Refused, match="cut short"):
            await demo.prepared(config)
    await demo.prepared(config)
    async with reopened(config) as org:
        found = await org.node.store.read(
            lambda connection: connection.query(
                "SELECT content FROM messages WHERE client = ? ORDER BY id", (demo.CLIENT,)
            )
        )
        assert [text for (text,) in found] == [line[3] for line in demo.TALK] + [demo.LETTER[2]]


async def test_an_organization_of_somebodys_own_is_left_alone(place: Place) -> None:
    await asyncio.to_thread(place.found)
    result = await asyncio.to_thread(place.run, "serve", "--demo", "--port", "0")
    assert result.exit_code == 1
    assert "not a demonstration" in result.stderr


def test_the_demonstration_prints_how_to_sign_in(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.serving("--demo") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        process.terminate()
        assert process.stdout is not None
        printed = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert demo.PASSWORD in printed
    assert f"site={address}" in printed
