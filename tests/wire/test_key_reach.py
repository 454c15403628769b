"""What an access key doesn't see that is limited to some channels, or without direct messages."""

import json
from typing import Any, NamedTuple

import pytest

from tests.support import Listener, Organization, Person
from tests.wire.test_access_keys import INSUFFICIENT, create_key

pytestmark = pytest.mark.usefixtures("no_logged_errors")

MARK = "zanzibar"
"""In everything that the key may not see: names, topics, texts."""


class Places(NamedTuple):
    kitchen: int
    """A private channel that the key reaches."""
    private: int
    public: int
    seen: int
    """A message in the kitchen."""
    unseen: tuple[int, ...]
    """Messages elsewhere: in both channels, and a direct one."""
    file: str
    """A file of ann's that only a direct message links."""


async def prepare(org: Organization) -> Places:
    ann, ben = org["ann"], org["ben"]
    kitchen = await org.channel("kitchen", "ann", "ben", is_private=True)
    private = await org.channel(f"{MARK} board", "ann", "ben", is_private=True)
    public = await org.channel(f"{MARK} lounge", "ann", "ben", "cleo")
    file = await ann.upload(f"{MARK}.txt", MARK.encode())
    seen = await ann.send(kitchen, "soup", "with carrots")
    unseen = (
        await ann.send(private, MARK, f"{MARK} carrots"),
        await ann.send(public, MARK, f"{MARK} carrots"),
        await ann.write([ben.user_id], f"{MARK} carrots [file](/user_uploads/{file})"),
    )
    return Places(kitchen, private, public, seen, unseen, file)


async def limited_key(org: Organization, places: Places, access: str = "full") -> Person:
    return await create_key(org["ben"], access=access, channel_ids=[places.kitchen])


async def test_nothing_else_is_read(org: Organization) -> None:
    places = await prepare(org)
    program = await limited_key(org, places, "read")
    page = {"anchor": "newest", "num_before": 100, "num_after": 0}
    ids = [places.seen, *places.unseen]
    narrows: list[list[dict[str, Any]]] = [
        [],
        [{"operator": "channels", "operand": "public"}],
        [{"operator": "search", "operand": "carrots"}],
        [{"operator": "sender", "operand": org["ann"].user_id}],
        [{"operator": "has", "operand": "link", "negated": True}],
    ]
    texts: list[str] = []
    for narrow in narrows:
        found = (await program.get("/messages", narrow=narrow, **page)).ok
        assert {one["id"] for one in found["messages"]} <= {places.seen}, narrow
        texts.append(json.dumps(found))
    found = (await program.get("/messages", narrow=[], **page)).ok
    assert [one["id"] for one in found["messages"]] == [places.seen]
    by_id = (await program.get("/messages", message_ids=ids)).ok
    assert [one["id"] for one in by_id["messages"]] == [places.seen]
    for narrow in (
        [{"operator": "channel", "operand": places.private}],
        [{"operator": "channel", "operand": f"{MARK} lounge"}],
        [{"operator": "is", "operand": "dm"}],
        [{"operator": "dm", "operand": [org["ann"].user_id]}],
        [{"operator": "with", "operand": places.unseen[0]}],
        [{"operator": "id", "operand": places.unseen[1]}],
    ):
        reply = await program.get("/messages", narrow=narrow, **page)
        assert not reply.body.get("messages"), narrow
    for message_id in places.unseen:
        (await program.get(f"/messages/{message_id}")).refused()
        (await program.get(f"/messages/{message_id}/history")).refused()
        (await program.get(f"/messages/{message_id}/read_receipts")).refused()
    for channel in (places.private, places.public):
        (await program.get(f"/streams/{channel}")).refused()
        (await program.get(f"/streams/{channel}/members")).refused()
        (await program.get(f"/users/me/{channel}/topics")).refused()
        (await program.get(f"/streams/{channel}/pins")).refused()
    (await program.get("/get_stream_id", stream=f"{MARK} lounge")).refused()
    matches = await program.get("/messages/matches_narrow", msg_ids=ids, narrow=narrows[2])
    assert [*matches.ok["messages"]] == [str(places.seen)]
    paths = (
        "/streams",
        "/users/me/subscriptions",
        "/users",
        "/users/me",
        f"/streams/{places.kitchen}",
        f"/streams/{places.kitchen}/members",
        f"/users/me/{places.kitchen}/topics",
        f"/messages/{places.seen}",
    )
    texts += [json.dumps((await program.get(path)).ok) for path in paths]
    rendered = await program.post("/messages/render", content=f"#**{MARK} lounge**")
    assert "data-stream-id" not in json.dumps(rendered.ok)
    assert MARK not in "".join(texts)
    people = [one["user_id"] for one in (await program.get("/users")).ok["members"]]
    assert sorted(people) == sorted([org["ann"].user_id, org["ben"].user_id])


