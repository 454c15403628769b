"""Exports of a person's own data."""

import io
import json
import typing
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.jobs import exports as job
from tertulia.jobs.exports import exports
from tertulia.model.exports import ExportKind
from tertulia.model.nouns import NOUNS
from tertulia.service import personal_data
from tertulia.service.config import Config
from tertulia.store.files import EXPORTS
from tests.support import Organization, Person, TestClock, new_organization, open_organization
from tests.wire.personal_data import DAY, OTHERS, later


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())


@pytest.fixture
async def org(config: Config, clock: TestClock, no_jobs: None) -> AsyncIterator[Organization]:
    async with new_organization(config, clock=clock, others=OTHERS) as org:
        await org.add("robo", owner="ben")
        yield org


async def exported(org: Organization, who: Person) -> zipfile.ZipFile:
    """The person exports and downloads their data."""
    export = (await who.post("/users/me/data_export")).ok["data_export"]
    assert export["pending"]
    await exports(org.node).once()
    url = (await who.get(f"/users/me/data_exports/{export['id']}")).ok["url"]
    response = await org.http.get(url)
    assert response.status_code == 200
    assert response.headers["content-disposition"].startswith("attachment")
    return zipfile.ZipFile(io.BytesIO(response.content))


def objects(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(archive.read(name))
    return found


async def test_export_has_what_the_person_wrote_did_and_chose(org: Organization) -> None:
    ben, cleo = org["ben"], org["cleo"]
    await org.channel("lounge", "ben", "cleo")
    first = await ben.send("lounge", "plans", "first <b>draft</b>")
    assert (await ben.patch(f"/messages/{first}", content="second")).ok
    direct = await ben.write([cleo.user_id], "psst")
    other = await cleo.send("lounge", "plans", "words of cleo")
    assert (await ben.post(f"/messages/{other}/reactions", emoji_name="tada")).ok
    assert (await ben.post("/messages/flags", messages=[other], op="add", flag="starred")).ok
    assert (await ben.post("/saved_snippets", title="greeting", content="hello there")).ok
    draft = {"type": "", "to": [], "topic": "", "content": "unsent", "timestamp": 1}
    assert (await ben.post("/drafts", drafts=[draft])).ok
    scheduled = {"type": "direct", "to": [cleo.user_id], "content": "tomorrow"}
    timestamp = later(org)
    assert (
        await ben.post("/scheduled_messages", **scheduled, scheduled_delivery_timestamp=timestamp)
    ).ok
    assert (await ben.post("/users/me/alert_words", alert_words=["coffee"])).ok
    assert (await ben.post("/users/me/status", status_text="out")).ok
    assert (await ben.post(f"/users/me/muted_users/{cleo.user_id}")).ok
    asked = await cleo.send("lounge", "plans", "/poll Tea?")
    vote = {"type": "vote", "key": "canned,0", "vote": 1}
    assert (
        await ben.post("/submessage", message_id=asked, msg_type="widget", content=json.dumps(vote))
    ).ok
    path = await ben.upload("my notes.txt", b"content of the file")

    archive = await exported(org, ben)
    assert archive.testzip() is None
    messages = objects(archive, "messages-0001.json")
    assert [one["id"] for one in messages] == [first, direct]
    assert (messages[0]["channel"], messages[0]["topic"]) == ("lounge", "plans")
    assert messages[0]["content"] == "second"
    assert [one["previous_content"] for one in messages[0]["edits"]] == ["first <b>draft</b>"]
    assert messages[1]["direct_message_with"] == ["Cleo"]
    (reaction,) = objects(archive, "reactions.json")
    assert (reaction["message_id"], reaction["emoji"]) == (other, "tada")
    assert [one["message_id"] for one in objects(archive, "stars.json")] == [other]
    assert [one["content"] for one in objects(archive, "snippets.json")] == ["hello there"]
    assert [one["content"] for one in objects(archive, "drafts.json")] == ["unsent"]
    assert [one["content"] for one in objects(archive, "scheduled_messages.json")] == ["tomorrow"]
    assert objects(archive, "alert_words.json")[0]["words"] == ["coffee"]
    assert objects(archive, "status.json")[0]["text"] == "out"
    assert [one["muted_id"] for one in objects(archive, "muted_users.json")] == [cleo.user_id]
    assert [json.loads(one["content"]) for one in objects(archive, "widgets.json")] == [vote]
    assert [one["address"] for one in objects(archive, "bots.json")] == ["robo-bot@example.com"]
    (lounge,) = [one for one in objects(archive, "channels.json") if one["channel"] == "lounge"]
    assert lounge["periods"][-1]["is_active"]
    assert "message_sent" in {one["action"] for one in objects(archive, "log.json")}
    (file,) = objects(archive, "files.json")
    assert file["path"] == path
    (content,) = [name for name in archive.namelist() if name.startswith("files/")]
    assert archive.read(content) == b"content of the file"
    account = objects(archive, "account.json")[0]
    assert (account["address"], account["full_name"]) == ("ben@example.com", "Ben")
    index = archive.read("index.html").decode()
    assert all(name in index for name in archive.namelist() if name.endswith(".json"))
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"words of cleo" not in everything


async def test_export_has_no_secrets(org: Organization) -> None:
    ben = org["ben"]
    assert (await ben.post("/agents", name="helper")).ok
    keys = {"endpoint": "https://push.example.com/secretpath", "p256dh": "B" * 87, "auth": "A" * 22}
    await ben.post("/push_subscriptions", **keys)
    await ben.post("/users/me/apns_device_token", token="c0ffee" * 10, appid="org.example")
    await org["ann"].post("/invites", invitee_emails="x@example.com")
    archive = await exported(org, ben)
    text = b"".join(archive.read(name) for name in archive.namelist()).decode()
    state = org.node.state
    credential = state.credentials[ben.user_id]
    secrets = [
        ben.api_key,
        credential.key_digest,
        credential.key_sealed,
        "c0ffee" * 10,
        "secretpath",
        *(one.digest for one in state.access_keys),
        *(one.nonce for one in state.invitations),
    ]
    assert [one for one in secrets if one in text] == []
    assert [one["name"] for one in objects(archive, "access_keys.json")] == ["helper"]


def test_every_record_of_a_person_is_exported_or_omitted_on_purpose() -> None:
    own = {noun.table for noun in NOUNS if "user_id" in typing.get_type_hints(noun.type)}
    assert own - {"users"} == personal_data.RECORDS.keys() | personal_data.OMITTED
    assert not personal_data.RECORDS.keys() & personal_data.OMITTED


async def test_names_of_conversations_that_the_person_lost_are_left_out(org: Organization) -> None:
    ben = org["ben"]
    office = await org.channel("office", "ann", "ben", is_private=True, history_public=False)
    message = await ben.send("office", "t", "mine")
    assert (await ben.post("/user_topics", stream_id=office, topic="t", visibility_policy=3)).ok
    name = json.dumps(["office"])
    assert (await ben.delete("/users/me/subscriptions", subscriptions=name)).ok
    ann = org["ann"]
    assert (await ann.patch(f"/streams/{office}", new_name="secret merger")).ok
    moved = {"topic": "lay-offs", "propagate_mode": "change_all"}
    assert (await ann.patch(f"/messages/{message}", **moved)).ok
    archive = await exported(org, ben)
    text = b"".join(archive.read(name) for name in archive.namelist())
    assert b"merger" not in text
    assert b"lay-offs" not in text
    assert [one["content"] for one in objects(archive, "messages-0001.json")] == ["mine"]


async def test_long_histories_are_written_in_pages(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("PAGE", 2), ("PER_FILE", 4), ("RANGE", 3), ("STARS_PAGE", 1)):
        monkeypatch.setattr(personal_data, name, size)
    ben = org["ben"]
    await org.channel("lounge", "ben")
    sent = [await ben.send("lounge", "t", f"m{number}") for number in range(9)]
    for message_id in sent[::2]:
        assert (await ben.post(f"/messages/{message_id}/reactions", emoji_name="tada")).ok
    assert (await ben.post("/messages/flags", messages=sent, op="add", flag="starred")).ok
    archive = await exported(org, ben)
    parts = sorted(name for name in archive.namelist() if name.startswith("messages-"))
    assert [len(objects(archive, name)) for name in parts] == [4, 4, 1]
    assert [one["id"] for name in parts for one in objects(archive, name)] == sent
    assert [one["message_id"] for one in objects(archive, "stars.json")] == sent
    assert [one["message_id"] for one in objects(archive, "reactions.json")] == sent[::2]


async def test_once_a_day_and_one_at_a_time(org: Organization, clock: TestClock) -> None:
    ben = org["ben"]
    first = (await ben.post("/users/me/data_export")).ok["data_export"]["id"]
    (await ben.post("/users/me/data_export")).refused()
    assert (await org["cleo"].post("/users/me/data_export")).ok
    await exports(org.node).once()
    (await ben.post("/users/me/data_export")).refused("RATE_LIMIT_HIT", 429)
    # Deleting an export doesn't allow another one.
    assert (await ben.delete(f"/users/me/data_exports/{first}")).ok
    (await ben.post("/users/me/data_export")).refused("RATE_LIMIT_HIT", 429)
    clock.ahead += DAY
    assert (await ben.post("/users/me/data_export")).ok
    (await org["robo"].post("/users/me/data_export")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_person_is_told_and_the_file_is_deleted_after_a_week(
    org: Organization, clock: TestClock
) -> None:
    ben = org["ben"]
    listener = await ben.register(event_types=["message"])
    await exported(org, ben)
    (event,) = await listener.events()
    assert "data export is ready" in event["message"]["content"]
    (listed,) = (await ben.get("/users/me/data_exports")).ok["data_exports"]
    assert listed["size"] > 0
    assert listed["expires_at"] == listed["finished_at"] + 7 * DAY
    url = (await ben.get(f"/users/me/data_exports/{listed['id']}")).ok["url"]
    clock.ahead += 301
    assert (await org.http.get(url)).status_code == 404
    clock.ahead += 7 * DAY
    await exports(org.node).once()
    assert [one async for one in org.node.files.below(EXPORTS)] == []
    (await ben.get(f"/users/me/data_exports/{listed['id']}")).refused()
    clock.ahead += DAY
    await exports(org.node).once()
    assert (await ben.get("/users/me/data_exports")).ok["data_exports"] == []


async def test_others_can_not_open_or_delete_an_export(org: Organization) -> None:
    await exported(org, org["ben"])
    (export,) = org.node.state.data_exports
    for who in ("ann", "cleo"):
        (await org[who].get(f"/users/me/data_exports/{export.id}")).refused(status=404)
        (await org[who].delete(f"/users/me/data_exports/{export.id}")).refused(status=404)
        assert (await org[who].get("/users/me/data_exports")).ok["data_exports"] == []
    assert (await org.http.get(f"/user_exports/{export.id}/x.zip")).status_code == 404
    assert (await org["ann"].open(f"/user_uploads/{export.path}")).status_code in {400, 403, 404}
    kept = [one.path async for one in org.node.files.kept()]
    assert export.path not in kept, "backups leave it out"


async def test_deleting_removes_the_file_and_cancels_pending_ones(org: Organization) -> None:
    ben = org["ben"]
    await exported(org, ben)
    (export,) = org.node.state.data_exports
    url = (await ben.get(f"/users/me/data_exports/{export.id}")).ok["url"]
    assert (await ben.delete(f"/users/me/data_exports/{export.id}")).ok
    assert (await org.http.get(url)).status_code == 404
    await exports(org.node).once()
    assert [one async for one in org.node.files.below(EXPORTS)] == []
    other = (await org["cleo"].post("/users/me/data_export")).ok["data_export"]["id"]
    assert (await org["cleo"].delete(f"/users/me/data_exports/{other}")).ok
    await exports(org.node).once()
    assert not org.node.state.data_exports[other].finished_at


async def test_failing_export_is_given_up_and_the_person_is_told(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("a secret reason")

    monkeypatch.setattr(job, "MAKERS", {ExportKind.PERSON: fails})
    monkeypatch.setattr(job, "ATTEMPTS", 1)
    ben = org["ben"]
    listener = await ben.register(event_types=["message"])
    assert (await ben.post("/users/me/data_export")).ok
    await exports(org.node).once()
    (event,) = await listener.events()
    assert "couldn’t be exported" in event["message"]["content"]
    assert "secret reason" not in event["message"]["content"]
    monkeypatch.undo()
    assert (await ben.post("/users/me/data_export")).ok, "a failed one doesn't count"


@pytest.mark.usefixtures("no_jobs")
async def test_export_is_made_after_a_restart(config: Config) -> None:
    async with new_organization(config, others=OTHERS) as org:
        assert (await org["ben"].post("/users/me/data_export")).ok
    stale = Path(config.data_dir) / "exports"
    stale.mkdir()
    (stale / "left").write_text("by a killed node, before it was noted")
    async with open_organization(config) as org:
        await exports(org.node).once()
        (export,) = org.node.state.data_exports
        assert export.finished_at
        assert [one.path async for one in org.node.files.below(EXPORTS)] == [export.path]


async def test_export_has_nothing_of_others_beyond_what_the_person_sees(org: Organization) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    office = await org.channel(
        "office", "ann", "ben", "cleo", is_private=True, history_public=False
    )
    await org.channel("cellar", "ann", "cleo", is_private=True)
    own = await ben.send("office", "plans", "what ben said")
    starred = await cleo.send("office", "plans", "secret of the office")
    voted = await cleo.send("office", "plans", "/poll Secret question?")
    for one in (starred, voted):
        assert (await ben.post(f"/messages/{one}/reactions", emoji_name="tada")).ok
        assert (await ben.post("/messages/flags", messages=[one], op="add", flag="starred")).ok
    vote = {"type": "new_option", "idx": 1, "option": "secret option of cleo"}
    widget = {"message_id": voted, "msg_type": "widget"}
    assert (await cleo.post("/submessage", **widget, content=json.dumps(vote))).ok
    await cleo.send("cellar", "secret topic", "secret of the cellar")
    await cleo.write([ann.user_id], "secret between ann and cleo")
    await cleo.write([ben.user_id], "secret answer to ben")
    draft = {"type": "", "to": [], "topic": "", "content": "secret draft", "timestamp": 1}
    assert (await cleo.post("/drafts", drafts=[draft])).ok
    assert (await cleo.post("/saved_snippets", title="secret snippet", content="hello")).ok
    assert (await cleo.post("/users/me/alert_words", alert_words=["secretword"])).ok
    reminder = {"message_id": starred, "note": "secret note"}
    assert (await cleo.post("/reminders", **reminder, scheduled_delivery_timestamp=later(org))).ok
    assert (await cleo.post("/users/me/status", status_text="secret status")).ok
    shared = await cleo.upload("secret file.txt", b"secret in a file")
    await cleo.send("office", "plans", f"[file](/user_uploads/{shared})")
    assert (await cleo.patch("/settings", email_address_visibility=5)).ok
    leaving = {"subscriptions": json.dumps(["office"])}
    assert (await ben.delete("/users/me/subscriptions", **leaving)).ok
    await ann.send("office", "plans", "secret after ben left")
    assert (await ann.patch(f"/streams/{office}", new_name="secret name")).ok

    archive = await exported(org, ben)
    texts = [archive.read(name) for name in archive.namelist()]
    assert [text for text in texts if b"secret" in text] == []
    assert [name for name in archive.namelist() if "secret" in name] == []
    for other in (ann, cleo):
        assert [text for text in texts if other.email.encode() in text] == []
        assert [text for text in texts if other.api_key.encode() in text] == []
    # People's own data stays, even where they no longer have access.
    assert [one["id"] for one in objects(archive, "messages-0001.json")] == [own]
    assert {one["message_id"] for one in objects(archive, "stars.json")} <= {starred, voted}
    assert {one["message_id"] for one in objects(archive, "reactions.json")} == {starred, voted}
