"""The audit log: the recorded actions, who can read it, and how long it's kept."""

import asyncio
import csv
import dataclasses
import io
from typing import Any

import pytest

from tertulia.jobs.upkeep import DAY, audit_log, erased_once
from tertulia.model.audit_log import AuditRecord, Origin
from tertulia.service.audit_log import limit_of
from tertulia.service.config import Config
from tertulia.store import audit_log as stored
from tertulia.store.notes import Audited
from tertulia.wire.files import audit_log as exporting
from tests.browsers import signed_in_browser, signed_out_browser
from tests.support import PASSWORD, Organization, Person, open_organization


async def records(person: Person, **wanted: Any) -> list[dict[str, Any]]:
    """The records, newest first."""
    found: list[dict[str, Any]] = (await person.get("/audit_log", **wanted)).ok["records"]
    return found


async def newest(org: Organization, kind: str, **wanted: Any) -> dict[str, Any]:
    """Return the newest record of this kind."""
    await org.node.log.catch_up()
    found = await records(org["ann"], kind=kind, **wanted)
    assert found, kind
    return found[0]


async def test_changes_are_recorded_with_who_whom_and_from_where(org: Organization) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    await org.channel("vault", "ann", is_private=True)
    channel = org.node.state.channel_named("vault")
    assert channel is not None

    (await ann.patch(f"/users/{ben.user_id}", role=200)).ok
    role = await newest(org, "role_changed")
    assert (role["actor_id"], role["user_id"]) == (ann.user_id, ben.user_id)
    assert role["details"] == {"changes": {"role": [400, 200]}}
    assert role["origin"]["way"] == "api_key"
    assert role["origin"]["address"] == "127.0.0.1"

    (await ann.patch("/realm", invite_required=False, description="Hello")).ok
    settings = await newest(org, "settings_changed")
    assert settings["details"]["changes"] == {
        "invite_required": [True, False],
        "description": ["", "Hello"],
    }

    (await ann.patch("/realm/user_settings_defaults", color_scheme=3)).ok
    assert (await newest(org, "default_settings_changed"))["details"] == {
        "changes": {"color_scheme": [1, 3]}
    }

    subscribed = {"subscriptions": [{"name": "vault"}], "principals": [ben.user_id, cleo.user_id]}
    (await ann.post("/users/me/subscriptions", **subscribed)).ok
    added = await newest(org, "channel_members_added")
    assert added["details"] == {
        "channel_id": channel.id,
        "channel": "vault",
        "user_ids": [ben.user_id, cleo.user_id],
    }
    left = {"subscriptions": ["vault"], "principals": [cleo.user_id]}
    (await ann.delete("/users/me/subscriptions", **left)).ok
    assert (await newest(org, "channel_members_removed"))["user_id"] == cleo.user_id

    (await ann.patch(f"/streams/{channel.id}", is_private=False)).ok
    assert (await newest(org, "channel_changed"))["details"]["changes"]["invite_only"] == [
        True,
        False,
    ]
    (await ann.delete(f"/streams/{channel.id}")).ok
    assert (await newest(org, "channel_archived"))["details"]["channel"] == "vault"

    made = (await ann.post("/user_groups/create", name="crew", description="", members=[])).ok
    (await ann.post(f"/user_groups/{made['group_id']}/members", add=[ben.user_id])).ok
    member = await newest(org, "group_members_added")
    assert (member["user_id"], member["details"]["group"]) == (ben.user_id, "crew")

    (await ann.post("/invites", invitee_emails="new@example.com", stream_ids=[])).ok
    invited = await newest(org, "invited")
    assert invited["details"]["addresses"] == ["new@example.com"]
    (await ann.delete(f"/invites/{invited['details']['invitation_ids'][0]}")).ok
    await newest(org, "invitation_revoked")

    (await ann.post("/realm/domains", domain="example.org", allow_subdomains=True)).ok
    assert (await newest(org, "domain_added"))["details"]["domain"] == "example.org"

    (await ann.delete(f"/users/{cleo.user_id}")).ok
    assert (await newest(org, "account_deactivated"))["user_id"] == cleo.user_id
    (await ann.post(f"/users/{cleo.user_id}/reactivate")).ok
    await newest(org, "account_reactivated")

    await org.channel("lounge", "ann")
    message = await ann.send("lounge", "plans", "xqword")
    (await ann.delete(f"/messages/{message}")).ok
    deleted = await newest(org, "messages_deleted")
    assert deleted["details"]["message_ids"] == [message]

    (await ann.post("/users/me/data_export")).ok
    assert (await newest(org, "export_requested"))["details"]["kind"] == "person"
    assert "xqword" not in str(await records(ann, limit=500))
    assert "plans" not in str(await records(ann, limit=500))


