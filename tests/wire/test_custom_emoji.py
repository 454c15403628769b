"""Custom emoji."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tertulia.domain.organization import emoji as decided
from tertulia.model.changes import RealmChanged, UserChanged
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, Person, Reply, new_organization, open_organization, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")

SINGLE: dict[str, Any] = {"client_capabilities": {"individual_emoji_changes": True}}


def picture(kind: str = "PNG", size: tuple[int, int] = (200, 100), frames: int = 1) -> bytes:
    """An image as a file."""
    file = io.BytesIO()
    every = [Image.new("RGB", size, (40 * n, 0, 0)) for n in range(frames)]
    more: dict[str, Any] = {"save_all": True, "append_images": every[1:]} if frames > 1 else {}
    every[0].save(file, kind, **more)
    return file.getvalue()


async def upload(who: Person, name: str, *files: bytes) -> Reply:
    sent = [(f"f{n}", (f"picture{n}", file, "image/png")) for n, file in enumerate(files)]
    return await who.raw("POST", f"/realm/emoji/{name}", files=sent)


async def added(org: Organization, name: str, file: bytes) -> dict[str, Any]:
    """Add an emoji with this image. Returns it as listed."""
    assert (await upload(org["ann"], name, file)).ok
    emoji = (await org["ann"].get("/realm/emoji")).ok["emoji"]
    return next(one for one in emoji.values() if one["name"] == name)


async def add_emoji(who: Person, name: str) -> None:
    """Add an emoji with an image."""
    assert (await upload(who, name, picture())).ok


async def test_a_new_emoji_is_listed_and_announced(org: Organization, config: Config) -> None:
    new, old = await org["ben"].register(**SINGLE), await org["ben"].register()
    other = await org["gus"].register(**SINGLE)
    await add_emoji(org["cleo"], "gopher")
    shown = (await org["ben"].get("/realm/emoji")).ok["emoji"]
    assert shown == {
        "1": {
            "id": "1",
            "name": "gopher",
            "source_url": shown["1"]["source_url"],
            "still_url": None,
            "deactivated": False,
            "author_id": org["cleo"].user_id,
        }
    }
    events = [(await queue.events())[0] for queue in (new, old, other)]
    for event in events:
        event.pop("id")
    assert events[0] == {"type": "realm_emoji", "op": "add", "emoji": shown["1"]}
    assert events[1] == {"type": "realm_emoji", "op": "update", "realm_emoji": shown}
    assert events[2] == events[0]
    assert (await org["ben"].register()).data["realm_emoji"] == shown
    async with open_organization(config) as later:
        assert (await later["ben"].get("/realm/emoji")).ok["emoji"] == shown


async def test_a_deactivated_emoji_is_still_listed(org: Organization) -> None:
    await add_emoji(org["ben"], "gopher")
    new, old = await org["ben"].register(**SINGLE), await org["ben"].register()
    assert (await org["ben"].delete("/realm/emoji/gopher")).ok
    shown = (await org["ben"].get("/realm/emoji")).ok["emoji"]
    assert shown["1"]["deactivated"] is True
    (one,), (all_,) = await new.events(), await old.events()
    assert (one["op"], one["emoji_id"], one["data"]) == ("update_one", "1", {"deactivated": True})
    assert (all_["op"], all_["realm_emoji"]) == ("update", shown)
    assert (await org["ann"].register()).data["realm_emoji"] == shown
    await add_emoji(org["cleo"], "gopher")
    shown = (await org["ben"].get("/realm/emoji")).ok["emoji"]
    assert [one["deactivated"] for one in shown.values()] == [True, False]


@rows(
    ("kind", "size"),
    [("PNG", (200, 100)), ("JPEG", (10, 300)), ("GIF", (64, 64)), ("WEBP", (1, 1))],
)
async def test_an_image_is_resized_to_64_pixels(
    org: Organization, kind: str, size: tuple[int, int]
) -> None:
    emoji = await added(org, f"from_{kind.lower()}", picture(kind, size))
    response = await org.http.get(emoji["source_url"])
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/png"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert Image.open(io.BytesIO(response.content)).size == (64, 64)
    tag = {"If-None-Match": response.headers["etag"]}
    assert (await org.http.get(emoji["source_url"], headers=tag)).status_code == 304


@rows("kind", ["GIF", "WEBP", "PNG"])
async def test_an_animated_emoji_has_a_still_image(org: Organization, kind: str) -> None:
    emoji = await added(org, f"from_{kind.lower()}", picture(kind, frames=3))
    moving = await org.http.get(emoji["source_url"])
    assert moving.headers["content-type"] == "image/gif"
    found: Any = Image.open(io.BytesIO(moving.content))
    assert (found.size, found.n_frames) == ((64, 64), 3)
    still: Any = Image.open(io.BytesIO((await org.http.get(emoji["still_url"])).content))
    assert (still.size, getattr(still, "n_frames", 1)) == ((64, 64), 1)


@rows(
    "path",
    [
        "/user_avatars/1/emoji/images/" + "0" * 32 + ".png",
        "/user_avatars/1/emoji/images/..",
        "/user_avatars/1/emoji/images/..%2f..%2fsecret",
        "/user_avatars/1/emoji/images/x.png",
        "/user_avatars/2/emoji/images/" + "0" * 32 + ".png",
    ],
)
async def test_nothing_else_is_served_next_to_the_images(
    sqlite_org: Organization, path: str
) -> None:
    assert (await sqlite_org.http.get(path)).status_code == 404


@rows(
    "content",
    [b"", b"no picture", b"\x89PNG\r\n\x1a\n broken", b"<svg xmlns='http://www.w3.org/2000/svg'/>"],
    ids=["empty", "text", "broken", "svg"],
)
async def test_a_file_that_is_no_image_is_refused(sqlite_org: Organization, content: bytes) -> None:
    (await upload(sqlite_org["ann"], "gopher", content)).refused("BAD_IMAGE")
    assert (await sqlite_org["ann"].get("/realm/emoji")).ok["emoji"] == {}


async def test_an_emoji_is_one_file_of_at_most_5_mib(sqlite_org: Organization) -> None:
    (await upload(sqlite_org["ann"], "gopher")).refused()
    (await sqlite_org["ann"].post("/realm/emoji/gopher")).refused()
    (await upload(sqlite_org["ann"], "gopher", picture(), picture())).refused()


async def test_an_image_has_at_most_5_mib(tmp_path: Path) -> None:
    """Even if the server accepts larger requests."""
    config = Config(
        data_dir=str(tmp_path / "data"), external_url="http://chat.test", max_body_mib=8
    )
    most = picture() + b"\0" * (5 * 1024 * 1024 - len(picture()))
    async with new_organization(config) as org:
        (await upload(org["ann"], "gopher", most + b"\0")).refused()
        assert (await upload(org["ann"], "gopher", most)).ok


@rows(
    "name",
    ["party_", "party-", "p%C3%A4rty", "a%09b", "%20", "a.b", "x" * 101, "-", "_", "zulip"],
)
async def test_an_invalid_name_is_refused(sqlite_org: Organization, name: str) -> None:
    (await upload(sqlite_org["ann"], name, picture())).refused()


async def test_a_name_with_a_null_byte_is_refused(sqlite_org: Organization) -> None:
    (await upload(sqlite_org["ann"], "a%00b", picture())).refused("REQUEST_VARIABLE_INVALID")


@rows("name", ["a", "0", "party-parrot_2", "_x", "-x", "x" * 100])
async def test_a_name_has_lower_case_letters_digits_and_two_signs(
    org: Organization, name: str
) -> None:
    await add_emoji(org["ann"], name)


async def test_spaces_become_underscores_and_letters_lowercase(org: Organization) -> None:
    await add_emoji(org["ann"], "%20Party%20Parrot")
    (await upload(org["ann"], "party_parrot", picture())).refused()
    (emoji,) = (await org["ann"].get("/realm/emoji")).ok["emoji"].values()
    assert emoji["name"] == "party_parrot"


async def test_a_name_is_used_once(org: Organization) -> None:
    await add_emoji(org["ann"], "gopher")
    (await upload(org["ann"], "gopher", picture())).refused()
    replies = await asyncio.gather(*(upload(org["ann"], "owl2", picture()) for _ in range(2)))
    assert sorted(reply.status for reply in replies) == [200, 400]
    emoji = (await org["ann"].get("/realm/emoji")).ok["emoji"]
    files = list((org.node.disk.root / "emoji").iterdir())
    assert len(files) == len(emoji) == 2


async def test_only_administrators_override_a_unicode_emoji(org: Organization) -> None:
    (await upload(org["ben"], "octopus", picture())).refused()
    await add_emoji(org["ann"], "octopus")
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    path = f"/messages/{sent}/reactions"
    assert (await org["ann"].post(path, emoji_name="octopus")).ok
    # A request with the Unicode code point means the original.
    assert (await org["ann"].post(path, emoji_name="octopus", emoji_code="1f419")).ok
    found = (await org["ann"].get(f"/messages/{sent}")).ok["message"]["reactions"]
    assert [one["reaction_type"] for one in found] == ["realm_emoji", "unicode_emoji"]


@rows(
    ("group", "who", "allowed"),
    [
        (SystemGroup.MEMBERS, "ben", True),
        (SystemGroup.MEMBERS, "robo", True),
        (SystemGroup.MEMBERS, "gus", False),
        (SystemGroup.EVERYONE, "gus", False),
        (SystemGroup.ADMINISTRATORS, "ben", False),
        (SystemGroup.ADMINISTRATORS, "ann", True),
        (SystemGroup.NOBODY, "ann", False),
    ],
)
async def test_the_organization_decides_who_can_add_emoji(
    org: Organization, group: SystemGroup, who: str, allowed: bool
) -> None:
    await org.do(RealmChanged(values={"can_add_custom_emoji_group": group.value}))
    reply = await upload(org[who], f"{who}_{group.name.lower()}", picture())
    assert reply.status == (200 if allowed else 400)
    (await org.nobody.post("/realm/emoji/gopher")).refused("UNAUTHORIZED", 401)


async def test_members_and_their_bots_have_a_limit_and_administrators_do_not(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decided, "MAX_OF_PERSON", 2)
    await org.add("helper", owner="ben")
    await add_emoji(org["ben"], "gopher_one")
    (await org["ben"].delete("/realm/emoji/gopher_one")).ok
    await add_emoji(org["helper"], "gopher_two")
    for who in ("ben", "helper"):
        refused = (await upload(org[who], "gopher_three", picture())).refused()
        assert refused["msg"].startswith("One person can add at most 2 emoji")
    await add_emoji(org["cleo"], "gopher_three")
    for name in ("gopher_four", "gopher_five", "gopher_six"):
        await add_emoji(org["ann"], name)


async def test_the_author_and_administrators_deactivate_an_emoji(org: Organization) -> None:
    cleo = org["cleo"].user_id
    await org.do(UserChanged(user_id=cleo, values={"role": Role.MODERATOR}, was={"role": 400}))
    for name, who in (("gopher", "ben"), ("gopher2", "ann")):
        await add_emoji(org["ben"], name)
        (await org["cleo"].delete(f"/realm/emoji/{name}")).refused()
        assert (await org[who].delete(f"/realm/emoji/{name}")).ok


async def test_an_unknown_emoji_is_not_found(org: Organization) -> None:
    await add_emoji(org["ann"], "gopher")
    assert (await org["ann"].delete("/realm/emoji/gopher")).ok
    for name in ("gopher", "octopus", "none", "x" * 500):
        for who in ("ann", "gus"):
            (await org[who].delete(f"/realm/emoji/{name}")).refused("BAD_REQUEST", 404)
