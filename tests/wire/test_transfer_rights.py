"""Who may make, see, download, and delete exports, imports, and their reports, and read the public
archive: every role at every route."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tertulia.domain.accounts import data_exports
from tertulia.jobs import exports as jobs
from tertulia.model.changes import DataExportSet
from tertulia.model.exports import DataExport, ExportKind
from tertulia.model.imports import DataImport, DataImportSet, ImportKind, ImportState
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.store.files import EXPORTS
from tertulia.wire.api.routes import ROUTES
from tests.support import Organization, Person, new_organization, row, until
from tests.wire.personal_data import OTHERS
from tests.wire.test_tus import PIECE, ask, metadata

pytestmark = pytest.mark.anyio

FILE: Final = b"everyone's messages"
NAME: Final = "0" * 40
"""The name of the organization's export."""
OWN, REALM, IMPORT, MISSING = 1, 2, 1, 99
"""IDs of the owner's own export, the organization's, an import, and what doesn't exist."""
ANYONE: Final = frozenset(
    {"owner", "administrator", "moderator", "member", "guest", "bot", "bot with a role"}
)
ADMINISTRATORS: Final = frozenset({"owner", "administrator", "bot with a role"})
OWNERS: Final = frozenset({"owner"})
NO_ACCESS: Final = {
    "full key": "ACCESS_KEY_INSUFFICIENT",
    "reading key": "ACCESS_KEY_INSUFFICIENT",
    "sending key": "ACCESS_KEY_INSUFFICIENT",
    "deactivated owner": "USER_DEACTIVATED",
    "erased owner": "INVALID_API_KEY",
    "owner elsewhere": "INVALID_API_KEY",
    "visitor": "UNAUTHORIZED",
}
"""Callers whose credentials don't open any of it, with the error's code."""
ROUTES_OF: Final[Sequence[tuple[str, str, dict[str, str], frozenset[str]]]] = (
    ("GET", "/export/realm", {}, ADMINISTRATORS),
    ("POST", "/export/realm", {"export_type": "full_without_consent"}, ADMINISTRATORS),
    ("DELETE", "/export/realm/{export_id:int}", {}, ADMINISTRATORS),
    ("GET", "/export/realm/consents", {}, ADMINISTRATORS),
    ("GET", "/imports", {}, OWNERS),
    ("POST", "/imports", {"upload": "0" * 32, "kind": "zulip"}, OWNERS),
    ("POST", "/imports/{import_id:int}/start", {}, OWNERS),
    ("POST", "/imports/{import_id:int}/invite", {}, OWNERS),
    ("DELETE", "/imports/{import_id:int}", {}, OWNERS),
    ("GET", "/users/me/data_exports", {}, ANYONE),
    ("GET", "/users/me/data_exports/{export_id:int}", {}, ANYONE),
    ("DELETE", "/users/me/data_exports/{export_id:int}", {}, ANYONE),
)
"""Routes, parameters that change nothing, and the callers whose right suffices."""
OTHER_ROUTES: Final = {
    ("POST", "/users/me/data_export"): "tests/wire/test_data_exports.py: it's for oneself",
    ("GET", "/audit_log/export"): "tests/wire/test_audit_log.py",
}


@pytest.fixture
async def org(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Organization]:
    """An organization whose owner has an export of each kind and an import."""
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())
    async with new_organization(config, others=OTHERS) as org:
        await org.change_realm(enable_spectator_access=True)
        ann, path = org["ann"], f"{EXPORTS}/{NAME}"
        await org.node.files.put(path, FILE)
        export = DataExport(
            id=REALM,
            user_id=ann.user_id,
            kind=ExportKind.CONSENT,
            requested_at=1,
            finished_at=int(org.node.clock()),
            path=path,
            size=len(FILE),
        )
        await org.node.files.put(f"{path}1", FILE)
        own = replace(export, id=OWN, kind=ExportKind.PERSON, path=f"{path}1")
        imported = DataImport(
            id=IMPORT,
            started_by=ann.user_id,
            kind=ImportKind.ZULIP,
            state=ImportState.FAILED,
            path="",
            name="export.tar.gz",
            size=1,
            requested_at=1,
        )
        await org.do(
            DataExportSet(export=own),
            DataExportSet(export=export),
            DataImportSet(data_import=imported),
        )
        yield org


