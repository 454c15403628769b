"""Bot storage."""

import asyncio
from typing import Any

import pytest

from tertulia.service.config import Config
from tertulia.store import bots
from tertulia.wire.api import bot_storage
from tests.support import Organization, Person, Reply, open_organization


async def put(who: Person, storage: Any) -> Reply:
    return await who.request("PUT", "/bot_storage", storage=storage)


async def test_a_bot_reads_its_stored_data_even_after_a_restart(
    org: Organization, config: Config
) -> None:
    robo = org["robo"]
    assert (await robo.get("/bot_storage")).ok["storage"] == {}
    assert (await put(robo, {"a": "1", "ñ": '"tea"', "": ""})).ok
    assert (await put(robo, {"a": "2"})).ok
    every = {"a": "2", "ñ": '"tea"', "": ""}
    assert (await robo.get("/bot_storage")).ok["storage"] == every
    assert (await robo.get("/bot_storage", keys=["ñ", "a"])).ok["storage"] == {
        "a": "2",
        "ñ": '"tea"',
    }
    async with open_organization(config) as later:
        assert (await later["robo"].get("/bot_storage")).ok["storage"] == every
    (await robo.get("/bot_storage", keys=["a", "b"])).refused()
    (await robo.delete("/bot_storage", keys=["a", "b"])).refused()
    assert (await robo.delete("/bot_storage", keys=["a"])).ok
    assert set((await robo.get("/bot_storage")).ok["storage"]) == {"ñ", ""}
    assert (await robo.delete("/bot_storage")).ok
    assert (await robo.get("/bot_storage")).ok["storage"] == {}


async def test_bot_storage_is_limited(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    robo = org["robo"]
    monkeypatch.setattr(bot_storage, "MAX_CHARACTERS", 10)
    monkeypatch.setattr(bot_storage, "MAX_VALUES", 2)
    assert (await put(robo, {"a": "ñ" * 9})).ok
    (await put(robo, {"b": ""})).refused()
    (await put(robo, {"a": "x" * 10})).refused()
    assert (await put(robo, {"a": "x" * 8})).ok
    assert (await put(robo, {"b": ""})).ok
    assert (await put(robo, {"a": "", "b": "x" * 8})).ok
    (await put(robo, {"c": ""})).refused()
    for wrong in ({"a": 1}, ["a"], {"a": "\0"}, {"\0": "a"}):
        assert (await put(robo, wrong)).status == 400
    (await robo.request("PUT", "/bot_storage")).refused("REQUEST_VARIABLE_MISSING")


async def test_concurrent_writes_respect_the_limits(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    robo = org["robo"]
    monkeypatch.setattr(bot_storage, "MAX_CHARACTERS", 10)
    monkeypatch.setattr(bots, "PART", 2)
    replies = await asyncio.gather(*(put(robo, {f"{n}": "xxxx"}) for n in range(8)))
    assert sorted(reply.status for reply in replies) == [200] * 2 + [400] * 6
    assert len((await robo.get("/bot_storage")).ok["storage"]) == 2
    assert (await robo.delete("/bot_storage")).ok
    # A write with several keys is applied or refused as a whole.
    many = {f"{n}": "" for n in range(5)}
    assert (await put(robo, many)).ok
    assert (await robo.get("/bot_storage")).ok["storage"] == many
    assert (await robo.delete("/bot_storage", keys=list(many)[:3])).ok
    assert set((await robo.get("/bot_storage")).ok["storage"]) == {"3", "4"}


async def test_storage_is_separate_for_each_bot(org: Organization) -> None:
    assert (await put(org["robo"], {"a": "1"})).ok
    for method in ("get", "delete"):
        (await getattr(org["ann"], method)("/bot_storage")).refused("PERMISSION_DENIED")
    (await put(org["ann"], {"a": "2"})).refused("PERMISSION_DENIED")
    robo = org["robo"]
    assert (await robo.get("/bot_storage")).ok["storage"] == {"a": "1"}
    # It's deleted with the bot.
    erased = {"actions": {"delete_profile": True}}
    assert (await org["ann"].delete(f"/users/{robo.user_id}", **erased)).ok
    assert await org.node.store.read(bots.stored_values, robo.user_id, None) == {}
