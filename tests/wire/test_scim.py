"""SCIM 2 with the requests of Entra and Okta."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.app.config import ConfigError, load
from tertulia.app.sign_in_tables import methods_from
from tertulia.domain.accounts import identities
from tertulia.model.identities import ProvenIdentity
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.wire.scim import groups as scim_groups
from tests.support import Newcomer, Organization, new_organization

pytestmark = pytest.mark.usefixtures("no_logged_errors")

TOKEN = "t0ken-" * 6
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"

ENTRA_USER = {
    "schemas": [USER, ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "June.Park@corp.onmicrosoft.com",
    "active": True,
    "displayName": "June Park",
    "emails": [{"primary": True, "type": "work", "value": "june@example.com"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "June Park", "familyName": "Park", "givenName": "June"},
    "title": "Baker",
    "roles": [],
    ENTERPRISE: {"department": "Kitchen"},
}
OKTA_USER = {
    "schemas": [USER],
    "userName": "kai@example.com",
    "name": {"givenName": "Kai", "familyName": "Lund"},
    "emails": [{"primary": True, "value": "kai@example.com", "type": "work"}],
    "displayName": "Kai Lund",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "active": True,
}


@dataclass(frozen=True)
class Directory:
    """The company's directory, which changes the organization `org`."""

    org: Organization

    async def ask(
        self, method: str, path: str, body: Any = None, token: str = TOKEN
    ) -> httpx.Response:
        return await self.org.http.request(
            method,
            f"/scim/v2{path}",
            content=b"" if body is None else msgspec.json.encode(body),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/scim+json; charset=utf-8",
            },
        )

    async def get(self, path: str) -> Any:
        response = await self.ask("GET", path)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/scim+json"
        return response.json()

    async def post(self, path: str, body: Any) -> Any:
        response = await self.ask("POST", path, body)
        assert response.status_code == 201, response.text
        assert response.headers["location"] == response.json()["meta"]["location"]
        return response.json()

    async def patch(self, path: str, *operations: Any) -> Any:
        response = await self.ask("PATCH", path, {"schemas": [PATCH], "Operations": operations})
        assert response.status_code in {200, 204}, response.text
        return response.json() if response.content else None

    async def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str | None]:
        """Return the status and the `scimType` of an error."""
        response = await self.ask(method, path, body)
        content = response.json()
        assert content["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert content["status"] == str(response.status_code)
        assert content["detail"]
        return response.status_code, content.get("scimType")


@pytest.fixture
async def directory(config: Config) -> AsyncIterator[Directory]:
    settings = msgspec.structs.replace(config, scim_token=TOKEN)
    async with new_organization(settings, others=(Newcomer("ben"), Newcomer("cleo"))) as org:
        yield Directory(org)


# People


async def test_entra_creates_changes_and_deactivates_a_person(directory: Directory) -> None:
    org = directory.org
    query = '/Users?filter=userName eq "June.Park@corp.onmicrosoft.com"'
    assert (await directory.get(query))["totalResults"] == 0
    made = await directory.post("/Users", ENTRA_USER)
    user = org.node.state.users[int(made["id"])]
    assert (user.full_name, user.address, user.role) == (
        "June Park",
        "june@example.com",
        Role.MEMBER,
    )
    assert user.awaits_arrival
    assert made["externalId"] == ENTRA_USER["externalId"]
    assert made["userName"] == "june.park@corp.onmicrosoft.com"
    (found,) = (await directory.get(query))["Resources"]
    assert found == made
    path = f"/Users/{made['id']}"
    changed = await directory.patch(
        path,
        {"op": "Replace", "path": "displayName", "value": "June Brown"},
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "jb@example.com"},
        {"op": "Add", "path": "title", "value": "Head baker"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Bar"},
    )
    assert (changed["displayName"], changed["emails"][0]["value"]) == (
        "June Brown",
        "jb@example.com",
    )
    assert changed["userName"] == "june.park@corp.onmicrosoft.com"
    changed = await directory.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    assert changed["active"] is False
    assert not org.node.state.users[user.id].is_active
    changed = await directory.patch(path, {"op": "Replace", "path": "active", "value": "True"})
    assert org.node.state.users[user.id].is_active
    assert (await directory.ask("DELETE", path)).status_code == 204
    assert not org.node.state.users[user.id].is_active
    assert (await directory.ask("DELETE", path)).status_code == 204


async def test_okta_creates_changes_and_deactivates_a_person(directory: Directory) -> None:
    org = directory.org
    query = "/Users?filter=userName%20eq%20%22kai%40example.com%22&startIndex=1&count=100"
    assert (await directory.get(query))["Resources"] == []
    made = await directory.post("/Users", OKTA_USER)
    user_id = int(made["id"])
    assert (made["userName"], made["externalId"]) == ("kai@example.com", OKTA_USER["externalId"])
    (found,) = (await directory.get(query))["Resources"]
    assert found == made
    renamed = {**OKTA_USER, "displayName": "Kai Berg", "userName": "kai.berg@example.com"}
    renamed["emails"] = [{"primary": True, "value": "kai.berg@example.com", "type": "work"}]
    response = await directory.ask("PUT", f"/Users/{user_id}", renamed)
    assert response.status_code == 200
    user = org.node.state.users[user_id]
    assert (user.full_name, user.address) == ("Kai Berg", "kai.berg@example.com")
    changed = await directory.patch(
        f"/Users/{user_id}", {"op": "replace", "value": {"active": False}}
    )
    assert changed["active"] is False
    assert not org.node.state.users[user_id].is_active


async def test_okta_s_requests_about_a_person(directory: Directory) -> None:
    tested = await directory.get("/Users?startIndex=1&count=1")
    assert (tested["totalResults"], tested["itemsPerPage"]) == (3, 1)
    made = await directory.post("/Users", {**OKTA_USER, "password": "s3cret-0kta"})
    path = f"/Users/{made['id']}"

    async def put(**changed: Any) -> Any:
        whole = {**OKTA_USER, "id": made["id"], "meta": made["meta"], "middleName": None}
        response = await directory.ask("PUT", path, {**whole, **changed})
        assert response.status_code == 200, response.text
        return response.json()

    assert (await put(active=False))["active"] is False
    # Changes while the account is deactivated.
    changed = await put(active=False, displayName="Kai Berg")
    assert (changed["displayName"], changed["active"]) == ("Kai Berg", False)
    changed = await put(displayName="Kai Berg")
    assert (changed["displayName"], changed["active"]) == ("Kai Berg", True)
    await directory.patch(path, {"op": "replace", "value": {"active": False}})
    changed = await directory.patch(path, {"op": "replace", "value": {"active": True}})
    assert (changed["id"], changed["active"]) == (made["id"], True)
    assert directory.org.node.state.credentials[int(made["id"])].password_hash is None


async def test_entra_s_requests_about_a_person(directory: Directory) -> None:
    nobody = "/Users?filter=userName+eq+%22a1b2c3d4-0000-4000-8000-000000000000%22"
    assert (await directory.get(nobody))["totalResults"] == 0  # "Test connection"
    made = await directory.post("/Users?aadOptscim062020", ENTRA_USER)
    path = f"/Users/{made['id']}"
    for condition in (
        f'externalId eq "{ENTRA_USER["externalId"]}"',
        'emails[type eq "work"].value eq "june@example.com"',
        'userName eq "JUNE.PARK@CORP.onmicrosoft.com"',
    ):
        assert (await directory.get(f"/Users?filter={condition}"))["Resources"] == [made]
    changed = await directory.patch(
        path,
        {"op": "Replace", "path": "name.formatted", "value": "June Brown"},
        {"op": "Add", "path": "nickName", "value": "Juni"},
        {"op": "Add", "path": f"{ENTERPRISE}:manager", "value": "1"},
        {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "+1 555 0100"},
        {"op": "Add", "path": 'addresses[type eq "work"].formatted', "value": "1 Main St"},
        {"op": "Add", "path": 'roles[primary eq "True"].value', "value": "Baker"},
    )
    assert changed["displayName"] == "June Brown"
    await directory.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    # A person who was removed is changed before the account is enabled again.
    changed = await directory.patch(
        path,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "jb@example.com"},
        {"op": "Replace", "value": {"displayName": "June B.", "active": "True"}},
    )
    assert changed["emails"][0]["value"] == "jb@example.com"
    assert (changed["displayName"], changed["active"]) == ("June B.", True)


