"""Avatars."""

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
from PIL import Image

from tertulia.domain.accounts.avatars import initials
from tertulia.model.changes import RealmChanged
from tests.pictures import blank
from tests.support import Organization, Person, Reply, open_organization, rows

GRAVATAR = "https://secure.gravatar.com/avatar/"


def picture(size: tuple[int, int] = (300, 200), kind: str = "PNG", color: str = "red") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind)
    return out.getvalue()


async def upload(person: Person, *contents: bytes, path: str = "/users/me/avatar") -> Reply:
    files = [(f"file{n}", (f"{n}.png", content)) for n, content in enumerate(contents)]
    return await person.raw("POST", path, files=files)


async def fetched(org: Organization, url: str, **headers: str) -> httpx.Response:
    return await org.http.get(url, headers=headers)


def opened(response: httpx.Response) -> Image.Image:
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/png"
    return Image.open(io.BytesIO(response.content))


async def user_json(org: Organization, name: str, viewer: str = "gus") -> dict[str, Any]:
    path = f"/users/{org[name].user_id}"
    user: dict[str, Any] = (await org[viewer].get(path, client_gravatar=True)).ok["user"]
    return user


@rows("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF"])
async def test_an_avatar_is_served_in_two_sizes_to_everyone(org: Organization, kind: str) -> None:
    listener = await org["gus"].register()
    version = (await user_json(org, "ben"))["avatar_version"] + 1
    url = (await upload(org["ben"], picture(kind=kind))).ok["avatar_url"]
    user = await user_json(org, "ben")
    assert (user["avatar_url"], user["avatar_version"]) == (url, version)
    small = opened(await fetched(org, url))
    assert small.size == (100, 100)
    red, green, blue = small.convert("RGB").getpixel((50, 50))  # type: ignore[misc]  # RGB has three
    assert red > 200
    assert max(green, blue) < 40
    (event,) = await listener.events()
    person = event["person"]
    assert opened(await fetched(org, person["avatar_url_medium"])).size == (500, 500)
    assert {name: person[name] for name in person if name != "avatar_url_medium"} == {
        "user_id": org["ben"].user_id,
        "avatar_source": "U",
        "avatar_url": url,
        "avatar_version": version,
    }
    own = (await org["ben"].register()).data
    assert (own["avatar_url"], own["avatar_source"]) == (url, "U")
    assert own["avatar_url_medium"] == person["avatar_url_medium"]
    assert (await org["ben"].get("/users/me")).ok["avatar_url"] == url


async def test_an_avatar_persists_and_appears_with_messages(org: Organization) -> None:
    url = (await upload(org["ben"], picture())).ok["avatar_url"]
    await org.channel("lounge", "ben", "gus")
    message_id = await org["ben"].send("lounge", "t", "hi")
    async with open_organization(org.node.config) as later:
        assert (await user_json(later, "ben"))["avatar_url"] == url
        assert opened(await fetched(later, url)).size == (100, 100)
        message = (await later["gus"].get(f"/messages/{message_id}")).ok["message"]
        assert message["avatar_url"] == url


async def test_a_new_avatar_replaces_the_previous_one(org: Organization) -> None:
    first = (await upload(org["ben"], picture())).ok["avatar_url"]
    second = (await upload(org["ben"], picture(color="blue"))).ok["avatar_url"]
    assert first != second
    assert (await fetched(org, first)).status_code == 404
    assert opened(await fetched(org, second)).size == (100, 100)
    assert (await user_json(org, "ben"))["avatar_version"] == 3


async def test_without_an_uploaded_avatar_the_default_returns(org: Organization) -> None:
    url = (await upload(org["ben"], picture())).ok["avatar_url"]
    listener = await org["gus"].register()
    answer = (await org["ben"].delete("/users/me/avatar")).ok
    assert answer["avatar_url"].startswith(GRAVATAR)
    assert (await fetched(org, url)).status_code == 404
    (event,) = await listener.events()
    assert event["person"] == {
        "user_id": org["ben"].user_id,
        "avatar_source": "G",
        "avatar_url": None,
        "avatar_url_medium": None,
        "avatar_version": 3,
    }
    # Without one, there is nothing to do.
    assert (await org["ben"].delete("/users/me/avatar")).ok == answer
    assert await listener.events() == []


@rows(
    ("contents", "code"),
    [
        (list, "BAD_REQUEST"),
        (lambda: [picture(), picture()], "BAD_REQUEST"),
        (lambda: [b""], "BAD_IMAGE"),
        (lambda: [b"no picture"], "BAD_IMAGE"),
        (lambda: [b'<svg xmlns="http://www.w3.org/2000/svg"/>'], "BAD_IMAGE"),
        (lambda: [picture()[:50]], "BAD_IMAGE"),
        (lambda: [blank(9_500, 9_500)], "BAD_IMAGE"),
    ],
)
async def test_a_file_that_is_no_image_is_refused(
    readonly_org: Organization, contents: Callable[[], list[bytes]], code: str
) -> None:
    before = await user_json(readonly_org, "ben")
    (await upload(readonly_org["ben"], *contents())).refused(code)
    assert await user_json(readonly_org, "ben") == before


