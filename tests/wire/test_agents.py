"""Agents' keys: who creates them, who sees them, and when they expire."""

from typing import Any

import msgspec
import pytest

from tertulia.domain.accounts import access_keys, sessions
from tertulia.model.access_keys import Reach
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.credentials import key_digest
from tests.support import PASSWORD, Organization, Person, TestClock, new_organization, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.get("/agents")).ok["agents"]
    return found


async def create_agent(person: Person, name: str = "Helper", **scope: Any) -> dict[str, Any]:
    return (await person.post("/agents", name=name, **scope)).ok


async def asks(org: Organization, key: str) -> int:
    """The status of a request with the key."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {key}", "MCP-Protocol-Version": "2025-11-25"}
    return (await org.http.post("/mcp", json=message, headers=headers)).status_code


async def test_a_key_is_shown_once_and_not_stored(org: Organization) -> None:
    ann = org["ann"]
    channel = await org.channel("kitchen", "ann")
    first = await create_agent(ann, " Helper ")
    second = await create_agent(ann, "Cook", can_write=True, channel_ids=[channel, channel])
    third = await create_agent(ann, "Clerk", direct_messages=True, channel_ids=[])
    key = first["key"]
    assert key.startswith("tertulia_agent_")
    assert [one["name"] for one in await listed(ann)] == ["Clerk", "Cook", "Helper"]
    assert first["agent"] == {
        "id": 1,
        "name": "Helper",
        "user_id": ann.user_id,
        "can_write": False,
        "channel_ids": None,
        "direct_messages": False,
        "created_at": first["agent"]["created_at"],
        "last_used_at": None,
    }
    assert second["agent"] | {"can_write": True, "channel_ids": [channel]} == second["agent"]
    assert third["agent"] | {"direct_messages": True, "channel_ids": []} == third["agent"]
    kept = org.node.state.access_keys[1]
    assert kept.digest == key_digest(key)
    assert key not in repr(kept)
    assert Reach() == Reach(may_write=False, channel_ids=(), directs=False)


@rows(
    ("who", "sent", "code"),
    [
        ("ben", {}, "REQUEST_VARIABLE_MISSING"),
        ("ben", {"name": " "}, "BAD_REQUEST"),
        ("ben", {"name": "x" * 25}, "BAD_REQUEST"),
        ("ben", {"name": "a\u200bb"}, "BAD_REQUEST"),
        ("ben", {"name": "a\nb"}, "BAD_REQUEST"),
        ("ben", {"name": "x", "channel_ids": []}, "BAD_REQUEST"),
        ("ben", {"name": "x", "channel_ids": [99]}, "STREAM_DOES_NOT_EXIST"),
        ("ben", {"name": "x", "channel_ids": list(range(201))}, "BAD_REQUEST"),
        ("ben", {"name": "x", "channel_ids": "kitchen"}, "REQUEST_VARIABLE_INVALID"),
        ("ben", {"name": "x", "can_write": "perhaps"}, "REQUEST_VARIABLE_INVALID"),
        ("robo", {"name": "x"}, "UNAUTHORIZED_PRINCIPAL"),
    ],
)
async def test_invalid_keys_are_refused(
    readonly_org: Organization, who: str, sent: dict[str, Any], code: str
) -> None:
    (await readonly_org[who].post("/agents", **sent)).refused(code)


async def test_a_key_names_only_channels_visible_to_its_owner(org: Organization) -> None:
    hidden = await org.channel("hidden", "ann", is_private=True)
    (await org["ben"].post("/agents", name="x", channel_ids=[hidden])).refused(
        "STREAM_DOES_NOT_EXIST"
    )
    await create_agent(org["gus"])
    await create_agent(org["ben"])
    (await org["ben"].post("/agents", name="HELPER")).refused()
    assert await listed(org["ann"]) == []


async def test_the_number_of_keys_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_keys, "MAX_KEYS", 1)
    await create_agent(org["ben"])
    (await org["ben"].post("/agents", name="other")).refused()
    await create_agent(org["cleo"])


async def test_who_can_list_and_revoke_a_key(org: Organization) -> None:
    ben, ann = org["ben"], org["ann"]
    admin = await org.add("ada", Role.ADMINISTRATOR)
    bens, anns = await create_agent(ben), await create_agent(ann)
    for person in (ben, ann, admin):
        found = (await person.get(f"/users/{ben.user_id}/agents")).ok["agents"]
        assert [one["id"] for one in found] == [bens["agent"]["id"]]
    for person, whose in ((org["cleo"], ben), (org["gus"], ben), (admin, ann), (ben, ann)):
        (await person.get(f"/users/{whose.user_id}/agents")).refused()
    (await ann.get("/users/999/agents")).refused()
    for person, key in ((org["cleo"], bens), (ben, anns), (admin, anns), (org["robo"], bens)):
        (await person.delete(f"/agents/{key['agent']['id']}")).refused(status=404)
    (await admin.delete(f"/agents/{bens['agent']['id']}")).ok
    assert await asks(org, bens["key"]) == 401
    assert await asks(org, anns["key"]) == 200
    (await ann.delete(f"/agents/{anns['agent']['id']}")).ok
    (await ann.delete(f"/agents/{anns['agent']['id']}")).refused(status=404)
    assert await asks(org, anns["key"]) == 401
    assert (await create_agent(ann))["agent"]["id"] == 3  # IDs aren't reused.


async def test_the_last_use_is_shown_and_rarely_written(config: Config) -> None:
    clock = TestClock(stopped_at=1_790_000_000)
    async with new_organization(config, clock=clock) as org:
        key = (await create_agent(org["ann"]))["key"]
        assert await asks(org, key) == 200
        seq = org.node.state.seq
        assert [one["last_used_at"] for one in await listed(org["ann"])] == [1_790_000_000]
        clock.ahead = access_keys.USE_SECONDS - 1
        assert await asks(org, key) == 200
        assert org.node.state.seq == seq
        clock.ahead = access_keys.USE_SECONDS
        assert await asks(org, key) == 200
        assert [one["last_used_at"] for one in await listed(org["ann"])] == [1_790_000_600]


@pytest.mark.parametrize(
    "ends",
    ["new key", "deactivated", "by the operator", "erased", "deactivated organization"],
)
async def test_keys_end_with_their_owner_s_access(org: Organization, ends: str) -> None:
    ann, ben = org["ann"], org["ben"]
    key = (await create_agent(ben))["key"]
    assert await asks(org, key) == 200
    match ends:
        case "new key":
            (await ben.post("/users/me/api_key/regenerate")).ok
        case "deactivated":
            (await ann.delete(f"/users/{ben.user_id}")).ok
        case "by the operator":
            new = org.node.vault.new_key()
            await org.node.log.submit(None, sessions.end_access, ben.user_id, new)
        case "erased":
            (await ann.delete(f"/users/{ben.user_id}", actions={"delete_profile": True})).ok
        case "deactivated organization":
            (await ann.post("/realm/deactivate")).ok
    assert await asks(org, key) == 401
    if ends != "deactivated organization":
        assert org.node.state.access_keys.of_user[ben.user_id] == ()
    if ends == "deactivated":
        (await ann.post(f"/users/{ben.user_id}/reactivate")).ok
        assert await asks(org, key) == 401


async def test_an_owner_s_new_password_keeps_agent_keys_and_the_api_key(
    org: Organization,
) -> None:
    key = (await create_agent(org["ann"]))["key"]
    (await org["ann"].patch("/settings", old_password=PASSWORD, new_password="zebra umbrella 9")).ok
    assert await asks(org, key) == 200


async def test_agents_can_be_disabled(config: Config) -> None:
    async with new_organization(msgspec.structs.replace(config, agents=False)) as org:
        (await org["ann"].post("/agents", name="x")).refused()
        assert await listed(org["ann"]) == []
        assert await asks(org, "tertulia_agent_x") == 404


async def test_the_key_gives_no_other_access(org: Organization) -> None:
    key = (await create_agent(org["ann"], can_write=True))["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert (await org.http.get("/api/v1/users/me", headers=bearer)).status_code in {400, 401}
    basic = (org["ann"].email, key)
    assert (await org.http.get("/api/v1/users/me", auth=basic)).status_code == 401
    assert await asks(org, org["ann"].api_key) == 401