async def callers(org: Organization) -> dict[str, Person]:
    """Someone of each role, and the credentials that suffice for nothing."""
    ann = org["ann"]

    async def program(access: str) -> Person:
        key = (await ann.post("/users/me/keys", name=access, access=access)).ok["api_key"]
        return Person(ann.http, ann.user_id, ann.email, key)

    people = {
        "owner": ann,
        "administrator": await org.add("adam", Role.ADMINISTRATOR),
        "moderator": await org.add("mo", Role.MODERATOR),
        "member": org["ben"],
        "guest": await org.add("gwen", Role.GUEST),
        "bot": await org.add("helper", owner="ann"),
        "bot with a role": await org.add("chief", owner="ann"),
        "full key": await program("full"),
        "reading key": await program("read"),
        "sending key": await program("send"),
        "deactivated owner": await org.add("dora", Role.OWNER),
        "erased owner": await org.add("eric", Role.OWNER),
        # A key that another server's secret made, for the same address.
        "owner elsewhere": Person(ann.http, ann.user_id, ann.email, "k" * 32),
        "visitor": org.nobody,
    }
    chief = people["bot with a role"]
    assert (await ann.patch(f"/users/{chief.user_id}", role=Role.ADMINISTRATOR.value)).ok
    dora, eric = people["deactivated owner"], people["erased owner"]
    assert (await ann.delete(f"/users/{dora.user_id}")).ok
    before = org.node.state.data_exports[REALM]
    await erase(org, eric.user_id)
    # Erasing someone deletes the organization's exports.
    await org.do(DataExportSet(export=before))
    return people


async def erase(org: Organization, user_id: int) -> None:
    assert (await org["ann"].delete(f"/users/{user_id}", actions={"delete_profile": True})).ok


def test_every_route_of_exports_and_imports_is_in_the_table() -> None:
    found = {
        (route.method, route.path)
        for route in ROUTES
        if "export" in route.path or "import" in route.path
    }
    tested = {(method, path) for method, path, _, _ in ROUTES_OF}
    assert found == tested | set(OTHER_ROUTES)


async def test_every_role_at_every_route(org: Organization) -> None:
    people = await callers(org)
    for who, person in people.items():
        for method, path, sent, allowed in ROUTES_OF:
            number = MISSING if method == "DELETE" else OWN
            place = path.replace("{export_id:int}", str(number)).replace("{import_id:int}", "1")
            if method == "DELETE":
                place = place.replace("/imports/1", f"/imports/{MISSING}")
            with row(who, method, path):
                reply = await person.request(method, place, **sent)
                if who in allowed:
                    assert reply.status in {200, 400, 404}, reply.body
                    assert reply.body.get("code") in {None, "BAD_REQUEST"}, reply.body
                else:
                    code = NO_ACCESS.get(who, "UNAUTHORIZED_PRINCIPAL")
                    assert reply.body["code"] == code, reply.body
                    assert reply.status in {400, 401, 403}
        with row(who, "their own exports"):
            if who not in NO_ACCESS:
                mine = (await person.get("/users/me/data_exports")).ok["data_exports"]
                assert [one["id"] for one in mine] == ([OWN] if who == "owner" else [])
                reply = await person.get(f"/users/me/data_exports/{OWN}")
                assert reply.status == (200 if who == "owner" else 404)
        with row(who, "the file"):
            response = await person.open(f"/realm_exports/{NAME}")
            assert (response.status_code == 200) is (who in ADMINISTRATORS)
            assert (response.content == FILE) is (who in ADMINISTRATORS)
            for other in ("user_uploads", "user_exports", "user_uploads/download"):
                response = await person.open(f"/{other}/{EXPORTS}/{NAME}")
                assert response.status_code in {400, 401, 403, 404}
                assert FILE not in response.content
    assert org.node.state.data_exports[REALM].path


async def test_only_owners_upload_exports(org: Organization) -> None:
    people = await callers(org)
    about = {"Upload_Length": "5", "Upload_Metadata": metadata(filename="x", purpose="import")}
    begun = await ask(people["owner"], "POST", **about)
    place = begun.headers["location"]
    for who, person in people.items():
        with row(who):
            if who == "owner":
                continue
            response = await ask(person, "POST", **about)
            assert response.json()["code"] == NO_ACCESS.get(who, "UNAUTHORIZED_PRINCIPAL")
            for method in ("HEAD", "PATCH", "DELETE"):
                headers = {"Upload_Offset": "0", **PIECE} if method == "PATCH" else {}
                response = await ask(person, method, place, b"x" * bool(headers), **headers)
                assert response.status_code in {400, 401, 403, 404}
    response = await ask(people["owner"], "HEAD", place)
    assert response.headers["upload-offset"] == "0"