async def test_what_entra_and_okta_push_about_groups(directory: Directory) -> None:
    ben, cleo = (str(directory.org[name].user_id) for name in ("ben", "cleo"))
    listed = await directory.get("/Groups?startIndex=1&count=100")
    assert (listed["totalResults"], listed["Resources"]) == (0, [])
    extension = "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"
    made = await directory.post(
        "/Groups",
        {
            "schemas": [GROUP, extension],
            "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
            "displayName": "Bar staff",
            "meta": {"resourceType": "Group"},
        },
    )
    path = f"/Groups/{made['id']}"

    async def members() -> set[str]:
        return {one["value"] for one in (await directory.get(path))["members"]}

    entra = [{"$ref": None, "value": one} for one in (ben, cleo)]
    await directory.patch(path, {"op": "Add", "path": "members", "value": entra})
    assert await members() == {ben, cleo}
    await directory.patch(path, {"op": "Remove", "path": "members", "value": entra[:1]})
    assert await members() == {cleo}
    await directory.patch(path, {"op": "Remove", "path": f'members[value eq "{cleo}"]'})
    assert await members() == set()
    okta = {"schemas": [GROUP], "id": made["id"], "displayName": "Bar"}
    people = [{"value": ben, "display": "ben@example.com"}]
    response = await directory.ask("PUT", path, {**okta, "members": people})
    assert (response.status_code, response.json()["displayName"]) == (200, "Bar")
    assert await members() == {ben}
    query = '/Groups?filter=displayName eq "Bar"&startIndex=1&count=100'
    assert [one["id"] for one in (await directory.get(query))["Resources"]] == [made["id"]]