async def test_an_image_that_is_too_large_is_refused(readonly_org: Organization) -> None:
    reply = await upload(readonly_org["ben"], picture() + b"\0" * (5 * 1024 * 1024))
    assert reply.status in {400, 413}
    assert (await user_json(readonly_org, "ben"))["avatar_version"] == 1


async def test_an_organization_can_restrict_avatars_to_administrators(
    org: Organization,
) -> None:
    await org.do(RealmChanged(values={"avatar_changes_disabled": True}))
    (await upload(org["ben"], picture())).refused()
    (await org["ben"].delete("/users/me/avatar")).refused()
    assert (await upload(org["ann"], picture())).ok


async def test_avatars_are_cacheable(org: Organization) -> None:
    url = (await upload(org["ben"], picture())).ok["avatar_url"]
    first = await fetched(org, url)
    assert "immutable" in first.headers["cache-control"]
    policy = first.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith("; sandbox")
    assert first.headers["x-content-type-options"] == "nosniff"
    again = await fetched(org, url, **{"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


@rows(
    "path",
    ["x.png", "../secret.png", "%2e%2e%2fsecret.png", f"{'0' * 40}.png", f"{'0' * 40}.svg", ""],
)
async def test_a_missing_avatar_is_not_found(readonly_org: Organization, path: str) -> None:
    assert (await fetched(readonly_org, f"/user_avatars/1/{path}")).status_code == 404


# Default avatars


async def draw_by_default(org: Organization) -> None:
    await org.do(RealmChanged(values={"default_avatar_source": "J"}))


async def test_the_organization_can_generate_default_avatars(org: Organization) -> None:
    await draw_by_default(org)
    made = await org["ann"].post(
        "/users", email="dan@example.com", password="long enough", full_name="Dan Árbol"
    )
    user = (await org["ben"].get(f"/users/{made.ok['user_id']}")).ok["user"]
    assert user["avatar_url"] == f"/user_avatars/1/drawn/{user['user_id']}-DA.png?version=1"
    assert opened(await fetched(org, user["avatar_url"])).size == (100, 100)
    medium = user["avatar_url"].replace(".png", "-medium.png")
    assert opened(await fetched(org, medium)).size == (500, 500)
    # Existing users keep theirs until they remove their own picture.
    assert (await user_json(org, "cleo"))["avatar_url"] is None
    assert (await upload(org["cleo"], picture())).ok
    answer = (await org["cleo"].delete("/users/me/avatar")).ok
    assert answer["avatar_url"].startswith("/user_avatars/1/drawn/")


async def test_a_generated_avatar_follows_the_name(org: Organization) -> None:
    await draw_by_default(org)
    dan = await org.add("dan")
    listener = await org["gus"].register()
    assert (await org["ann"].patch(f"/users/{dan.user_id}", full_name="Zoe")).ok
    named, drawn = await listener.events()
    assert named["person"]["full_name"] == "Zoe"
    assert drawn["person"]["avatar_url"] == (await user_json(org, "dan"))["avatar_url"]
    assert "-Z.png" in drawn["person"]["avatar_url"]
    assert drawn["person"]["avatar_source"] == "J"


@rows(
    ("name", "letters"),
    [
        ("Ann", "A"),
        ("ann de la cruz", "AC"),
        ("Élodie Ångström", "EA"),
        ("Bot 9000", "B9"),
        ("李小龙", ""),
        ("Ann Ж", ""),
        ("!x", ""),
    ],
)
def test_initials_come_from_the_first_and_last_name(name: str, letters: str) -> None:
    assert initials(name) == letters


@rows(
    ("path", "status"),
    [
        ("7-AB.png", 200),
        ("7.png", 200),
        ("7-medium.png", 200),
        ("7-A-medium.png", 200),
        ("7-ab.png", 404),
        ("7-ABC.png", 404),
        ("x.png", 404),
        ("99999999999999999999.png", 404),
        ("7-%3Cb%3E.png", 404),
    ],
)
async def test_only_valid_avatars_are_generated(
    readonly_org: Organization, path: str, status: int
) -> None:
    assert (await fetched(readonly_org, f"/user_avatars/1/drawn/{path}")).status_code == status


async def test_system_bots_have_avatars(readonly_org: Organization) -> None:
    bots = (await readonly_org["ben"].register()).data["cross_realm_bots"]
    assert len(bots) == 3
    for bot in bots:
        assert opened(await fetched(readonly_org, bot["avatar_url"])).size == (100, 100)


# Gravatar


async def test_clients_compute_the_default_avatar_if_they_can(org: Organization) -> None:
    path = f"/users/{org['ben'].user_id}"
    assert (await org["gus"].get(path)).ok["user"]["avatar_url"] is None
    url = (await org["gus"].get(path, client_gravatar=False)).ok["user"]["avatar_url"]
    assert url.startswith(GRAVATAR)
    assert (await org["ben"].patch("/settings", email_address_visibility=4)).ok
    shown = (await org["gus"].get(path)).ok["user"]["avatar_url"]
    assert shown.startswith("/user_avatars/1/drawn/")
    # An uploaded avatar is never computed.
    assert (await upload(org["ben"], picture())).ok
    assert (await org["ann"].get(path)).ok["user"]["avatar_url"].startswith("/user_avatars/")
    # A bot's address is visible to everyone.
    path = f"/users/{org['robo'].user_id}"
    assert (await org["gus"].get(path)).ok["user"]["avatar_url"] is None
    robo = await org["gus"].get(path, client_gravatar=False)
    assert robo.ok["user"]["avatar_url"].startswith(GRAVATAR)


async def test_a_hidden_address_is_not_in_an_avatar_s_name(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "gus")
    before = await org["ben"].send("lounge", "t", "with an address")
    queue = await org["gus"].register(client_gravatar=False)
    ann = await org["ann"].register(client_gravatar=False)
    assert (await org["ben"].patch("/settings", email_address_visibility=3)).ok
    ben = org["ben"].user_id
    assert (await org["ben"].send("lounge", "t", "without one")) > before
    events = await queue.events()
    assert (await org["ben"].patch("/settings", full_name="Uwe Zander")).ok
    events += await queue.events()
    digest = hashlib.sha256(b"ben@example.com").hexdigest()
    pictures = [e["person"]["avatar_url"] for e in events if "avatar_url" in e.get("person", {})]
    assert [url.split("?")[0] for url in pictures] == [
        f"/user_avatars/1/drawn/{ben}-B.png",
        f"/user_avatars/1/drawn/{ben}-UZ.png",
    ]
    page = {"anchor": "newest", "num_before": 9, "num_after": 0, "client_gravatar": False}
    answers = [
        await org["gus"].get("/messages", **page),
        await org["gus"].get("/users", client_gravatar=False),
        await org["gus"].get(f"/users/{ben}", client_gravatar=False),
        await org["gus"].post("/register", client_gravatar=False),
    ]
    shown = json.dumps([events, *(answer.ok for answer in answers)])
    assert digest not in shown
    assert "ben@example.com" not in shown
    for path in (f"/avatar/{ben}", f"/avatar/{ben}/medium", f"/avatar/user{ben}@chat.test"):
        for name, sees in (("gus", False), ("ann", True), ("ben", True)):
            response = await org[name].open(path)
            assert (digest in response.headers["location"]) is sees
    news = [e["person"] for e in await ann.events() if "avatar_url" in e.get("person", {})]
    assert all(digest in person["avatar_url"] for person in news)


# Redirects


@rows("name", ["{id}", "ben@example.com", "user{id}@chat.test"])
async def test_an_avatar_is_found_by_user_id_and_address(org: Organization, name: str) -> None:
    url = (await upload(org["ben"], picture())).ok["avatar_url"]
    ben, gus = org["ben"].user_id, org["gus"]
    auth = (gus.email, gus.api_key)
    path = f"/avatar/{name.format(id=ben)}"
    response = await org.http.get(path, auth=auth)
    assert (response.status_code, response.headers["location"]) == (302, url)
    response = await org.http.get(f"{path}/medium", auth=auth)
    assert response.headers["location"] == url.replace(".png", "-medium.png")
    # Clients that may not see the account are redirected to a neutral avatar.
    for other in (path, "/avatar/999", "/avatar/nobody@example.com"):
        response = await org.http.get(other)
        assert (response.status_code, response.headers["location"]) == (302, "/static/person.svg")


# Bots


async def test_a_bot_has_an_initial_avatar_and_a_later_one(org: Organization) -> None:
    ben = org["ben"]
    files = {"file": ("hal.png", picture())}
    made = await ben.raw(
        "POST", "/bots", data={"full_name": "Hal", "short_name": "hal"}, files=files
    )
    url, bot_id = made.ok["avatar_url"], made.ok["user_id"]
    assert opened(await fetched(org, url)).size == (100, 100)
    listener = await org["gus"].register()
    files = {"file": ("hal.png", picture(color="blue"))}
    changed = await ben.raw("PATCH", f"/bots/{bot_id}", files=files)
    other = changed.ok["avatar_url"]
    assert other != url
    assert (await fetched(org, url)).status_code == 404
    assert opened(await fetched(org, other)).size == (100, 100)
    (event,) = await listener.events()
    assert (event["person"]["user_id"], event["person"]["avatar_url"]) == (bot_id, other)
    assert (await ben.get("/bots")).ok["bots"][-1]["avatar_url"] == other


async def test_a_refused_bot_leaves_no_avatar_behind(org: Organization) -> None:
    for data in ({"full_name": "Ben", "short_name": "@"}, {"full_name": "x", "short_name": "x"}):
        files = {"file": ("hal.png", picture())}
        (await org["ben"].raw("POST", "/bots", data=data, files=files)).refused()
    root = org.node.disk.root
    assert not root.exists() or not [path for path in root.rglob("*") if path.is_file()]
