"""The list of nodes: what each reports and reads, and who can see it."""

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.service import membership
from tertulia.service.config import Config
from tertulia.service.membership import Membership
from tertulia.store import backups, nodes
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.wire.api.nodes import get_nodes
from tertulia.wire.http.routing import Call
from tests.support import Organization, open_organization, until

NOW = 1_795_000_000.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes report more often."""
    monkeypatch.setattr(membership, "REPORT_SECONDS", 0.02)


async def names(org: Organization) -> list[str]:
    return [node.name for node in await org.node.store.read(nodes.list_nodes)]


async def when(happened: Callable[[], Awaitable[bool]]) -> None:
    """Return when it has happened, since nodes report on their own schedule."""
    async with asyncio.timeout(60):
        while True:
            if await happened():
                return
            await asyncio.sleep(0.02)


async def until_listed(org: Organization, expected: list[str]) -> None:
    async def happened() -> bool:
        return await names(org) == expected

    await when(happened)


async def test_owners_see_which_nodes_serve(org: Organization) -> None:
    await org["ben"].register()
    node: dict[str, Any] = {}

    async def has_said() -> bool:
        nonlocal node
        (node,) = (await org["ann"].get("/nodes")).ok["nodes"]
        return bool(node["queues"] == 1 and node["state"] == "serving")

    await when(has_said)
    assert node["name"] == org.node.membership.name
    assert (node["lag_entries"], node["lag_seconds"], node["waiting_polls"]) == (0, 0, 0)
    assert node["started_at"] <= node["seen_at"]
    assert node["asked_to_leave"] is False
    for name in ("ben", "gus", "robo"):
        (await org[name].get("/nodes")).refused("UNAUTHORIZED_PRINCIPAL", 400)
    (await org.nobody.get("/nodes")).refused("UNAUTHORIZED", 401)


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (None, {"last_at": None, "is_old": True}),
        (49, {"last_at": int(NOW - 49 * 3600), "is_old": False}),
        (51, {"last_at": int(NOW - 51 * 3600), "is_old": True}),
    ],
)
async def test_owners_see_the_time_of_the_last_backup(
    org: Organization, hours: int | None, expected: dict[str, Any]
) -> None:
    assert (await org["ann"].get("/nodes")).ok["backups"] is None
    last = None if hours is None else (NOW - hours * 3600, 5)
    await org.node.store.write(lambda c: backups.set_last_backup(c, last))
    backing_up = msgspec.structs.replace(org.node.config, backup_to="/backups")
    node = dataclasses.replace(org.node, config=backing_up, clock=lambda: NOW)
    call = Call(node=node, user_id=org["ann"].user_id, client="", request=Request({"type": "http"}))
    found = (await get_nodes(call)).backups
    assert msgspec.to_builtins(found) == expected


async def test_a_drained_node_leaves(org: Organization) -> None:
    name = org.node.membership.name
    assert (await org.http.get("/ready")).status_code == 200
    assert await org.node.store.tend_list(lambda c: nodes.request(c, name, nodes.DRAIN))
    await until(lambda: org.node.lifecycle.is_draining)
    response = await org.http.get("/ready")
    assert response.json()["problems"] == ["The node is shutting down."]

    async def has_said() -> bool:
        (node,) = (await org["ann"].get("/nodes")).ok["nodes"]
        return bool(node["state"] == "draining")

    await when(has_said)
    assert not await org.node.store.tend_list(lambda c: nodes.request(c, "nobody", nodes.DRAIN))


async def test_each_node_has_a_unique_name(org: Organization, config: Config) -> None:
    name = org.node.membership.name
    async with open_organization(config) as other:
        other_name = other.node.membership.name
        assert other_name.startswith(f"{name}-")
        assert await names(other) == [name, other_name]
        # The name becomes free, and one of the two takes it.
        await org.node.store.tend_list(lambda c: c.run("DELETE FROM nodes WHERE name = ?", (name,)))

        async def is_taken() -> bool:
            own = {org.node.membership.name, other.node.membership.name}
            return name in own and set(await names(other)) == own

        await when(is_taken)

    async def is_alone() -> bool:
        return await names(org) == [org.node.membership.name]

    await when(is_alone)


async def test_a_server_for_development_has_no_other_nodes(
    org: Organization, config: Config
) -> None:
    replace = msgspec.structs.replace
    with pytest.raises(Refused, match=f"--dev.*{org.node.membership.name} uses the same database"):
        async with open_organization(replace(config, dev=True, node_name="laptop")):
            pass
    assert await names(org) == [org.node.membership.name]
    # Workers of one server are nodes, too.
    async with open_organization(replace(config, dev=True)) as worker:
        assert len(await names(worker)) == 2


async def test_a_forgotten_node_registers_again(org: Organization) -> None:
    await org.node.store.tend_list(lambda c: c.run("DELETE FROM nodes"))
    await until_listed(org, [org.node.membership.name])


NOBODY, PARENT, SELF = 2**22 + 1, 0, -1


@pytest.mark.parametrize(
    ("process", "is_living"),
    [(NOBODY, False), (PARENT, True), (SELF, False)],
    ids=["nobody", "parent", "self"],
)
async def test_the_row_of_an_ended_process_is_removed_immediately(
    org: Organization, config: Config, process: int, is_living: bool
) -> None:
    """If that can be determined: on the same machine."""
    name, own = org.node.membership.name, Membership(config).entry
    entry = nodes.NodeEntry(
        run="left",
        host=own.host,
        pid={PARENT: os.getppid(), SELF: os.getpid()}.get(process, process),
        pid_space=own.pid_space,
        version="x",
        schema_version=1,
        log_format=1,
    )

    def enter(connection: Connection) -> None:
        connection.run("DELETE FROM nodes")
        nodes.register(connection, name, entry, nodes.NodeFigures(), lambda _: False)

    async def has_entered() -> bool:
        runs = {node.entry.run for node in await org.node.store.read(nodes.list_nodes)}
        return org.node.membership.entry.run in runs

    await org.node.store.tend_list(enter)
    await when(has_entered)
    assert name in await names(org)
    assert len(await names(org)) == 1 + is_living


async def test_a_failed_report_is_logged_once_and_affects_nothing(
    org: Organization, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    async def away(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(org.node.store, "tend_list", away)
    await until(lambda: tries > 3)
    assert caplog.text.count("could not update the list of nodes") == 1
    await org["ann"].write([org["ben"].user_id], "goes on")