async def test_entra_sends_paths_as_names_of_values(directory: Directory) -> None:
    made = await directory.post("/Users", ENTRA_USER)
    values = {"name.givenName": "Juni", 'emails[type eq "work"].value': "juni@example.com"}
    changed = await directory.patch(f"/Users/{made['id']}", {"op": "Add", "value": values})
    assert changed["name"] == {
        "formatted": "Juni Park",
        "givenName": "Juni",
        "familyName": "Park",
    }
    assert changed["emails"][0]["value"] == "juni@example.com"


async def test_deactivation_ends_sessions_and_keys(directory: Directory) -> None:
    ben = directory.org["ben"]
    assert (await ben.get("/users/me")).status == 200
    (found,) = (await directory.get('/Users?filter=userName eq "ben@example.com"'))["Resources"]
    await directory.patch(
        f"/Users/{found['id']}", {"op": "replace", "path": "active", "value": False}
    )
    (await ben.get("/users/me")).refused("USER_DEACTIVATED", 401)


async def test_a_person_who_returns_gets_the_account_back(directory: Directory) -> None:
    made = await directory.post("/Users", OKTA_USER)
    assert await directory.refused("POST", "/Users", OKTA_USER) == (409, "uniqueness")
    await directory.ask("DELETE", f"/Users/{made['id']}")
    again = await directory.post("/Users", {**OKTA_USER, "externalId": "00u-new"})
    assert (again["id"], again["active"], again["externalId"]) == (made["id"], True, "00u-new")


async def test_an_id_belongs_to_one_account(directory: Directory) -> None:
    await directory.post("/Users", OKTA_USER)
    other = {**OKTA_USER, "userName": "lou@example.com", "emails": [], "displayName": "Lou"}
    assert await directory.refused("POST", "/Users", other) == (409, "uniqueness")
    made = await directory.post("/Users", {**other, "externalId": "00u-lou"})
    taken = {"schemas": [PATCH], "Operations": [
        {"op": "replace", "value": {"externalId": OKTA_USER["externalId"]}}
    ]}  # fmt: skip
    assert await directory.refused("PATCH", f"/Users/{made['id']}", taken) == (409, "uniqueness")


