"""Channel folders: creating, changing, and ordering them, and channels in them."""

import asyncio
from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, Person, new_organization, open_organization, rows

CREATE = "/channel_folders/create"
FOLDERS = "/channel_folders"


async def created(org: Organization, *names: str) -> list[int]:
    """Create folders. Returns their IDs."""
    return [
        (await org["ann"].post(CREATE, name=name, description="")).ok["channel_folder_id"]
        for name in names
    ]


async def listed(who: Person, **parameters: Any) -> list[str]:
    reply = await who.get(FOLDERS, **parameters)
    return [folder["name"] for folder in reply.ok["channel_folders"]]


async def test_a_new_folder_is_listed_and_announced(org: Organization) -> None:
    gus = await org["gus"].register(
        event_types=["channel_folder"], fetch_event_types=["channel_folders"]
    )
    assert gus.data["channel_folders"] == []
    reply = await org["ann"].post(CREATE, name="  Front  ", description="for *all*")
    folder_id = reply.ok["channel_folder_id"]
    (folder,) = (await org["ben"].get(FOLDERS)).ok["channel_folders"]
    assert folder.pop("date_created") == pytest.approx(org.node.clock(), abs=600)
    assert folder == {
        "id": folder_id,
        "name": "Front",
        "description": "for *all*",
        "rendered_description": "<p>for <em>all</em></p>",
        "order": 0,
        "creator_id": org["ann"].user_id,
        "is_archived": False,
    }
    (event,) = await gus.events()
    assert (event["op"], event["channel_folder"]["name"]) == ("add", "Front")
    fresh = await org["gus"].register()
    assert [f["id"] for f in fresh.data["channel_folders"]] == [folder_id]


@pytest.fixture(scope="module")
async def folders(shared_org: Organization) -> list[int]:
    """Two folders, "Front" and "Other"."""
    return await created(shared_org, "Front", "Other")


@rows(
    "parameters",
    [
        {"name": "", "description": ""},
        {"name": "   ", "description": ""},
        {"name": "x" * 101, "description": ""},
        {"name": "a\u0007b", "description": ""},
        {"name": "front", "description": ""},
        {"name": "New", "description": "x" * 1025},
    ],
    ids=["empty", "blank", "long name", "control character", "in use", "long description"],
)
async def test_an_invalid_folder_is_refused(
    folders: list[int], readonly_org: Organization, parameters: dict[str, Any]
) -> None:
    (await readonly_org["ann"].post(CREATE, **parameters)).refused()
    (await readonly_org["ann"].patch(f"{FOLDERS}/{folders[1]}", **parameters)).refused()
    assert await listed(readonly_org["ann"]) == ["Front", "Other"]


async def test_a_name_may_change_its_letter_case(org: Organization) -> None:
    (folder_id,) = await created(org, "Front")
    assert (await org["ann"].patch(f"{FOLDERS}/{folder_id}", name="FRONT")).ok
    assert await listed(org["ann"]) == ["FRONT"]


@rows("missing", ["name", "description"])
async def test_name_and_description_are_required(readonly_org: Organization, missing: str) -> None:
    parameters = {"name": "Front", "description": ""}
    del parameters[missing]
    body = (await readonly_org["ann"].post(CREATE, **parameters)).refused(
        "REQUEST_VARIABLE_MISSING"
    )
    assert body["var_name"] == missing
    nulls = {"name": "Front", "description": "", missing: "a\0b"}
    (await readonly_org["ann"].post(CREATE, **nulls)).refused("REQUEST_VARIABLE_INVALID")


async def test_the_longest_name_and_description_fit(org: Organization) -> None:
    data = (await org["ann"].register(fetch_event_types=["realm"])).data
    name = "ä" * data["max_channel_folder_name_length"]
    description = "ä" * data["max_channel_folder_description_length"]
    assert (await org["ann"].post(CREATE, name=name, description=description)).ok


