"""Default channel groups that new users can choose."""

from typing import Any

import pytest

from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, new_organization, open_organization, rows
from tests.wire.sample_organization import Data

CREATE = "/default_stream_groups/create"


async def create_group(org: Organization, *channels: str, name: str = "Cooks") -> int:
    reply = await org["ann"].post(
        CREATE, group_name=name, description="all that cook", stream_names=list(channels)
    )
    group_id: int = reply.ok["id"]
    return group_id


async def listed(org: Organization, who: str = "ben") -> list[Data]:
    groups: list[Data] = (await org[who].register()).data["realm_default_stream_groups"]
    return groups


async def test_a_group_is_created_described_filled_and_removed(org: Organization) -> None:
    kitchen, garden = await org.channel("kitchen", "ann"), await org.channel("garden", "ann")
    ben = await org["ben"].register()
    group_id = await create_group(org, "kitchen")
    place = f"/default_stream_groups/{group_id}"
    (event,) = await ben.events()
    group = {
        "id": group_id,
        "name": "Cooks",
        "description": "all that cook",
        "streams": [kitchen],
    }
    assert (event["type"], event["default_stream_groups"]) == ("default_stream_groups", [group])
    assert await listed(org) == [group]
    steps: list[tuple[str, Data, Data]] = [
        (place, {"new_group_name": " Chefs "}, {"name": "Chefs"}),
        (place, {"new_description": "others"}, {"description": "others"}),
        (
            f"{place}/streams",
            {"op": "add", "stream_names": ["garden"]},
            {"streams": [kitchen, garden]},
        ),
        (f"{place}/streams", {"op": "remove", "stream_names": ["kitchen"]}, {"streams": [garden]}),
    ]
    for path, given, news in steps:
        assert (await org["ann"].patch(path, **given)).ok
        group |= news
        (event,) = await ben.events()
        assert event["default_stream_groups"] == [group]
        assert await listed(org) == [group]
    assert (await org["ann"].delete(place)).ok
    (event,) = await ben.events()
    assert event["default_stream_groups"] == []
    assert await listed(org) == []
    assert await create_group(org) > group_id


@pytest.fixture(scope="module")
async def filled(shared_org: Organization) -> Organization:
    """Channels of all kinds, and two groups. The first contains the channel "kitchen"."""
    await shared_org.channel("kitchen", "ann")
    await shared_org.channel("garden", "ann")
    await shared_org.channel("secret", "ann", is_private=True)
    await shared_org.channel("ruin", "ann", is_archived=True)
    await shared_org.channel("everywhere", "ann", is_default=True)
    assert await create_group(shared_org, "kitchen") == 1
    await create_group(shared_org, name="Gardeners")
    return shared_org


@rows(
    "given",
    [
        {"group_name": ""},
        {"group_name": " "},
        {"group_name": "n" * 61},
        {"group_name": "a\nb"},
        {"group_name": "COOKS"},
        {"description": "d" * 1025},
        {"stream_names": ["kitchen", "Kitchen"]},
        {"stream_names": ["secret"]},
        {"stream_names": ["ruin"]},
        {"stream_names": ["everywhere"]},
    ],
)
async def test_an_invalid_group_is_refused(
    filled: Organization, readonly_org: Organization, given: Data
) -> None:
    whole = {"group_name": "New", "description": "", "stream_names": ["kitchen"], **given}
    (await readonly_org["ann"].post(CREATE, **whole)).refused()


async def test_an_unknown_channel_is_refused_by_name(readonly_org: Organization) -> None:
    whole = {"group_name": "New", "description": "", "stream_names": ["nowhere"]}
    reply = await readonly_org["ann"].post(CREATE, **whole)
    assert reply.refused("STREAM_DOES_NOT_EXIST")["stream"] == "nowhere"