async def test_files_open_only_if_a_message_in_reach_links_them(org: Organization) -> None:
    places = await prepare(org)
    program = await limited_key(org, places, "read")
    assert (await org["ben"].open(f"/user_uploads/{places.file}")).status_code == 200
    assert (await program.open(f"/user_uploads/{places.file}")).status_code == 403
    path = f"/user_uploads/{places.file}?api_key={program.api_key}"
    assert (await org.http.get(path)).status_code == 403
    (await program.get(f"/user_uploads/{places.file}")).refused(status=403)
    await org["ann"].send(places.kitchen, "soup", f"[file](/user_uploads/{places.file})")
    assert (await program.open(f"/user_uploads/{places.file}")).status_code == 200
    assert (await org.http.get(path)).status_code == 200


async def test_the_owner_s_own_files_open_only_in_reach(org: Organization) -> None:
    places, ben = await prepare(org), org["ben"]
    program, other = await limited_key(org, places), await create_key(ben, "Phone")
    hidden, loose = await ben.upload(), await program.upload()
    await ben.send(places.private, "x", f"[file](/user_uploads/{hidden})")
    assert (await program.open(f"/user_uploads/{hidden}")).status_code == 403
    assert (await other.open(f"/user_uploads/{hidden}")).status_code == 200
    assert (await program.open(f"/user_uploads/{loose}")).status_code == 200
    for file in (hidden, loose):
        await program.send(places.kitchen, "x", f"[file](/user_uploads/{file})")
    assert (await program.open(f"/user_uploads/{hidden}")).status_code == 403
    assert (await org["ann"].open(f"/user_uploads/{loose}")).status_code == 200
    assert (await program.open(f"/user_uploads/{loose}")).status_code == 200


async def test_nothing_is_written_elsewhere(org: Organization) -> None:
    places = await prepare(org)
    program, ann = await limited_key(org, places), org["ann"]
    await program.send(places.kitchen, "soup", "more salt")
    for to in (places.private, f"{MARK} lounge", "kitchen sink"):
        reply = await program.post("/messages", type="stream", to=to, topic="x", content="hi")
        reply.refused("STREAM_DOES_NOT_EXIST")
    reply = await program.post("/messages", type="direct", to=[ann.user_id], content="hi")
    reply.refused(INSUFFICIENT, 403)
    typing = {"op": "start", "type": "direct", "to": [ann.user_id]}
    (await program.post("/typing", **typing)).refused(INSUFFICIENT, 403)
    for message_id in places.unseen:
        path = f"/messages/{message_id}"
        (await program.post(f"{path}/reactions", emoji_name="tada")).refused()
        (await program.delete(path)).refused()
    (await program.post(f"/messages/{places.seen}/reactions", emoji_name="tada")).ok
    # It can't make a file readable by linking it.
    await program.send(places.kitchen, "soup", f"[file](/user_uploads/{places.file})")
    assert (await program.open(f"/user_uploads/{places.file}")).status_code == 403


async def test_the_register_data_is_within_the_reach(org: Organization) -> None:
    places = await prepare(org)
    await org["ben"].post("/user_topics", stream_id=places.public, topic=MARK, visibility_policy=3)
    program = await limited_key(org, places, "read")
    data = (await program.register()).data
    assert MARK not in json.dumps(data)
    assert [one["stream_id"] for one in data["subscriptions"]] == [places.kitchen]
    assert [one["stream_id"] for one in data["streams"]] == [places.kitchen]
    assert data["never_subscribed"] == data["unsubscribed"] == data["user_topics"] == []
    assert data["recent_private_conversations"] == []
    people = [one["user_id"] for one in data["realm_users"]]
    assert sorted(people) == sorted([org["ann"].user_id, org["ben"].user_id])
    for name in ("drafts", "update_message_flags", "starred_messages", "scheduled_messages"):
        (await program.post("/register", event_types=[name])).refused(INSUFFICIENT, 403)
        asked = {"event_types": ["message"], "fetch_event_types": [name]}
        (await program.post("/register", **asked)).refused(INSUFFICIENT, 403)