async def test_events_are_for_those_who_may_see_the_lists(org: Organization) -> None:
    people = {who: one for who, one in (await callers(org)).items() if who in ANYONE}
    listeners = {who: await person.register() for who, person in people.items()}
    kinds = {who: listener.data.keys() for who, listener in listeners.items()}
    assert not [who for who, keys in kinds.items() if {"exports", "imports"} & set(keys)]
    await org.do(
        DataExportSet(export=org.node.state.data_exports[REALM]),
        DataImportSet(data_import=org.node.state.data_imports[IMPORT]),
    )
    await org.node.log.durability.settled()
    seen = {
        who: {event["type"] for event in await listener.events()}
        for who, listener in listeners.items()
    }
    for who, types in seen.items():
        with row(who):
            assert ("realm_export" in types) is (who in ADMINISTRATORS)
            assert ("realm_import" in types) is (who in OWNERS)


async def test_the_archive_is_for_everyone_once_an_owner_opens_it(org: Organization) -> None:
    people = await callers(org)
    square = await org.channel("square", "ann", is_web_public=True)
    secret = await org.channel("secret", "ann", is_private=True)
    await org["ann"].send("square", "plans", "Tea at five")
    await org["ann"].send("secret", "plans", "Nobody knows")
    topic = f"/archive/{square}-square/topic/plans"
    pages = ["/archive", f"/archive/{square}-square", topic]
    pages += ["/sitemap.xml", f"/sitemap-{square}-0.xml"]
    for who, person in people.items():
        with row(who, "off"):
            for page in pages:
                assert (await person.open(page)).status_code == 404
            if who not in OWNERS and who not in {"full key"}:
                reply = await person.patch("/realm", public_archive="indexed")
                assert reply.status in {400, 401, 403}, reply.body
    assert org.node.state.realm.public_archive == "off"
    assert (await people["owner"].patch("/realm", public_archive="indexed")).ok
    for who, person in people.items():
        with row(who, "on"):
            for page in pages:
                assert (await person.open(page)).status_code == 200
            assert "Tea at five" in (await person.open(topic)).text
            # Not even to those who can read the channel: the pages are the same for everyone.
            assert (await person.open(f"/archive/{secret}-secret/topic/plans")).status_code == 404
            assert "secret" not in (await person.open("/archive")).text


async def test_the_url_of_a_person_s_export_ends_with_their_account(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    assert (await ben.post("/users/me/data_export")).ok
    await jobs.exports(org.node).once()
    (export,) = (await ben.get("/users/me/data_exports")).ok["data_exports"]
    url = (await ben.get(f"/users/me/data_exports/{export['id']}")).ok["url"]
    assert (await org.http.get(url)).status_code == 200
    assert (await ann.delete(f"/users/{ben.user_id}")).ok
    assert (await org.http.get(url)).status_code == 404


# Erasing someone


async def test_erasing_someone_deletes_the_organization_s_exports(org: Organization) -> None:
    ann = org["ann"]
    listener = await ann.register()
    assert (await ann.open(f"/realm_exports/{NAME}")).content == FILE
    await erase(org, org["ben"].user_id)
    assert (await ann.open(f"/realm_exports/{NAME}")).status_code == 404
    (gone,) = (await ann.get("/export/realm")).ok["exports"]
    assert gone["deleted_timestamp"]
    assert gone["export_url"] is None
    assert any(event["type"] == "realm_export" for event in await listener.events())
    await jobs.delete_unused_files(org.node)
    left = [stored.path async for stored in org.node.files.below(EXPORTS)]
    assert left == [f"{EXPORTS}/{NAME}1"], "a person's own export has nobody else's data"


async def test_an_export_that_is_being_made_is_made_again(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = org["ann"], org["ben"]
    made: list[bytes] = []

    async def export(node: Any, requested: DataExport, path: Any) -> None:
        made.append(org.node.state.users[ben.user_id].full_name.encode())
        path.write_bytes(made[-1])
        if len(made) == 1:
            await erase(org, ben.user_id)

    monkeypatch.setattr(jobs, "MAKERS", {ExportKind.PUBLIC: export})
    number = (await ann.post("/export/realm")).ok["id"]
    job = jobs.exports(org.node)
    await job.once()
    await until(lambda: data_exports.pending_export(org.node.state) is None)
    assert len(made) == 2
    done = org.node.state.data_exports[number]
    content = await org.node.files.read(done.path)
    assert content == made[1] != made[0]
    stored = [one.path async for one in org.node.files.below(EXPORTS)]
    assert sorted(stored) == sorted([done.path, f"{EXPORTS}/{NAME}1"])