async def test_keys_and_sessions_are_named(org: Organization) -> None:
    ann = org["ann"]
    made = (await ann.post("/users/me/keys", name="Laptop", access="full")).ok
    key = await newest(org, "key_created")
    assert key["details"] == {"key_id": made["key_id"], "name": "Laptop", "access": "full"}
    laptop = dataclasses.replace(ann, api_key=made["api_key"])
    (await laptop.patch("/realm", description="By key")).ok
    origin = (await newest(org, "settings_changed"))["origin"]
    assert (origin["way"], origin["key_id"]) == ("access_key", made["key_id"])
    assert made["api_key"] not in str(await records(ann, limit=500))
    (await ann.delete(f"/users/me/keys/{made['key_id']}")).ok
    await newest(org, "keys_revoked")

    browser = await signed_in_browser(org)
    begun = await newest(org, "signed_in")
    assert begun["details"]["method"] == "password"
    (await browser.patch("/realm", description="By browser")).ok
    origin = (await newest(org, "settings_changed"))["origin"]
    assert origin["way"] == "session"
    assert origin["session_id"] == begun["details"]["session_id"]
    assert "Firefox" in origin["agent"]
    (await browser.delete(f"/sessions/{origin['session_id']}")).ok
    assert (await newest(org, "sessions_ended"))["user_id"] == ann.user_id


async def test_sign_ins_by_programs_and_failures_are_recorded(org: Organization) -> None:
    anyone = signed_out_browser(org)
    (await anyone.post("/fetch_api_key", username="ann@example.com", password=PASSWORD)).ok
    done = await newest(org, "signed_in")
    assert (done["actor_id"], done["details"]) == (org["ann"].user_id, {"method": "password"})
    (await anyone.post("/fetch_api_key", username="ann@example.com", password="no")).refused(
        "AUTHENTICATION_FAILED", 401
    )
    failed = await newest(org, "sign_in_failed")
    assert (failed["actor_id"], failed["user_id"]) == (None, org["ann"].user_id)
    assert failed["origin"]["way"] == "page"


async def test_only_owners_read_it_and_no_access_key(org: Organization) -> None:
    ann = org["ann"]
    (await ann.patch(f"/users/{org['ben'].user_id}", role=200)).ok
    for name in ("ben", "cleo", "gus", "robo"):
        for path in ("/audit_log", "/audit_log/export"):
            assert (await org[name].get(path)).body["result"] == "error"
    for scope in (
        {"access": "read"},
        {"access": "send"},
        {"access": "full"},
    ):
        made = (
            await ann.post("/users/me/keys", name=f"Program {len(scope)}{scope['access']}", **scope)
        ).ok
        program = dataclasses.replace(ann, api_key=made["api_key"])
        for path in ("/audit_log", "/audit_log/export"):
            assert (await program.get(path)).body["result"] == "error", scope
    for bad in ({"before": 0}, {"limit": 501}, {"kind": "signed_inn"}, {"actor_id": 2**60}):
        (await ann.get("/audit_log", **bad)).refused("REQUEST_VARIABLE_INVALID")