async def test_only_administrators_manage_folders(org: Organization) -> None:
    (folder,) = await created(org, "Front")
    await org.add("mod", Role.MODERATOR)
    for who in ("ben", "gus", "robo", "mod"):
        person, code = org[who], "UNAUTHORIZED_PRINCIPAL"
        (await person.post(CREATE, name="Mine", description="")).refused(code)
        (await person.patch(f"{FOLDERS}/{folder}", name="Mine")).refused(code)
        (await person.patch(f"{FOLDERS}/99", name="Mine")).refused(code)
        (await person.patch(FOLDERS, order=[folder])).refused(code)
        assert await listed(person) == ["Front"]
    await org.add("adam", Role.ADMINISTRATOR)
    assert (await org["adam"].post(CREATE, name="Mine", description="")).ok


@pytest.mark.parametrize(
    ("edit", "data"),
    [
        ({"name": "Rear"}, {"name": "Rear"}),
        (
            {"description": "*so*"},
            {"description": "*so*", "rendered_description": "<p><em>so</em></p>"},
        ),
        ({"is_archived": True}, {"is_archived": True}),
        ({"name": "Front"}, None),
        ({}, None),
    ],
    ids=["name", "description", "archived", "the same", "nothing"],
)
async def test_a_changed_folder_is_announced(
    org: Organization, edit: dict[str, Any], data: dict[str, Any] | None
) -> None:
    (folder,) = await created(org, "Front")
    ben = await org["ben"].register(event_types=["channel_folder"])
    assert (await org["ann"].patch(f"{FOLDERS}/{folder}", **edit)).ok
    events = await ben.events()
    if data is None:
        assert events == []
    else:
        (event,) = events
        assert (event["op"], event["channel_folder_id"]) == ("update", folder)
        assert event["data"] == data
    (shown,) = (await org["ben"].get(FOLDERS, include_archived=True)).ok["channel_folders"]
    assert shown.items() >= (data or {}).items()


async def test_an_unknown_folder_is_refused(org: Organization) -> None:
    (await org["ann"].patch(f"{FOLDERS}/7", name="x")).refused()
    (await org["ann"].post("/channels/create", name="c", subscribers=[], folder_id=7)).refused()
    channel = await org.channel("den")
    (await org["ann"].patch(f"/streams/{channel}", folder_id=7)).refused()


async def test_a_folder_can_be_archived_if_it_has_no_active_channel(org: Organization) -> None:
    ann = org["ann"]
    (folder,) = await created(org, "Front")
    channel = await org.channel("den", folder_id=folder)
    (await ann.patch(f"{FOLDERS}/{folder}", is_archived=True)).refused()
    assert (await ann.delete(f"/streams/{channel}")).ok
    assert (await ann.patch(f"{FOLDERS}/{folder}", is_archived=True)).ok
    assert await listed(ann) == []
    assert await listed(ann, include_archived=True) == ["Front"]
    registered = await ann.register(fetch_event_types=["channel_folders"])
    assert [f["is_archived"] for f in registered.data["channel_folders"]] == [True]
    # No channel can be added to it, and an unarchived channel leaves it.
    other = await org.channel("lounge")
    (await ann.patch(f"/streams/{other}", folder_id=folder)).refused()
    assert (await ann.patch(f"/streams/{channel}", is_archived=False)).ok
    assert (await ann.get(f"/streams/{channel}")).ok["stream"]["folder_id"] is None
    assert (await ann.patch(f"{FOLDERS}/{folder}", is_archived=False)).ok
    assert (await ann.patch(f"/streams/{other}", folder_id=folder)).ok


async def test_the_name_of_an_archived_folder_is_free(org: Organization) -> None:
    ann = org["ann"]
    (folder,) = await created(org, "Front")
    assert (await ann.patch(f"{FOLDERS}/{folder}", is_archived=True)).ok
    (again,) = await created(org, "front")
    (await ann.patch(f"{FOLDERS}/{folder}", is_archived=False)).refused()
    assert (await ann.patch(f"{FOLDERS}/{folder}", is_archived=False, name="Old")).ok
    assert again != folder