async def test_people_are_recognized_by_their_id_when_they_sign_in(
    config: Config,
) -> None:
    (okta,) = methods_from(
        [{"name": "okta", "kind": "oidc", "issuer": "https://okta.example", "client_id": "t"}]
    )
    settings = msgspec.structs.replace(
        config, scim_token=TOKEN, scim_method="okta", sign_in=(okta,)
    )
    async with new_organization(settings) as org:
        directory = Directory(org)
        created = await directory.post("/Users", OKTA_USER)
        assert created["externalId"] == OKTA_USER["externalId"]
        query = f'/Users?filter=externalId eq "{OKTA_USER["externalId"]}"'
        assert (await directory.get(query))["totalResults"] == 1
        proven = ProvenIdentity(
            method="okta",
            subject=f"https://okta.example {OKTA_USER['externalId']}",
            address="renamed@example.com",
            is_address_verified=True,
        )
        node = org.node
        user = await node.log.submit(
            None,
            identities.recognize,
            proven,
            okta.rules,
            await node.vault.credential(0, None),
            "",
            node.renderer.render,
        )
        assert str(user.id) == created["id"]


def test_scim_method_must_be_configured() -> None:
    with pytest.raises(ConfigError, match="scim_method: sign_in has no method with the name 'ok'"):
        load({}, environment={"TERTULIA_SCIM_METHOD": "ok"})


async def test_the_last_owner_is_never_deactivated(directory: Directory) -> None:
    ann = directory.org["ann"]
    path = f"/Users/{ann.user_id}"
    off = {"Operations": [{"op": "replace", "path": "active", "value": False}]}
    assert await directory.refused("PATCH", path, off) == (403, None)
    assert await directory.refused("DELETE", path) == (403, None)
    body = {"userName": "ann@example.com", "active": False}
    assert await directory.refused("PUT", path, body) == (403, None)
    assert directory.org.node.state.users[ann.user_id].is_active


async def test_an_invited_person_gets_what_the_invitation_gives(directory: Directory) -> None:
    org = directory.org
    channel_id = await org.channel("bar", "ann")
    await org["ann"].post(
        "/invites", invitee_emails="kai@example.com", stream_ids=[channel_id], invite_as=300
    )
    made = await directory.post("/Users", OKTA_USER)
    user = org.node.state.users[int(made["id"])]
    assert user.role is Role.MODERATOR
    assert channel_id in org.node.state.channel_ids_of(user.id)


async def test_everybody_is_listed_in_pages(directory: Directory) -> None:
    made = await directory.post("/Users", OKTA_USER)
    whole = await directory.get("/Users")
    names = [one["userName"] for one in whole["Resources"]]
    assert names == [f"{one}@example.com" for one in ("ann", "ben", "cleo", "kai")]
    page = await directory.get("/Users?startIndex=4&count=2")
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (4, 4, 1)
    assert page["Resources"] == [made]
    assert (await directory.get("/Users?count=0"))["Resources"] == []
    assert (await directory.get("/Users?startIndex=-5&count=999999"))["itemsPerPage"] == 4
    (found,) = (await directory.get('/Users?filter=externalId eq "00ujl29u0le5T6Aj10h7"'))[
        "Resources"
    ]
    assert found == made


