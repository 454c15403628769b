"""Exports of the organization: requests, events, files, and rights."""

import asyncio
import io
import tarfile

import pytest

from tertulia.domain.organization import exports
from tertulia.domain.organization.exports import KEPT_DAYS, MAX_PER_WEEK
from tertulia.jobs import exports as jobs
from tertulia.jobs.programs import ProgramFailed
from tertulia.service.config import Config
from tests.support import Organization, TestClock, new_organization, open_organization, until

pytestmark = pytest.mark.anyio


async def made(org: Organization, kind: str = "public") -> int:
    """Request an export, and let the server make it."""
    number: int = (await org["ann"].post("/export/realm", export_type=kind)).ok["id"]
    await finished(org)
    return number


async def finished(org: Organization) -> None:
    """Wait until no export is pending: the node's own job makes them."""
    await until(lambda: not any(one.is_pending for one in org.node.state.data_exports))
    await org.node.log.durability.settled()


async def test_an_export_is_made_announced_downloaded_and_deleted(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    await org.channel("square", "ann", "ben")
    await ann.send("square", "plans", "Tea at five")
    listener, other = await ann.register(), await ben.register()
    number = (await ann.post("/export/realm")).ok["id"]
    (requested,) = await listener.events()
    await finished(org)
    (done,) = await listener.events()
    for event, pending in ((requested, True), (done, False)):
        assert event["type"] == "realm_export"
        assert [one["pending"] for one in event["exports"]] == [pending]
    assert await other.events() == []
    (export,) = (await ann.get("/export/realm")).ok["exports"]
    assert export == done["exports"][0]
    assert (export["id"], export["acting_user_id"]) == (number, ann.user_id)
    assert export["export_type"] == "public"
    assert export["failed_timestamp"] is None
    response = await ann.open(export["export_url"])
    assert response.status_code == 200
    assert "attachment" in response.headers["content-disposition"]
    with tarfile.open(fileobj=io.BytesIO(response.content)) as tar:
        content = tar.extractfile("export/messages-000001.json")
        assert content is not None
        assert b"Tea at five" in content.read()
    for person in (ben, org["gus"], org.nobody):
        assert (await person.open(export["export_url"])).status_code in {400, 401, 403}
    assert (await ann.open("/realm_exports/unknown")).status_code == 404

    assert (await ann.delete(f"/export/realm/{number}")).ok
    (event,) = await listener.events()
    (gone,) = event["exports"]
    assert gone["export_url"] is None
    assert gone["deleted_timestamp"] is not None
    assert (await ann.open(export["export_url"])).status_code == 404
    await jobs.delete_unused_files(org.node)
    assert [one async for one in org.node.files.below("exports")] == []
    (await ann.delete(f"/export/realm/{number}")).refused()
    (await ann.delete("/export/realm/999")).refused()


async def test_with_consent_an_owner_must_consent(org: Organization) -> None:
    ann = org["ann"]
    reply = await ann.post("/export/realm", export_type="full_with_consent")
    assert "owner must allow" in reply.refused()["msg"]
    assert (await ann.patch("/settings", allow_private_data_export=True)).ok
    assert (await ann.patch("/settings", email_address_visibility=4)).ok
    reply = await ann.post("/export/realm", export_type="public")
    assert "email address" in reply.refused()["msg"]
    await ann.write([org["ben"].user_id], "only for us")
    await made(org, "full_with_consent")
    (export,) = (await ann.get("/export/realm")).ok["exports"]
    content = (await ann.open(export["export_url"])).content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        file = tar.extractfile("export/messages-000001.json")
        assert file is not None
        assert b"only for us" in file.read()


async def test_bad_requests(readonly_org: Organization) -> None:
    ann = readonly_org["ann"]
    reply = await ann.post("/export/realm", export_type="full_without_consent")
    assert "tertulia export" in reply.refused()["msg"]
    (await ann.post("/export/realm", export_type=1)).refused("REQUEST_VARIABLE_INVALID")
    (await ann.delete("/export/realm/99999999999999")).refused()


async def test_exports_of_a_person_are_not_the_organizations(org: Organization) -> None:
    ann = org["ann"]
    assert (await ann.post("/users/me/data_export")).ok
    (own,) = (await ann.get("/users/me/data_exports")).ok["data_exports"]
    assert (await ann.get("/export/realm")).ok["exports"] == []
    (await ann.delete(f"/export/realm/{own['id']}")).refused()
    number = (await ann.post("/export/realm")).ok["id"]
    (await ann.get(f"/users/me/data_exports/{number}")).refused(status=404)


async def test_limits_and_concurrent_requests(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        numbers = [(await ann.post("/export/realm")).ok["id"] for _ in range(MAX_PER_WEEK)]
        (await ann.post("/export/realm")).refused()
        (await ann.delete(f"/export/realm/{numbers[-1]}")).refused()
        await finished(org)
        found = (await ann.get("/export/realm")).ok["exports"]
        assert [one["id"] for one in found] == numbers[::-1]
        urls = {one["export_url"] for one in found}
        assert len(urls) == MAX_PER_WEEK
        clock.ahead = 8 * 86400
        await made(org)
        clock.ahead = (KEPT_DAYS + 1) * 86400
        await org.node.log.submit(None, exports.expire)
        found = (await ann.get("/export/realm")).ok["exports"]
        assert [one["export_url"] is None for one in found] == [False] + [True] * MAX_PER_WEEK
        await jobs.delete_unused_files(org.node)
        assert len([one async for one in org.node.files.below("exports")]) == 1


async def test_one_that_fails_says_so(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    async def failing(*words: object) -> None:
        tried.append(words)
        raise ProgramFailed("The disk is full.", 1)

    monkeypatch.setattr(jobs, "run_command", failing)
    monkeypatch.setattr(jobs, "ATTEMPTS", 1)
    number = await made(org)
    assert len(tried) == 1
    (export,) = (await org["ann"].get("/export/realm")).ok["exports"]
    assert export["failed_timestamp"] is not None
    assert not export["pending"]
    assert export["export_url"] is None
    (await org["ann"].delete(f"/export/realm/{number}")).refused()


async def test_what_a_stopped_node_left_pending_is_made_after_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        with pytest.MonkeyPatch.context() as patch:
            # The node stops while it works.
            started = asyncio.Event()

            async def endless(*_: object) -> None:
                started.set()
                await asyncio.Event().wait()

            patch.setattr(jobs, "run_command", endless)
            assert (await org["ann"].post("/export/realm")).ok
            await asyncio.wait_for(started.wait(), 60)
    async with open_organization(config) as org:
        await finished(org)
        (export,) = (await org["ann"].get("/export/realm")).ok["exports"]
        assert export["export_url"] is not None


async def test_consent_is_shown_to_administrators(org: Organization) -> None:
    ann, ben = await org["ann"].register(), await org["ben"].register()
    assert (await org["ben"].patch("/settings", allow_private_data_export=True)).ok
    (event,) = await ann.events()
    assert event["type"] == "realm_export_consent"
    assert (event["user_id"], event["consented"]) == (org["ben"].user_id, True)
    assert [e["type"] for e in await ben.events()] == ["user_settings"]
    consents = (await org["ann"].get("/export/realm/consents")).ok["export_consents"]
    assert [c["user_id"] for c in consents if c["consented"]] == [org["ben"].user_id]
    assert {c["user_id"] for c in consents} == {
        org[name].user_id for name in ("ann", "ben", "cleo", "gus")
    }
    assert {c["email_address_visibility"] for c in consents} == {1}


async def test_consent_of_new_and_reactivated_accounts_is_sent(org: Organization) -> None:
    """Other events about them don't contain it."""
    ann, ben, kind = org["ann"], org["ben"], ["realm_export_consent"]
    queue, member = (
        await ann.register(event_types=kind),
        await org["cleo"].register(event_types=kind),
    )
    dora = (
        await ann.post("/users", email="dora@example.com", password="sesame open", full_name="Dora")
    ).ok["user_id"]
    assert [(e["user_id"], e["consented"]) for e in await queue.events()] == [(dora, False)]

    assert (await ben.patch("/settings", allow_private_data_export=True)).ok
    assert (await ann.delete(f"/users/{ben.user_id}")).ok
    assert (await ann.post(f"/users/{ben.user_id}/reactivate")).ok
    events = await queue.events()
    assert [(e["user_id"], e["consented"]) for e in events] == [(ben.user_id, True)] * 2

    assert (await ann.post("/bots", full_name="Oven", short_name="oven", bot_type=1)).ok
    assert await queue.events() == await member.events() == []


async def test_exports_are_for_administrators(readonly_org: Organization) -> None:
    for name in ("ben", "gus"):
        person = readonly_org[name]
        for reply in (
            await person.get("/export/realm"),
            await person.post("/export/realm"),
            await person.delete("/export/realm/1"),
            await person.get("/export/realm/consents"),
        ):
            reply.refused("UNAUTHORIZED_PRINCIPAL")
