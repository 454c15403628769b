"""The organization's icon and logos."""

import io
from typing import Any

import httpx
import pytest
from PIL import Image

from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.pictures import picture
from tests.support import Organization, Person, Reply, new_organization, open_organization


async def upload(who: Person, path: str, *files: bytes, **fields: Any) -> Reply:
    named = [("file", (f"picture{n}.png", content)) for n, content in enumerate(files)]
    return await who.raw("POST", path, files=named or None, data=fields)


async def fetched(org: Organization, address: str) -> httpx.Response:
    return await org.http.get(address)


WHICH = [
    ("icon", "/realm/icon", {}, "G"),
    ("logo", "/realm/logo", {"night": "false"}, "D"),
    ("night_logo", "/realm/logo", {"night": "true"}, "D"),
]


@pytest.mark.parametrize(("name", "path", "fields", "source"), WHICH)
async def test_an_image_is_set_shown_and_removed(
    org: Organization, name: str, path: str, fields: dict[str, str], source: str
) -> None:
    ben = await org["ben"].register()
    first = ben.data[f"realm_{name}_url"]
    assert ben.data[f"realm_{name}_source"] == source
    assert (await upload(org["ann"], path, picture(1600, 400), **fields)).ok
    (event,) = await ben.events()
    assert (event["type"], event["op"], event["property"]) == ("realm", "update_dict", name)
    assert event["data"][f"{name}_source"] == "U"
    address = event["data"][f"{name}_url"]
    assert address == f"/user_avatars/1/realm/{name}.png?version=2"
    data = (await org["ben"].register()).data
    assert (data[f"realm_{name}_source"], data[f"realm_{name}_url"]) == ("U", address)
    shown = await fetched(org, address)
    assert shown.headers["content-type"] == "image/png"
    assert "sandbox" in shown.headers["content-security-policy"]
    with Image.open(io.BytesIO(shown.content)) as found:
        assert found.size == ((100, 100) if name == "icon" else (400, 100))
    to = await org["ben"].raw("GET", path, params=fields)
    assert (to.status, to.headers["location"]) == (302, address)
    assert (await org["ann"].delete(path, **fields)).ok
    (event,) = await ben.events()
    assert event["data"][f"{name}_source"] == source
    assert event["data"][f"{name}_url"].partition("?")[0] == first.partition("?")[0]
    assert (await fetched(org, address)).status_code == 404
    assert (await org["ann"].delete(path, **fields)).ok
    assert await ben.events() == []


async def test_a_new_image_has_another_address_and_the_old_file_is_deleted(
    org: Organization,
) -> None:
    addresses = []
    for color in range(2):
        await upload(org["ann"], "/realm/icon", picture(50 + color, 50, "JPEG"))
        addresses.append((await org["ben"].register()).data["realm_icon_url"])
    assert addresses[0] != addresses[1]
    assert (await org.nobody.get("/server_settings")).ok["realm_icon"] == addresses[1]
    kept = list((org.node.disk.root / "realm").iterdir())
    assert len(kept) == 1


async def test_a_small_logo_is_not_enlarged(org: Organization) -> None:
    assert (await upload(org["ann"], "/realm/logo", picture(30, 20), night="false")).ok
    address = (await org["ben"].register()).data["realm_logo_url"]
    with Image.open(io.BytesIO((await fetched(org, address)).content)) as found:
        assert found.size == (30, 20)


@pytest.mark.parametrize(("name", "path", "fields", "source"), WHICH)
async def test_a_file_that_is_no_image_is_refused(
    readonly_org: Organization, name: str, path: str, fields: dict[str, str], source: str
) -> None:
    for content in (b"", b"no picture", b"<svg/>", picture(10, 10)[:40]):
        (await upload(readonly_org["ann"], path, content, **fields)).refused("BAD_IMAGE")
    assert (await readonly_org["ben"].register()).data[f"realm_{name}_source"] == source
    assert not (readonly_org.node.disk.root / "realm").exists()


@pytest.mark.parametrize(("name", "path", "fields", "source"), WHICH)
async def test_exactly_one_file_is_required(
    org: Organization, name: str, path: str, fields: dict[str, str], source: str
) -> None:
    (await upload(org["ann"], path, **fields)).refused()
    (await upload(org["ann"], path, picture(9, 9), picture(9, 9), **fields)).refused()


async def test_an_image_has_a_maximum_size(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.wire.api.pictures.MAX_PICTURE_MIB", 0)
    (await upload(org["ann"], "/realm/icon", picture(9, 9))).refused()


@pytest.mark.parametrize("role", [Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_images_are_for_administrators(org: Organization, role: Role) -> None:
    abe = await org.add("abe", role)
    for _, path, fields, _ in WHICH:
        (await upload(abe, path, picture(9, 9), **fields)).refused("UNAUTHORIZED_PRINCIPAL")
        (await abe.delete(path, **fields)).refused("UNAUTHORIZED_PRINCIPAL")


async def test_the_kind_of_logo_is_required(org: Organization) -> None:
    reply = await upload(org["ann"], "/realm/logo", picture(9, 9))
    assert reply.refused("REQUEST_VARIABLE_MISSING")["var_name"] == "night"


@pytest.mark.parametrize(
    "path",
    ["/user_avatars/1/realm/other.png", "/user_avatars/2/realm/icon.png", "/user_avatars/1/realm/"],
)
async def test_there_are_no_other_images(org: Organization, path: str) -> None:
    await upload(org["ann"], "/realm/icon", picture(9, 9))
    assert (await fetched(org, path)).status_code == 404


async def test_an_image_survives_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        await upload(org["ann"], "/realm/icon", picture(9, 9))
    async with open_organization(config) as org:
        address = (await org["ann"].register()).data["realm_icon_url"]
        assert (await fetched(org, address)).status_code == 200