async def test_a_page_costs_the_same_with_many_people(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = directory.org.node.state.users
    read = list[Any]()
    original = type(people).__getitem__

    def counting(table: Any, key: Any) -> Any:
        read.append(key)
        return original(table, key)

    monkeypatch.setattr(type(people), "__iter__", None)
    monkeypatch.setattr(type(people), "__getitem__", counting)
    page = await directory.get("/Users?startIndex=2&count=1")
    assert (page["totalResults"], page["Resources"][0]["userName"]) == (3, "ben@example.com")
    assert len(read) < 10


async def test_what_a_directory_removes_is_gone(directory: Directory) -> None:
    made = await directory.post("/Users", ENTRA_USER)
    path = f"/Users/{made['id']}"
    # Attributes that Tertulia doesn't have, and emails that the account doesn't have.
    for gone in ("title", f"{ENTERPRISE}:department", 'emails[type eq "home"].value'):
        assert await directory.patch(path, {"op": "Remove", "path": gone}) == made
    changed = await directory.patch(
        path,
        {"op": "remove", "path": "externalId"},
        {"op": "remove", "path": "name.givenName"},
        {"op": "Remove", "path": 'emails[type eq "work"].value'},
    )
    assert "externalId" not in changed
    assert changed["displayName"] == "Park"
    # The name in the directory is also an address.
    assert changed["emails"][0]["value"] == "june.park@corp.onmicrosoft.com"
    assert (await directory.get(f'/Users?filter=externalId eq "{made["externalId"]}"'))[
        "totalResults"
    ] == 0
    again = {"op": "add", "value": {"externalId": "another", "emails": made["emails"]}}
    changed = await directory.patch(path, {"op": "remove", "path": "emails"}, again)
    assert (changed["externalId"], changed["emails"]) == ("another", made["emails"])
    assert changed["userName"] == "june.park@corp.onmicrosoft.com"


async def test_what_every_account_has_cannot_be_removed(directory: Directory) -> None:
    made = await directory.post("/Users", {**ENTRA_USER, "userName": "june"})
    path = f"/Users/{made['id']}"
    emails: list[dict[str, Any]] = [
        {"path": "emails"},
        {"path": 'emails[value eq "JUNE@example.com"]'},
        {"path": "emails", "value": [{"value": "june@example.com"}]},
        {"path": "emails[primary eq true]"},
    ]
    for one in (*emails, *({"path": name} for name in ("userName", "displayName", "active"))):
        body = {"schemas": [PATCH], "Operations": [{"op": "remove", **one}]}
        assert await directory.refused("PATCH", path, body) == (400, "mutability")
    names = [{"op": "remove", "path": f"name.{one}"} for one in ("givenName", "familyName")]
    assert await directory.refused("PATCH", path, {"Operations": names}) == (400, "mutability")
    assert await directory.get(path) == made


# Groups


async def test_members_that_do_not_exist_are_gone_already(directory: Directory) -> None:
    ben, cleo = (str(directory.org[name].user_id) for name in ("ben", "cleo"))
    members = [{"value": ben}, {"value": cleo}]
    made = await directory.post("/Groups", {"displayName": "Baristas", "members": members})
    path = f"/Groups/{made['id']}"
    await directory.patch(
        path,
        {"op": "remove", "path": 'members[value eq "987654321"]'},
        {"op": "remove", "path": "members", "value": [{"value": "gone"}, {"value": ben}]},
    )
    assert [one["value"] for one in (await directory.get(path))["members"]] == [cleo]
    for one, wrong in (
        ({"op": "remove", "path": 'members[display eq "Cleo"]'}, "invalidPath"),
        ({"op": "remove", "path": "displayName"}, "mutability"),
        ({"op": "add", "path": "members", "value": [{"value": "987654321"}]}, "invalidValue"),
    ):
        assert await directory.refused("PATCH", path, {"Operations": [one]}) == (400, wrong)
    await directory.patch(path, {"op": "remove", "path": "members"})
    assert (await directory.get(path))["members"] == []


async def test_groups_are_user_groups(directory: Directory) -> None:
    org = directory.org
    ann, ben, cleo = (str(org[name].user_id) for name in ("ann", "ben", "cleo"))
    made = await directory.post(
        "/Groups",
        {"schemas": [GROUP], "displayName": "Baristas", "members": [{"value": ben}]},
    )
    group_id = int(made["id"])
    assert [one["value"] for one in made["members"]] == [ben]
    query = '/Groups?excludedAttributes=members&filter=displayName eq "baristas"'
    (found,) = (await directory.get(query))["Resources"]
    assert (found["id"], "members" in found) == (made["id"], False)
    path = f"/Groups/{group_id}"
    listener = await org["cleo"].register(event_types=["user_group", "message"])
    # Entra
    await directory.patch(
        path, {"op": "Add", "path": "members", "value": [{"value": cleo}, {"value": ben}]}
    )
    await directory.patch(path, {"op": "Remove", "path": "members", "value": [{"value": ben}]})
    # Okta
    await directory.patch(
        path,
        {"op": "remove", "path": f'members[value eq "{cleo}"]'},
        {"op": "add", "path": "members", "value": [{"value": ann, "display": "Ann"}]},
        {"op": "replace", "value": {"id": made["id"], "displayName": "Bar staff"}},
    )
    group = org.node.state.groups[group_id]
    assert (group.name, group.members) == ("Bar staff", (org["ann"].user_id,))
    events = await listener.events()
    assert {one["type"] for one in events} == {"user_group"}, "nobody gets a message"
    response = await directory.ask("PUT", path, {"displayName": "Bar staff", "members": []})
    assert response.json()["members"] == []
    is_in = f'/Groups?filter=id eq "{group_id}" and members eq "{ben}"'
    assert (await directory.get(is_in))["totalResults"] == 0
    await directory.patch(path, {"op": "replace", "path": "members", "value": [{"value": ben}]})
    assert (await directory.get(is_in))["totalResults"] == 1
    assert (await directory.ask("DELETE", path)).status_code == 204
    assert await directory.refused("GET", path) == (404, None)
    assert org.node.state.groups[group_id].deactivated
    again = await directory.post("/Groups", {"displayName": "Bar staff", "members": []})
    assert (again["id"], again["members"]) == (made["id"], [])


async def test_system_groups_are_not_the_directory_s(directory: Directory) -> None:
    assert (await directory.get("/Groups"))["Resources"] == []
    assert await directory.refused("GET", "/Groups/1") == (404, None)
    taken = {"displayName": "role:administrators"}
    assert await directory.refused("POST", "/Groups", taken) == (409, "uniqueness")


async def test_pages_of_groups_are_bounded_by_their_members(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [{"value": str(directory.org[name].user_id)} for name in ("ann", "ben")]
    for name in ("One", "Two", "Three"):
        await directory.post("/Groups", {"displayName": name, "members": ids})
    monkeypatch.setattr(scim_groups, "_MOST_MEMBERS", 4)
    page = await directory.get("/Groups")
    assert (page["totalResults"], page["itemsPerPage"]) == (3, 2)
    rest = await directory.get("/Groups?startIndex=3")
    assert [one["displayName"] for one in rest["Resources"]] == ["Three"]


# Requests that are refused


async def test_only_the_token_opens_it(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    for token in ("", "x" * 36, TOKEN[:-1], TOKEN + "x", "é" * 36):
        headers = {b"Authorization": f"Bearer {token}".encode()}
        response = await directory.org.http.get("/scim/v2/Users", headers=headers)
        assert response.status_code == 401, token
        assert response.headers["www-authenticate"] == 'Bearer realm="tertulia"'
        assert response.json()["status"] == "401"
    response = await directory.org.http.get("/scim/v2/Users", auth=("ann@example.com", TOKEN))
    assert response.status_code == 401
    caplog.set_level(logging.DEBUG)
    await directory.get("/Users")
    assert TOKEN not in caplog.text


async def test_it_does_not_exist_without_a_token(shared_org: Organization) -> None:
    assert (await shared_org.http.get("/scim/v2/Users")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "refused"),
    [
        ("GET", "/Things", None, (404, None)),
        ("GET", "/Users/x", None, (404, None)),
        ("GET", "/Users/99999999999999999999", None, (404, None)),
        ("GET", "/Users/1/2", None, (404, None)),
        ("DELETE", "/Users", None, (405, None)),
        ("GET", '/Users?filter=userName co "a"', None, (400, "invalidFilter")),
        ("GET", '/Users?filter=title eq "a"', None, (400, "invalidFilter")),
        ("GET", '/Users?filter=userName eq "a" or userName eq "b"', None, (400, "invalidFilter")),
        ("GET", '/Users?filter=userName eq "\\x"', None, (400, "invalidFilter")),
        ("GET", "/Users?count=ten", None, (400, "invalidValue")),
        ("POST", "/Users", {}, (400, "invalidValue")),
        ("POST", "/Users", {"userName": "nobody"}, (400, "invalidValue")),
        ("POST", "/Users", {"userName": ["a@example.com"]}, (400, "invalidValue")),
        ("POST", "/Users", {"userName": "a@example.com", "name": "A"}, (400, "invalidValue")),
        ("POST", "/Users", {"userName": "a@example.com", "active": 3}, (400, "invalidValue")),
        ("POST", "/Users", [], (400, "invalidSyntax")),
        ("POST", "/Groups", {"displayName": "A", "members": ["99"]}, (400, "invalidValue")),
        ("POST", "/Groups", {"displayName": "A", "members": [3]}, (400, "invalidValue")),
        ("PATCH", "/Users/{ben}", {}, (400, "invalidSyntax")),
        ("PATCH", "/Users/{ben}", {"Operations": [3]}, (400, "invalidSyntax")),
        ("PATCH", "/Users/{ben}", {"Operations": [{"op": "copy"}]}, (400, "invalidSyntax")),
        ("PATCH", "/Users/{ben}", {"Operations": [{"op": "add"}]}, (400, "noTarget")),
        (
            "PATCH",
            "/Users/{ben}",
            {"Operations": [{"op": "add", "path": "emails[", "value": "x"}]},
            (400, "invalidPath"),
        ),
        ("PATCH", "/Users/{ben}", {"Operations": [{"op": "add"}] * 1001}, (400, "invalidSyntax")),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_said_in_scim_s_form(
    directory: Directory, method: str, path: str, body: Any, refused: tuple[int, str | None]
) -> None:
    path = path.replace("{ben}", str(directory.org["ben"].user_id))
    assert await directory.refused(method, path, body) == refused


async def test_large_bodies_are_refused(directory: Directory) -> None:
    body = {"userName": "a@example.com", "title": "x" * 1_100_000}
    assert (await directory.refused("POST", "/Users", body))[0] == 413


async def test_what_is_supported_is_described(directory: Directory) -> None:
    described = await directory.get("/ServiceProviderConfig")
    assert (described["patch"], described["bulk"]["supported"]) == ({"supported": True}, False)
    types = await directory.get("/ResourceTypes")
    assert [one["endpoint"] for one in types["Resources"]] == ["/Users", "/Groups"]
    for one in types["Resources"]:
        schema = await directory.get(f"/Schemas/{one['schema']}")
        assert schema["name"] == one["name"]
    assert (await directory.get("/Schemas"))["totalResults"] == 2


async def test_requests_at_the_same_time_create_one_account(directory: Directory) -> None:
    """A directory repeats requests that took too long."""
    tries = await asyncio.gather(*(directory.ask("POST", "/Users", OKTA_USER) for _ in range(4)))
    assert sorted(one.status_code for one in tries) == [201, 409, 409, 409]


async def test_the_audit_log_says_that_the_directory_did_it(directory: Directory) -> None:
    made = await directory.post("/Users", ENTRA_USER)
    await directory.refused("GET", "/nowhere")
    assert (await directory.ask("GET", "/Users", token="wrong")).status_code == 401
    await directory.org.node.log.catch_up()
    log = (await directory.org["ann"].get("/audit_log")).ok["records"]
    failed, *others = [one for one in log if one["kind"] in {"sign_in_failed", "account_created"}]
    assert (failed["details"], failed["origin"]["way"]) == ({"method": "scim"}, "page")
    created = next(one for one in others if one["user_id"] == int(made["id"]))
    assert created["origin"]["way"] == "directory"
