"""Administration: usage, failures, slow requests, quotas for files, and announcements."""

import asyncio
import dataclasses
import logging
from collections import deque
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from starlette.types import Receive, Scope, Send

from tertulia.domain.messages import attachments
from tertulia.domain.organization import banners
from tertulia.jobs import registry
from tertulia.jobs.supervisor import Job
from tertulia.jobs.upkeep import usage_counts
from tertulia.log.health import SECONDS, Histogram
from tertulia.model.errors import UploadQuotaReached
from tertulia.model.mail import Mail, MailKind
from tertulia.model.webhooks import ServiceCall
from tertulia.service import usage as counting
from tertulia.service.config import Config
from tertulia.service.usage import CountedElsewhere
from tertulia.store import feeds, lanes, outbox, pushes, usage, webhooks
from tertulia.store.database import Connection
from tertulia.store.feeds import FeedStatus
from tertulia.store.nodes import SlowRequest
from tertulia.store.pushes import PushAction
from tertulia.store.usage import UsageProgress
from tertulia.wire.http import node as request_log
from tertulia.wire.http.node import RequestLog, RequestMeasures, SlowRequests
from tests.support import Organization, TestClock, new_organization
from tests.wire.test_tus import ask, create_upload, piece

MIB = 2**20
DAY = 86400
EXTENDED = {"server_extensions": True}