@rows(
    ("path", "given", "code"),
    [
        ("/99", {"new_group_name": "x"}, "BAD_REQUEST"),
        ("/1", {}, "BAD_REQUEST"),
        ("/1", {"new_group_name": "Gardeners"}, "BAD_REQUEST"),
        ("/1", {"new_group_name": ""}, "BAD_REQUEST"),
        ("/1", {"new_description": "d" * 1025}, "BAD_REQUEST"),
        ("/99/streams", {"op": "add", "stream_names": ["garden"]}, "BAD_REQUEST"),
        ("/1/streams", {"op": "add", "stream_names": ["kitchen"]}, "BAD_REQUEST"),
        ("/1/streams", {"op": "remove", "stream_names": ["garden"]}, "BAD_REQUEST"),
        ("/1/streams", {"op": "remove", "stream_names": ["no"]}, "STREAM_DOES_NOT_EXIST"),
        ("/1/streams", {"op": "swap", "stream_names": ["garden"]}, "REQUEST_VARIABLE_INVALID"),
        ("/1/streams", {"op": "add", "stream_names": "garden"}, "REQUEST_VARIABLE_INVALID"),
        ("/1/streams", {"op": "add"}, "REQUEST_VARIABLE_MISSING"),
    ],
)
async def test_an_invalid_change_is_refused(
    filled: Organization, readonly_org: Organization, path: str, given: Data, code: str
) -> None:
    before = await listed(readonly_org)
    (await readonly_org["ann"].patch(f"/default_stream_groups{path}", **given)).refused(code)
    assert await listed(readonly_org) == before


async def test_an_equal_value_sends_no_event(org: Organization) -> None:
    group_id = await create_group(org)
    ben = await org["ben"].register()
    same = {"new_group_name": "Cooks", "new_description": "all that cook"}
    assert (await org["ann"].patch(f"/default_stream_groups/{group_id}", **same)).ok
    assert await ben.events() == []


@pytest.mark.parametrize("role", [Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_groups_are_for_administrators(org: Organization, role: Role) -> None:
    group_id = await create_group(org)
    abe = await org.add("abe", role)
    place = f"/default_stream_groups/{group_id}"
    whole: dict[str, Any] = {"group_name": "New", "description": "", "stream_names": []}
    for reply in (
        await abe.post(CREATE, **whole),
        await abe.patch(place, new_group_name="x"),
        await abe.patch(f"{place}/streams", op="add", stream_names=[]),
        await abe.delete(place),
    ):
        reply.refused("UNAUTHORIZED_PRINCIPAL")
    (await org["ann"].delete("/default_stream_groups/99")).refused()


async def test_guests_who_become_members_get_the_groups(org: Organization) -> None:
    gus = await org["gus"].register()
    group_id = await create_group(org)
    assert await gus.events() == []
    assert await listed(org, "gus") == []
    await org["ann"].patch(f"/users/{org['gus'].user_id}", role=400)
    told = [e for e in await gus.events() if e["type"] == "default_stream_groups"]
    assert [group["id"] for group in told[-1]["default_stream_groups"]] == [group_id]
    await org["ann"].patch(f"/users/{org['gus'].user_id}", role=600)
    told = [e for e in await gus.events() if e["type"] == "default_stream_groups"]
    assert told[-1]["default_stream_groups"] == []


@pytest.mark.parametrize("how", ["archived", "private"])
async def test_a_channel_that_becomes_private_leaves_its_groups(
    org: Organization, how: str
) -> None:
    kitchen = await org.channel("kitchen", "ann")
    await create_group(org, "kitchen")
    ben = await org["ben"].register()
    if how == "archived":
        assert (await org["ann"].delete(f"/streams/{kitchen}")).ok
    else:
        assert (await org["ann"].patch(f"/streams/{kitchen}", is_private=True)).ok
    told = [e for e in await ben.events() if e["type"] == "default_stream_groups"]
    assert [group["streams"] for group in told[-1]["default_stream_groups"]] == [[]]
    assert [group["streams"] for group in await listed(org)] == [[]]


async def test_groups_survive_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        await org.channel("kitchen", "ann")
        await create_group(org, "kitchen")
        before = await listed(org, "ann")
    async with open_organization(config) as org:
        assert await listed(org, "ann") == before