async def everything_happens(org: Organization, places: Places) -> int:
    """Do something of each kind in places that the key doesn't see. Returns a message in the
    kitchen that was moved away."""
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    for message_id in places.unseen:
        (await ann.post(f"/messages/{message_id}/reactions", emoji_name="tada")).ok
        (await ann.patch(f"/messages/{message_id}", content=f"{MARK} edited")).ok
        (await ben.post("/messages/flags", messages=[message_id], op="add", flag="starred")).ok
    for channel in (places.private, places.public):
        await ann.send(channel, MARK, f"@**all** {MARK}")
        asked = {"op": "start", "type": "stream", "stream_id": channel, "topic": MARK}
        (await ann.post("/typing", **asked)).ok
        (await ann.patch(f"/streams/{channel}", description=MARK)).ok
        asked = {"stream_id": channel, "topic": MARK, "visibility_policy": 3}
        (await ben.post("/user_topics", **asked)).ok
        asked = {"subscriptions": [f"{MARK} {'board' if channel == places.private else 'lounge'}"]}
        (await ann.delete("/users/me/subscriptions", principals=[ben.user_id], **asked)).ok
    await org.channel(f"{MARK} new", "ann", "ben")
    await ann.write([ben.user_id], MARK)
    (await ann.post("/typing", op="start", type="direct", to=[ben.user_id])).ok
    (await ben.post("/drafts", drafts=[_draft(places)])).ok
    moved = await ann.send(places.kitchen, "soup", "to move")
    asked = {"stream_id": places.public, "topic": MARK, "propagate_mode": "change_one"}
    (await ann.patch(f"/messages/{moved}", **asked)).ok
    (await ann.patch(f"/messages/{moved}", content=MARK)).ok
    (await cleo.post(f"/messages/{moved}/reactions", emoji_name="tada")).ok
    (await ann.delete(f"/messages/{places.unseen[2]}")).ok
    (await ann.delete(f"/messages/{places.unseen[0]}")).ok
    return moved


def _draft(places: Places) -> dict[str, Any]:
    return {"type": "stream", "to": [places.public], "topic": MARK, "content": MARK}


@pytest.mark.parametrize("is_online", [True, False])
async def test_events_are_within_the_reach(org: Organization, is_online: bool) -> None:
    places = await prepare(org)
    program = await limited_key(org, places, "read")
    types = {"bulk_message_deletion": True, "stream_typing_notifications": True}
    listener = await program.register(client_capabilities=types)
    of_owner = await org["ben"].register(client_capabilities=types)
    moved = await everything_happens(org, places)
    if not is_online:
        org.node.delivery.recent.clear()
    events = await listener.events()
    assert MARK not in json.dumps(events)
    kinds = [one["type"] for one in events]
    assert kinds == ["delete_message"], events
    assert events[0]["message_ids"] == [moved]
    assert len(await of_owner.events()) > 10


async def test_events_in_reach_arrive(org: Organization) -> None:
    places = await prepare(org)
    program, ann = await limited_key(org, places, "read"), org["ann"]
    capabilities = {"stream_typing_notifications": True}
    listener = await program.register(client_capabilities=capabilities)
    (await ann.post(f"/messages/{places.seen}/reactions", emoji_name="tada")).ok
    (await ann.patch(f"/messages/{places.seen}", content="with leeks")).ok
    asked = {"op": "start", "type": "stream", "stream_id": places.kitchen, "topic": "soup"}
    (await ann.post("/typing", **asked)).ok
    (await ann.patch(f"/streams/{places.kitchen}", description="warm")).ok
    sent = await ann.send(places.kitchen, "soup", "soon gone")
    await listener.events(acknowledge=False)
    (await ann.delete(f"/messages/{sent}")).ok
    kinds = {one["type"] for one in await listener.events()}
    wanted = {"reaction", "update_message", "typing", "stream", "message", "delete_message"}
    assert kinds == wanted


async def test_a_key_without_direct_messages_sees_all_channels(org: Organization) -> None:
    places = await prepare(org)
    program = await create_key(org["ben"], access="read", direct_messages=False)
    page = {"anchor": "newest", "num_before": 100, "num_after": 0}
    found = (await program.get("/messages", narrow=[], **page)).ok["messages"]
    assert {one["id"] for one in found} == {places.seen, *places.unseen[:2]}
    listener: Listener = await program.register(event_types=["message"])
    await org["ann"].write([org["ben"].user_id], MARK)
    sent = await org["ann"].send(places.public, "x", "hello")
    assert [one["message"]["id"] for one in await listener.events()] == [sent]