async def test_pages_have_no_gaps_while_records_are_written(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    for number in range(20):
        (await ann.patch("/realm", description=str(number))).ok

    async def writing() -> None:
        for number in range(20):
            (await ben.post("/users/me/keys", name=f"Key {number}")).ok

    writer = asyncio.create_task(writing())
    found: list[dict[str, Any]] = []
    is_over = False
    while not is_over:
        before = {"before": found[-1]["id"]} if found else {}
        page = (await ann.get("/audit_log", limit=3, **before)).ok
        found += page["records"]
        is_over = page["found_oldest"]
    await writer
    ids = [one["id"] for one in found]
    assert ids == list(range(ids[0], 0, -1))
    by_ben = await records(ann, actor_id=ben.user_id, kind="key_created")
    assert len(by_ben) == 20
    assert {one["user_id"] for one in await records(ann, user_id=ben.user_id)} == {ben.user_id}


async def test_records_of_several_nodes_are_in_one_order(org: Organization, config: Config) -> None:
    async with open_organization(config) as other:
        for number in range(6):
            node = (org, other)[number % 2]
            (await node["ann"].patch("/realm", description=str(number))).ok
        for node in (org, other):
            found = await records(node["ann"], kind="settings_changed", limit=6)
            news = [one["details"]["changes"]["description"][1] for one in found]
            assert news == ["5", "4", "3", "2", "1", "0"]


async def test_a_flood_of_failures_is_counted(org: Organization) -> None:
    recorder, node = org.node.audit, org.node
    alike, period, burst, _ = limit_of("sign_in_failed")
    origin = Origin(way="page", address="192.0.2.1")
    for _ in range(50):
        recorder.record("sign_in_failed", origin, network="192.0.2.1", user_id=1)
    for number in range(burst * 2):
        recorder.record("sign_in_failed", origin, network=f"2001:db8::{number}", user_id=2)
    await node.log.catch_up()
    found = await records(org["ann"], kind="sign_in_failed", user_id=1)
    assert len(found) == alike
    assert len(await node.store.read(stored.page, 5000, kind="sign_in_failed")) == burst
    assert len(recorder._counts) <= burst + 1
    node_clock = node.log.clock()
    recorder._budgets["sign_in_failed"].left = 1.0
    recorder.write_counts(node_clock + period)
    recorder.write_counts()
    await node.log.catch_up()
    counted = await records(org["ann"], kind="sign_in_failed", limit=3)
    sums = {one["user_id"]: one["details"].get("count") for one in counted}
    assert (sums[1], sums[None]) == (50 - alike, burst * 2 - (burst - alike))
    assert counted[0]["origin"]["address"] in {"192.0.2.1", ""}
    assert len(recorder._counts) == 0


async def test_a_flood_of_one_kind_hides_no_other(org: Organization) -> None:
    origin = Origin(way="page", address="192.0.2.1")
    for number in range(2 * limit_of("key_refused").burst):
        org.node.audit.record("key_refused", origin, network=f"2001:db8::{number}")
    anyone = signed_out_browser(org)
    (await anyone.post("/fetch_api_key", username="ann@example.com", password="no")).refused(
        "AUTHENTICATION_FAILED", 401
    )
    await newest(org, "sign_in_failed")
    found = await org.node.store.read(stored.page, 5000, kind="key_refused")
    assert len(found) == limit_of("key_refused").burst


async def test_refused_keys_are_recorded_once_per_account_and_network(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    wrong = [
        dataclasses.replace(ann, api_key="x" * 32),
        dataclasses.replace(ben, email=f"user{ben.user_id}@chat.test", api_key="y" * 32),
        dataclasses.replace(ben, email=ann.email),
        dataclasses.replace(ben, email="nobody@example.com"),
    ]
    for person in wrong:
        for _ in range(5):
            (await person.get("/users/me")).refused("INVALID_API_KEY", 401)
    headers = {"Authorization": "Bearer tertulia_x"}
    assert (await org.http.post("/mcp", json={}, headers=headers)).status_code == 401
    assert (await org.http.get("/user_uploads/1/x/y.txt?api_key=x")).status_code == 401
    await org.node.log.catch_up()
    found = await records(ann, kind="key_refused")
    assert [one["user_id"] for one in found] == [None, ben.user_id, ann.user_id]
    assert {one["actor_id"] for one in found} == {None}
    assert "nobody@example.com" not in str(found)
    org.node.audit.write_counts()
    await org.node.log.catch_up()
    counts = await records(ann, kind="key_refused", limit=3)
    assert {(one["user_id"], one["details"]["count"]) for one in counts} == {
        (ann.user_id, 9),
        (ben.user_id, 4),
        (None, 6),
    }


async def test_a_record_is_written_once(org: Organization) -> None:
    note = Audited(AuditRecord(kind="sign_in_failed", at=1.0))
    for _ in range(2):
        org.node.log.note(note)
        await org.node.log.catch_up()
    assert len(await records(org["ann"], kind="sign_in_failed")) == 1


async def test_old_records_are_deleted(org: Organization) -> None:
    now = org.node.log.clock()
    for days in (400, 366, 364):
        org.node.log.note(Audited(AuditRecord(kind="signed_in", at=now - days * DAY)))
    await org.node.log.catch_up()
    assert len(await records(org["ann"], kind="signed_in")) == 3
    await audit_log(org.node.log, org.node.audit, 365).once()
    (left,) = await records(org["ann"], kind="signed_in")
    assert left["timestamp"] == pytest.approx(now - 364 * DAY)


async def test_erasing_a_person_keeps_what_was_done_without_their_data(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    (await ben.post("/users/me/keys", name="Ben's phone")).ok
    (await ben.patch("/settings", full_name="Benjamin")).ok
    (await ann.post("/invites", invitee_emails="ben.old@example.com", stream_ids=[])).ok
    (await ann.delete(f"/users/{ben.user_id}", actions={"delete_profile": True})).ok
    await erased_once(org.node.store)
    made = (await records(ann, kind="key_created"))[0]
    assert (made["actor_id"], made["user_id"]) == (ben.user_id, ben.user_id)
    assert "name" not in made["details"]
    assert (made["origin"]["address"], made["origin"]["agent"]) == ("", "")
    everything = str(await records(ann, limit=500))
    assert "Benjamin" not in everything
    assert "Ben's phone" not in everything
    assert (await records(ann, kind="account_erased"))[0]["actor_id"] == ann.user_id
    mine = (await records(ann, actor_id=ann.user_id))[0]
    assert mine["origin"]["address"] == "127.0.0.1"


async def test_the_export_is_csv_without_formulas(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = org["ann"]
    monkeypatch.setattr(exporting, "_PAGE", 2)
    ann.http.headers["User-Agent"] = '=HYPERLINK("http://evil.example")'
    for number in range(5):
        (await ann.patch("/realm", description=str(number))).ok
    url = (await ann.get("/audit_log/export", kind="settings_changed")).ok["url"]
    nobody = signed_out_browser(org)
    response = await nobody.http.get(url)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff"))))
    assert [row["kind"] for row in rows] == ["settings_changed"] * 5
    assert {row["agent"] for row in rows} == {'\'=HYPERLINK("http://evil.example")'}
    assert {row["actor"] for row in rows} == {"Ann <ann@example.com>"}
    assert (await newest(org, "audit_log_exported"))["details"] == {
        "filter": {"kind": "settings_changed"}
    }
    url = (await ann.get("/audit_log/export", kind="settings_changed", before=rows[1]["id"])).ok[
        "url"
    ]
    response = await nobody.http.get(url)
    assert len(response.text.splitlines()) == 4

    assert (
        await nobody.http.get(url.replace("audit_log_exports/", "audit_log_exports/x"))
    ).is_error
    ben = org["ben"]
    (await ann.patch(f"/users/{ben.user_id}", role=100)).ok
    (await ben.patch(f"/users/{ann.user_id}", role=400)).ok
    assert (await nobody.http.get(url)).is_error  # Ann isn't an owner anymore.


async def test_what_outlives_a_request_is_the_servers(org: Organization) -> None:
    """A task that a request began isn't recorded as the request's action."""
    from tertulia.log.origin import command_origin
    from tertulia.wire.http.audit import RequestOrigin

    scope = {"type": "http", "state": {}, "client": ("192.0.2.1", 1), "headers": []}
    with RequestOrigin(scope, org.node.audit):
        during = command_origin()

        async def later() -> Any:
            await asyncio.sleep(0)
            return command_origin().origin()

        task = asyncio.create_task(later())
    assert await task is None
    # A command that the request submitted is, although the client has disconnected.
    origin = during.origin()
    assert origin is not None
    assert origin.address == "192.0.2.1"
    assert await org.node.store.read(stored.page, 1) is not None