@pytest.fixture(autouse=True)
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node counts nothing by itself; tests say when."""

    async def rest() -> float:
        return DAY

    monkeypatch.setattr(registry, "usage_counts", lambda _: Job("usage", rest))


# Quotas for files


async def test_a_person_s_files_and_those_of_their_bots_have_a_limit(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    listener = await ben.register(client_capabilities=EXTENDED)
    assert listener.data["realm_upload_quota_per_user_mib"] == 10_240
    plain = await ben.register()
    assert "realm_upload_quota_per_user_mib" not in plain.data
    (await ben.patch("/realm", upload_quota_per_user_mib=1)).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await ann.patch("/realm", upload_quota_per_user_mib=1)).ok
    (event,) = await listener.events()
    assert (event["property"], event["value"]) == ("upload_quota_per_user_mib", 1)
    assert await plain.events() == []

    made = (await ben.post("/bots", full_name="Hal", short_name="hal")).ok
    bots = {bot["full_name"]: bot for bot in (await ben.get("/bots")).ok["bots"]}
    address = bots["Hal"]["username"]
    hal = dataclasses.replace(ben, email=address, api_key=made["api_key"])
    await hal.upload("of-bot", b"x" * (MIB // 2))
    assert (await ben.delete(f"/bots/{made['user_id']}")).ok  # Its files still exist.
    await ben.upload("own", b"x" * (MIB // 2 - 6))
    # Started uploads need room, too.
    where = await create_upload(ben, 4)
    reply = await ben.raw("POST", "/user_uploads", files={"file": ("more", b"xxx")})
    assert "0.0 MiB are left" in reply.refused("USER_UPLOAD_QUOTA")["msg"]
    answer = await ask(ben, "POST", Upload_Length="3")
    assert (answer.status_code, answer.json()["code"]) == (413, "USER_UPLOAD_QUOTA")
    await ben.upload("small", b"xx")
    assert (await piece(ben, where, 0, b"xxxx")).status_code == 200
    await ann.upload("somebody else's", b"x" * (MIB // 2))
    files = (await ben.get("/attachments")).ok
    assert (files["own_space_used"], files["own_space_limit"]) == (MIB, MIB)
    assert files["upload_space_used"] == MIB + MIB // 2
    # The server's own bots belong to nobody.
    state = org.node.state
    (gateway, *_) = (one for one in state.users if one.is_system_bot)
    attachments.check_upload_quota(state, gateway, 2 * MIB, quota=None)
    with pytest.raises(UploadQuotaReached):
        attachments.check_upload_quota(state, gateway, 2 * MIB, quota=2 * MIB)


async def test_one_person_may_have_another_limit(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    assert (await ann.patch("/realm", upload_quota_per_user_mib=1)).ok
    path = f"/users/{ben.user_id}/upload_quota"
    for given, limit in ((2, 2 * MIB), ("unlimited", None), ("realm_default", MIB)):
        quota = (await ann.request("PUT", path, upload_quota_mib=given)).ok
        assert (quota["upload_quota_mib"], quota["limit"]) == (given, limit)
        assert (await ben.get(path)).ok["limit"] == limit
    assert (await ann.patch("/realm", upload_quota_per_user_mib="unlimited")).ok
    assert (await ben.get(path)).ok["limit"] is None
    for bad in (0, -1, "none", 10**10):
        (await ann.request("PUT", path, upload_quota_mib=bad)).refused(
            "REQUEST_VARIABLE_INVALID" if bad != 10**10 else "BAD_REQUEST"
        )
    (await ben.request("PUT", path, upload_quota_mib=9)).refused("UNAUTHORIZED_PRINCIPAL")
    (await org["cleo"].get(path)).refused("UNAUTHORIZED_PRINCIPAL")
    robo = f"/users/{org['robo'].user_id}/upload_quota"
    (await ann.request("PUT", robo, upload_quota_mib=9)).refused()


# Usage


async def here(org: Organization, *of: tuple[int, int]) -> None:
    """These accounts used a client on these days."""
    await org.node.store.write(
        lambda c: c.run_many("INSERT INTO usage_days (user_id, day) VALUES (?, ?)", of)
    )


async def count(org: Organization, **how: Any) -> None:
    node = org.node
    await counting.count(node.store, lambda: node.state, node.clock(), **how)


async def test_counting_in_steps_equals_the_actual_numbers(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MESSAGE_BATCH", 2)
    monkeypatch.setattr(usage, "FILE_BATCH", 1)
    ann, ben = org["ann"], org["ben"]
    await org.channel("general", "ann", "ben")
    empty = (await ann.get("/usage")).ok
    assert (empty["counted_at"], empty["progress"], len(empty["days"])) == (None, 1.0, 30)
    link = "/user_uploads/" + await ben.upload("a.txt", b"12345")
    other = "/user_uploads/" + await ben.upload("b.txt", b"12")
    first = await ben.send("general", "new", f"[a]({link}) [a again]({link})")
    for number in range(3):
        await ben.send("general", "new", f"{number} [b]({other})")
    await ben.write([ann.user_id], f"[a]({link})")
    await here(org, (ben.user_id, usage.day_of(org.node.clock())))
    told: list[tuple[int, int]] = []
    await count(org, report=lambda done, last: told.append((done, last)))
    assert len(told) >= 3
    assert told[-1][0] == told[-1][1]
    await ben.delete(f"/messages/{first}")
    for _ in range(2):  # Nothing is counted twice.
        await count(org)
        found = (await ann.get("/usage", days=2)).ok
        assert (found["progress"], found["counted_at"] is None) == (1.0, False)
        assert [sum(one[key] for one in found["days"]) for key in ("people", "messages")] == [1, 5]
        assert [sum(one[key] for one in found["weeks"]) for key in ("people", "messages")] == [1, 5]
    assert found["users"] == [{"user_id": ben.user_id, "files": 2, "size": 7}]
    sizes = {one["stream_id"]: (one["files"], one["size"]) for one in found["streams"]}
    assert sizes[None] == (1, 5)
    assert sorted(sizes.values()) == [(1, 5), (2, 7)]
    await count(org, with_files=True)
    found = (await ann.get("/usage", days=365)).ok
    assert sorted((one["files"], one["size"]) for one in found["streams"]) == [(1, 2), (1, 5)]
    assert len(found["days"]) == 365
    for name in ("ben", "gus"):
        (await org[name].get("/usage")).refused("UNAUTHORIZED_PRINCIPAL")
    (await ann.get("/usage", days=0)).refused("REQUEST_VARIABLE_INVALID")


async def test_active_people_of_past_days_are_counted_once(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        today = usage.day_of(clock())
        await here(org, *((user_id, today - ago) for ago in (40, 39, 0) for user_id in (1, 2)))
        await count(org)
        at = await org.node.store.read(usage.progress)
        assert usage.day_of(clock()) - at.day in {0, 1}
        found = (await org["ann"].get("/usage", days=60)).ok
        assert sorted(one["people"] for one in found["days"])[-4:] == [0, 2, 2, 2]
        weeks = [one["people"] for one in found["weeks"] if one["people"]]
        assert set(weeks) == {2}
        assert len(weeks) in {2, 3}


async def test_of_two_nodes_that_count_concurrently_one_does(org: Organization) -> None:
    await org["ben"].write([org["ann"].user_id], "one")
    store = org.node.store
    new = await store.read(usage.new_messages, 0)
    assert await store.write(lambda c: usage.add_messages(c, UsageProgress(), new)) is not None
    assert await store.write(lambda c: usage.add_messages(c, UsageProgress(), new)) is None
    write = store.write

    async def beaten(step: Any) -> Any:
        """Another node is faster each time."""

        def second(connection: Connection) -> Any:
            before = usage.progress(connection)
            usage.finish(connection, before, before.at + 1)
            return step(connection)

        return await write(second)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "write", beaten)
        with pytest.raises(CountedElsewhere):
            await count(org)
    job = usage_counts(org.node.log)
    assert await job.once() > 0
    assert await job.once() > 0
    assert (await org["ann"].get("/usage")).ok["progress"] == 1.0


# Slow requests


async def test_slow_requests_are_recorded_without_their_content(
    config: Config, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = msgspec.structs.replace(config, slow_request_ms=5)
    async with new_organization(slow) as org:
        ann = org["ann"]
        made = (await ann.post("/bots", full_name="Hal", short_name="hal")).ok
        kept, read = org.node.membership.slow_requests, org.node.store._readers.read

        async def late(*how: Any) -> Any:
            await asyncio.sleep(0.02)
            return await read(*how)

        monkeypatch.setattr(org.node.store._readers, "read", late)
        kept.clear()
        caplog.clear()
        before = org.node.request_measures.slow
        with caplog.at_level(logging.WARNING):
            assert (await ann.get("/failing_deliveries", secret="word")).ok
            assert (await ann.get(f"/bots/{made['user_id']}/deliveries")).ok
            await _polled_by_a_page(org)
        # On a busy machine, other requests are slow, too.
        first, second = (one for one in kept if "deliveries" in one.route)
        assert (first.method, first.user_id, first.status) == ("GET", ann.user_id, 200)
        assert 15 <= first.database_ms <= first.ms
        assert second.database_ms >= 15
        assert first.route == "/api/v1/failing_deliveries"
        assert second.route == "/api/v1/bots/{bot_id}/deliveries"
        lines = [vars(one) for one in caplog.records if one.message == "slow request"]
        assert len(lines) == len(kept) == org.node.request_measures.slow - before
        # Waiting for events, at any address, isn't slow.
        assert not any("/events" in one.route for one in kept)
        assert "word" not in str(lines)


async def test_sending_a_large_response_is_not_a_slow_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: deque[SlowRequest] = deque()
    slow = SlowRequests(20, kept, Histogram(SECONDS), RequestMeasures(), lambda: 5.0)
    now = 0.0
    monkeypatch.setattr(request_log, "time", SimpleNamespace(perf_counter=lambda: now))

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal now
        now += 0.03 if scope["method"] == "POST" else 0
        await send({"type": "http.response.start", "status": 200, "headers": []})
        now += 0.03
        await send({"type": "http.response.body", "body": b""})

    async def nowhere(*_: Any) -> Any:
        """Nothing arrives in either direction."""

    log = RequestLog(answering, Config(), slow=slow)
    for method in ("GET", "POST"):
        scope = {"type": "http", "method": method, "path": "/user_uploads/1", "client": None}
        await log({**scope, "query_string": b"", "headers": []}, nowhere, nowhere)
    (one,) = kept
    assert (one.method, one.at, one.status) == ("POST", 5, 200)


async def _polled_by_a_page(org: Organization) -> None:
    """Wait for events at the address that pages in a browser use."""
    ann = org["ann"]
    queue = (await ann.post("/register", event_types=["realm"])).ok
    asked = org.http.get(
        "/json/events",
        params={"queue_id": queue["queue_id"], "last_event_id": queue["last_event_id"]},
        auth=(ann.email, ann.api_key),
    )
    answer = asyncio.create_task(asked)
    await asyncio.sleep(0.05)
    assert (await ann.patch("/realm", name="Another")).ok
    assert (await answer).json()["events"]


# Failures


async def test_administrators_see_what_fails_and_whose_it_is(org: Organization) -> None:
    ann, ben, store = org["ann"], org["ben"], org.node.store
    assert (await ann.get("/failing_deliveries")).ok["deliveries"] == []
    for name in ("ben", "gus"):
        (await org[name].get("/failing_deliveries")).refused("UNAUTHORIZED_PRINCIPAL")
    bot_id = org["robo"].user_id

    def fail(connection: Connection) -> None:
        mail = Mail(kind=MailKind.HAS_ACCOUNT, to="b@example.com", site="", about=ben.user_id)
        outbox.add_all(connection, {"a": mail, "b": mail}, 100.0)
        for one in outbox.lease(connection, 200.0, 60.0, 1):
            outbox.postpone(connection, one, 900.0, "Connection refused")
        call = msgspec.convert(
            {"bot_id": bot_id, "message_id": 1, "trigger": "mention"}, ServiceCall
        )
        webhooks.add_call(connection, call, 300.0, "c")
        for now in (400.0, 500.0):
            for lane in webhooks.lease_calls(connection, now, 1.0, [bot_id]):
                webhooks.finish_calls(connection, lane, [], now, now, f"Answered {now:.0f}")

    await store.write(fail)
    mail, service = (await ann.get("/failing_deliveries")).ok["deliveries"]
    assert mail == {
        "kind": "mail",
        "user_id": None,
        "name": "",
        "waiting": 1,
        "since": 100.0,
        "reason": "Connection refused",
    }
    assert (service["kind"], service["user_id"], service["waiting"]) == ("webhook", bot_id, 1)
    assert (service["since"], service["reason"]) == (400.0, "Answered 500")


async def test_failing_pushes_and_feeds_are_listed_with_their_start(org: Organization) -> None:
    def fail(connection: Connection) -> list[lanes.DeliveryFailure]:
        pushes.request(connection, 7, 8, "dm", PushAction.SHOW, [1], 10.0)
        for now in (20.0, 30.0):
            for lane in pushes.lease(connection, now, 1.0, [7]):
                pushes.finish(connection, lane, (), (), now, now + 1, f"at {now:.0f}")
        found = lanes.DEVICES.failing(connection, 5)
        for lane in pushes.lease(connection, 40.0, 1.0, [7]):
            pushes.finish(connection, lane, lane.pushes, (), 40.0, None, "")
        assert lanes.DEVICES.failing(connection, 5) == []
        return found

    (found,) = await org.node.store.write(fail)
    assert (found.of, found.waiting, found.since, found.reason) == (7, 1, 20.0, "at 30")
    standing = FeedStatus(url="https://a.example", failures=3, reason="404", failing_since=5.0)
    assert msgspec.json.decode(msgspec.json.encode(standing), type=feeds.FeedStatus) == standing


# Announcements


async def test_an_announcement_is_shown_to_everyone_until_it_ends(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    board = await org.channel("board", "ann", "ben")
    assert (await ann.patch("/realm", zulip_update_announcements_stream_id=board)).ok
    mine = await ben.register(client_capabilities=EXTENDED)
    assert mine.data["realm_banners"] == []
    plain = await ben.register(event_types=["realm", "message"])
    assert "realm_banners" not in plain.data
    (await ben.post("/banners", content="I say")).refused("UNAUTHORIZED_PRINCIPAL")
    posted = (await ann.post("/banners", content=" Down tonight. ", seconds=60)).ok["banner_id"]
    told = [one for one in await mine.events() if one["type"] == "realm"]
    assert (told[-1]["op"], told[-1]["property"]) == ("update", "banners")
    (banner,) = told[-1]["value"]
    assert (banner["id"], banner["content"], banner["posted_by"]) == (
        posted,
        "Down tonight.",
        ann.user_id,
    )
    assert banner["ends_at"] - banner["posted_at"] == 60
    # Other clients get it from the bot.
    (event,) = await plain.events()
    assert "Down tonight." in event["message"]["content"]
    assert event["message"]["stream_id"] == board
    assert (await ben.register(client_capabilities=EXTENDED)).data["realm_banners"] == [banner]
    assert (await ben.get("/banners")).ok["banners"] == [banner]
    (await ben.delete(f"/banners/{posted}")).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await ann.delete(f"/banners/{posted}")).ok
    assert (await mine.events())[-1]["value"] == []
    (await ann.delete(f"/banners/{posted}")).refused(status=404)


async def test_announcements_are_limited_and_end_by_themselves(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        for content in (" ", "\u200b\u2800", "x" * 501, "a\x07"):
            (await ann.post("/banners", content=content)).refused()
        for seconds in (0, -5, 400 * DAY):
            (await ann.post("/banners", content="a", seconds=seconds)).refused()
        for number in range(banners.MAX_BANNERS):
            assert (await ann.post("/banners", content=f"{number}", seconds=60 + number)).ok
        (await ann.post("/banners", content="one more")).refused()
        clock.ahead = 62
        await org.tick()
        left = (await ann.get("/banners")).ok["banners"]
        assert 1 <= len(left) < banners.MAX_BANNERS
        clock.ahead = 3600
        await org.tick()
        assert (await ann.get("/banners")).ok["banners"] == []
