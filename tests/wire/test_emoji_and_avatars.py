"""Emoji data and avatars, which clients fetch outside of the API."""

import re
from xml.etree import ElementTree

import httpx

from tertulia.model.changes import RealmChanged
from tertulia.model.emoji import code_of, codes_by_name, has_name, names_by_code, text_of
from tertulia.model.groups import SystemGroup
from tests.support import Organization, Person, rows


async def fetched(org: Organization, path: str, who: Person | None = None) -> httpx.Response:
    auth = (who.email, who.api_key) if who else None
    return await org.http.get(path, auth=auth)


async def test_the_emoji_data_is_at_the_address_in_register(readonly_org: Organization) -> None:
    address = (await readonly_org["ben"].register()).data["server_emoji_data_url"]
    response = await fetched(readonly_org, address)
    assert response.headers["content-type"] == "application/json"
    names = response.json()["code_to_names"]
    assert "+1" in names["1f44d"]
    assert "octopus" in names["1f419"]
    assert all(names.values())


async def test_avatars_are_at_the_addresses_in_register(readonly_org: Organization) -> None:
    data = (await readonly_org["ben"].register()).data
    assert (await fetched(readonly_org, data["realm_icon_url"])).content.startswith(b"\x89PNG")
    for name in ("realm_logo_url", "realm_night_logo_url"):
        response = await fetched(readonly_org, data[name])
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("image/svg+xml")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert ElementTree.fromstring(response.text).tag.endswith("svg")


@rows("path", ["/static/emoji.json", "/static/icon.svg", "/static/person.svg"])
async def test_cached_files_are_not_sent_again(readonly_org: Organization, path: str) -> None:
    first = await fetched(readonly_org, path)
    assert "max-age" in first.headers["cache-control"]
    tag = first.headers["etag"]
    for known, status in ((tag, 304), (f"W/{tag}", 304), (f'"other", {tag}', 304), ('"x"', 200)):
        again = await readonly_org.http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, bool(again.content)) == (status, status == 200)


@rows(
    ("text", "code"),
    [("🐙", "1f419"), ("❤️", "2764"), ("#️⃣", "0023-20e3"), ("🇪🇸", "1f1ea-1f1f8")],
)
def test_an_emoji_has_its_code_points_as_code(text: str, code: str) -> None:
    assert code_of(text) == code
    assert text_of(code) == text.replace("\ufe0f", "")
    assert code in names_by_code()


@rows(
    ("code", "name"),
    [
        ("1f44d", "+1"),
        ("1f389", "tada"),
        ("1f642", "smile"),
        ("2764", "heart"),
        ("1f6e0", "working_on_it"),
        ("1f419", "octopus"),
    ],
)
def test_common_emoji_have_their_usual_names(code: str, name: str) -> None:
    assert names_by_code()[code][0] == name
    assert codes_by_name()[name] == code


@rows(
    ("name", "code"),
    [("x", "274e"), ("train", "1f682"), ("date", "1f4c6"), ("email", "2709"), ("football", "26bd")],
)
def test_a_name_means_the_emoji_that_clients_know_by_it(name: str, code: str) -> None:
    assert codes_by_name()[name] == code


@rows(
    ("code", "name"),
    [
        ("1f3cf", "cricket"),
        ("1f3cf", "cricket_bat"),
        ("1f4c3", "receipt"),
        ("1f52c", "scientist"),
        ("1f617", "kiss"),
        ("1f41e", "beetle"),
        ("3299", "secret"),
    ],
)
def test_older_clients_use_an_emoji_s_code_and_former_name(code: str, name: str) -> None:
    """Everything in zulip-terminal's list whose name belongs to another emoji by now."""
    assert codes_by_name().get(name) != code
    assert has_name(code, name)
    assert not has_name(codes_by_name()["octopus"], name)


def test_codes_and_names_are_as_clients_expect() -> None:
    assert all(re.fullmatch(r"[0-9a-f]{4,}(-[0-9a-f]{4,})*", code) for code in names_by_code())
    assert all(re.fullmatch(r"[\w+-]+", name) and name == name.lower() for name in codes_by_name())
    assert len(names_by_code()) > 1500


def test_no_two_emoji_share_a_name() -> None:
    names = [name for names in names_by_code().values() for name in names]
    assert len(names) == len(set(names)) == len(codes_by_name())
    assert names_by_code()[codes_by_name()["turkey"]][0] == "turkey"


async def test_an_avatar_is_at_its_account(readonly_org: Organization) -> None:
    path = f"/avatar/{readonly_org['ben'].user_id}"
    data = (await readonly_org["ben"].register(client_gravatar=False)).data
    for address, name in ((path, "avatar_url"), (f"{path}/medium", "avatar_url_medium")):
        response = await fetched(readonly_org, address, readonly_org["ann"])
        assert (response.status_code, response.headers["location"]) == (302, data[name])


async def test_a_hidden_account_has_a_neutral_avatar(org: Organization) -> None:
    ben = f"/avatar/{org['ben'].user_id}"
    limited = {"can_access_all_users_group": SystemGroup.MEMBERS.value}
    await org.do(RealmChanged(values=limited))
    stranger = Person(org.http, 0, "gus@example.com", "x" * 32)
    nobody = (await fetched(org, "/avatar/4242", org["ann"])).headers["location"]
    for who in (org["gus"], stranger, None):
        response = await fetched(org, ben, who)
        assert (response.status_code, response.headers["location"]) == (302, nobody)
    assert (await fetched(org, nobody)).status_code == 200