async def test_folders_are_listed_in_the_given_order(org: Organization) -> None:
    first, second, third = await created(org, "a", "b", "c")
    assert (await org["ann"].patch(f"{FOLDERS}/{second}", is_archived=True)).ok
    ben = await org["ben"].register(event_types=["channel_folder"])
    order = [third, second, first]
    assert (await org["ann"].patch(FOLDERS, order=order)).ok
    assert (await org["ann"].patch(FOLDERS, order=order)).ok
    (event,) = await ben.events()
    assert (event["op"], event["order"]) == ("reorder", order)
    assert await listed(org["ben"]) == ["c", "a"]
    shown = (await org["ben"].get(FOLDERS, include_archived=True)).ok["channel_folders"]
    assert [(f["name"], f["order"]) for f in shown] == [("c", 0), ("b", 1), ("a", 2)]
    (new,) = await created(org, "d")
    data = (await org["ben"].register()).data
    assert [f["id"] for f in data["channel_folders"]] == [*order, new]


@rows("order", [[], [1], [1, 1], [1, 2, 2], [1, 2, 3], "x", {"1": 2}, [1, "2"]])
async def test_an_order_names_every_folder_once(
    folders: list[int], readonly_org: Organization, order: Any
) -> None:
    assert folders == [1, 2]
    reply = await readonly_org["ann"].patch(FOLDERS, order=order)
    assert reply.status == 400, reply.body
    assert await listed(readonly_org["ann"]) == ["Front", "Other"]


async def test_concurrent_creations_of_the_same_folder_make_one(org: Organization) -> None:
    await org.add("adam", Role.ADMINISTRATOR)
    replies = await asyncio.gather(
        *(org[who].post(CREATE, name="Front", description="") for who in ("ann", "adam"))
    )
    assert sorted(reply.status for reply in replies) == [200, 400]
    assert await listed(org["ann"]) == ["Front"]


async def test_a_channel_is_added_to_a_folder_and_removed(org: Organization) -> None:
    ann = org["ann"]
    front, rear = await created(org, "Front", "Rear")
    reply = await ann.post(
        "/users/me/subscriptions", subscriptions=[{"name": "den"}], folder_id=front
    )
    assert reply.ok
    (channel,) = (await ann.get("/streams")).ok["streams"]
    assert channel["folder_id"] == front
    path = f"/streams/{channel['stream_id']}"
    queue = await ann.register(event_types=["stream"])
    for folder_id in (rear, None, None):
        assert (await ann.patch(path, folder_id="null" if folder_id is None else folder_id)).ok
        assert (await ann.get(path)).ok["stream"]["folder_id"] == folder_id
    events = await queue.events()
    assert [(e["op"], e["property"], e["value"]) for e in events] == [
        ("update", "folder_id", rear),
        ("update", "folder_id", None),
    ]
    page = await ann.get(
        "/messages",
        anchor="newest",
        num_before=2,
        num_after=0,
        narrow=[["topic", "channel events"]],
        apply_markdown=False,
    )
    assert [message["content"].partition(" moved ")[2] for message in page.ok["messages"]] == [
        "this channel from the folder **Front** to the folder **Rear**.",
        "this channel from the folder **Rear** to no folder.",
    ]


async def test_channel_administrators_choose_its_folder(org: Organization) -> None:
    (front,) = await created(org, "Front")
    assert (
        await org["ben"].post("/channels/create", name="den", subscribers=[], folder_id=front)
    ).ok
    path = f"/streams/{(await org['ben'].get('/get_stream_id', stream='den')).ok['stream_id']}"
    (await org["cleo"].patch(path, folder_id="null")).refused()
    assert (await org["ben"].patch(path, folder_id="null")).ok


async def test_spectators_see_folders_with_visible_channels(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    front, rear, _ = await created(org, "Front", "Rear", "Empty")
    await org.channel("plaza", is_web_public=True, folder_id=front)
    await org.channel("den", folder_id=rear)
    data = (await org.nobody.post("/register", fetch_event_types=["channel_folders"])).ok
    assert [folder["name"] for folder in data["channel_folders"]] == ["Front"]


async def test_folders_survive_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        first, second = await created(org, "a", "b")
        assert (await org["ann"].patch(FOLDERS, order=[second, first])).ok
    async with open_organization(config) as org:
        assert await listed(org["ann"]) == ["b", "a"]
        assert await created(org, "c") == [3]
