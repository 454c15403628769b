"""Data that an access key doesn't see if it's limited to some channels, or without direct
messages."""

import json
import time
from typing import Any, NamedTuple

import pytest

from tertulia.domain.messages import scheduled
from tertulia.model.errors import Refused
from tertulia.service.messages.scheduled import send_scheduled
from tests.support import Listener, Organization, Person, Reply
from tests.wire.test_access_keys import INSUFFICIENT, create_key, listed

pytestmark = pytest.mark.usefixtures("no_logged_errors")

MARK = "zanzibar"
"""A text in everything that the key may not see: names, topics, messages."""


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
    # The key can't make a file readable by linking it.
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
    """Do one action of each kind in places that the key doesn't see. Return a message in the
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


# Working with messages


def assert_refused(reply: Reply) -> None:
    assert reply.status in {400, 403, 404}, reply.body


async def test_flags_are_set_only_in_reach(org: Organization) -> None:
    places = await prepare(org)
    program = await limited_key(org, places, "send")
    for flag in ("read", "starred", "collapsed"):
        asked: dict[str, Any] = {"op": "add", "flag": flag}
        (await program.post("/messages/flags", messages=[places.seen], **asked)).ok
        for message_id in places.unseen:
            messages = [places.seen, message_id]
            assert_refused(await program.post("/messages/flags", messages=messages, **asked))
        page = {"anchor": "newest", "num_before": 100, "num_after": 0, "narrow": []}
        done = (await program.post("/messages/flags/narrow", **page, **asked)).ok
        assert (done["processed_count"], done["last_processed_id"]) == (1, places.seen)
    for channel in (places.private, places.public):
        assert_refused(await program.post("/mark_stream_as_read", stream_id=channel))
        asked = {"stream_id": channel, "topic_name": MARK}
        assert_refused(await program.post("/mark_topic_as_read", **asked))
    (await program.post("/mark_stream_as_read", stream_id=places.kitchen)).ok
    (await program.post("/mark_all_as_read")).refused(INSUFFICIENT, 403)
    for message_id in places.unseen:
        one = (await org["ben"].get(f"/messages/{message_id}")).ok["message"]
        assert not {"read", "starred", "collapsed"} & set(one["flags"])


async def test_topics_are_followed_only_in_reach(org: Organization) -> None:
    places, ben = await prepare(org), org["ben"]
    asked = {"stream_id": places.public, "topic": MARK}
    (await ben.post("/user_topics", **asked, visibility_policy=3)).ok
    program = await limited_key(org, places, "send")
    for policy in (0, 1, 2, 3):
        assert_refused(await program.post("/user_topics", **asked, visibility_policy=policy))
    for muted in ("add", "remove"):
        sent = {"stream_id": places.public, "topic": MARK, "op": muted}
        assert_refused(await program.patch("/users/me/subscriptions/muted_topics", **sent))
    asked = {"stream_id": places.kitchen, "topic": "soup"}
    (await program.post("/user_topics", **asked, visibility_policy=3)).ok
    listed = (await ben.register(fetch_event_types=["user_topic"])).data["user_topics"]
    assert [one["visibility_policy"] for one in listed] == [3, 3]


async def test_drafts_are_within_the_reach(org: Organization) -> None:
    places, ben = await prepare(org), org["ben"]

    def draft(kind: str, *to: int) -> dict[str, Any]:
        return {"type": kind, "to": to, "topic": "soup", "content": MARK}

    others = [
        draft("stream", places.public),
        draft("private", org["ann"].user_id),
        draft("private"),
        draft(""),
    ]
    hidden = (await ben.post("/drafts", drafts=others)).ok["ids"]
    program = await limited_key(org, places, "send")
    for one in others:
        assert_refused(await program.post("/drafts", drafts=[one]))
    (own,) = (await program.post("/drafts", drafts=[draft("stream", places.kitchen)])).ok["ids"]
    assert [one["id"] for one in (await program.get("/drafts")).ok["drafts"]] == [own]
    for draft_id in hidden:
        edited = draft("stream", places.kitchen)
        assert_refused(await program.patch(f"/drafts/{draft_id}", draft=edited))
        assert_refused(await program.delete(f"/drafts/{draft_id}"))
    for one in others:
        assert_refused(await program.patch(f"/drafts/{own}", draft=one))
    (await program.delete(f"/drafts/{own}")).ok
    assert len((await ben.get("/drafts")).ok["drafts"]) == len(hidden)


def scheduled_to(channel_id: int, content: str = "later", **more: Any) -> dict[str, Any]:
    sent = {"type": "stream", "to": channel_id, "topic": "soup", "content": content}
    return {**sent, "scheduled_delivery_timestamp": int(time.time()) + 1000, **more}


async def test_scheduled_messages_are_within_the_reach(org: Organization) -> None:
    places, ben = await prepare(org), org["ben"]
    direct: dict[str, Any] = {"type": "direct", "to": [org["ann"].user_id]}
    others = [scheduled_to(places.public), scheduled_to(places.private)]
    others.append(scheduled_to(0, **direct))
    hidden = [
        (await ben.post("/scheduled_messages", **one)).ok["scheduled_message_id"] for one in others
    ]
    program = await limited_key(org, places, "send")
    for one in others:
        assert_refused(await program.post("/scheduled_messages", **one))
    made = (await program.post("/scheduled_messages", **scheduled_to(places.kitchen))).ok
    own = made["scheduled_message_id"]
    listed = (await program.get("/scheduled_messages")).ok["scheduled_messages"]
    assert [one["scheduled_message_id"] for one in listed] == [own]
    for scheduled_id in hidden:
        path = f"/scheduled_messages/{scheduled_id}"
        assert_refused(await program.patch(path, content="x"))
        assert_refused(await program.post(f"{path}/send"))
        assert_refused(await program.delete(path))
    path = f"/scheduled_messages/{own}"
    assert_refused(await program.patch(path, type="stream", to=places.public, topic="x"))
    (await program.patch(path, content="sooner")).ok
    (await program.post(f"{path}/send")).ok
    assert len((await ben.get("/scheduled_messages")).ok["scheduled_messages"]) == 3


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_a_scheduled_message_is_sent_with_the_key_that_scheduled_it(
    org: Organization, is_revoked: bool
) -> None:
    places, ben = await prepare(org), org["ben"]
    program = await limited_key(org, places, "send")
    linked = scheduled_to(places.kitchen, f"[file](/user_uploads/{places.file})")
    (await program.post("/scheduled_messages", **linked)).ok
    if is_revoked:
        (await ben.delete(f"/users/me/keys/{(await listed(ben))[0]['key_id']}")).ok
    (waiting,) = org.node.state.scheduled_messages
    if not is_revoked:
        await send_scheduled(org.node, waiting)
        # The key can't make a file readable by linking it later.
        assert (await program.open(f"/user_uploads/{places.file}")).status_code == 403
        return
    with pytest.raises(Refused, match="revoked"):
        await send_scheduled(org.node, waiting)
    await org.node.log.submit(
        None, scheduled.give_up, org.node.renderer.render, waiting, "The key was revoked."
    )
    (failed,) = (await ben.get("/scheduled_messages")).ok["scheduled_messages"]
    assert failed["failed"]
    # Its author can schedule it again, for the whole account.
    path = f"/scheduled_messages/{failed['scheduled_message_id']}"
    (await ben.patch(path, scheduled_delivery_timestamp=int(time.time()) + 2000)).ok
    (again,) = org.node.state.scheduled_messages
    await send_scheduled(org.node, again)
    assert not (await ben.get("/scheduled_messages")).ok["scheduled_messages"]


async def test_messages_are_edited_and_moved_only_in_reach(org: Organization) -> None:
    places, ben = await prepare(org), org["ben"]
    hidden = await ben.send(places.public, MARK, MARK)
    program = await limited_key(org, places)
    own = await program.send(places.kitchen, "soup", "hello")
    (await program.patch(f"/messages/{own}", content="hello again")).ok
    (await program.patch(f"/messages/{own}", topic="stew")).ok
    asked = {"stream_id": places.public, "propagate_mode": "change_all"}
    (await program.patch(f"/messages/{own}", **asked)).refused("STREAM_DOES_NOT_EXIST")
    for message_id in (hidden, *places.unseen):
        path = f"/messages/{message_id}"
        replies = [
            await program.patch(path, content="x"),
            await program.patch(path, content="x", prev_content_sha256="0" * 64),
            await program.post(f"{path}/pin"),
            await program.delete(f"{path}/pin"),
            await program.post(f"{path}/typing", op="start"),
            # The response doesn't reveal whether the topic has this name either.
            *[
                await program.patch(path, topic=topic, propagate_mode=mode)
                for topic in (MARK, "other")
                for mode in ("change_one", "change_all")
            ],
        ]
        assert {one.status for one in replies} <= {400, 404}
        assert MARK not in "".join(json.dumps(one.body) for one in replies)
        assert len({one.body["msg"] for one in replies[-4:]}) == 1
    reply = await program.post(f"/streams/{places.public}/delete_topic", topic_name=MARK)
    reply.refused("BAD_REQUEST")
    (await program.post(f"/messages/{own}/typing", op="start")).ok
    (await program.post(f"/messages/{own}/pin")).ok
    (await program.delete(f"/messages/{own}/pin")).ok
    (await program.delete(f"/messages/{own}")).ok


async def test_people_elsewhere_are_not_shown(org: Organization) -> None:
    places = await prepare(org)
    program = await limited_key(org, places, "read")
    ann, cleo = org["ann"], org["cleo"]
    assert (await program.get(f"/users/{ann.user_id}")).ok["user"]["user_id"] == ann.user_id
    assert (await program.get(f"/users/{ann.email}")).ok["user"]["user_id"] == ann.user_id
    unknown = await program.get("/users/999")
    for name in (cleo.user_id, cleo.email, f"user{cleo.user_id}@example.com"):
        assert (await program.get(f"/users/{name}")).body == unknown.body
        pictures = [
            (await program.open(f"/avatar/{one}")).headers["location"]
            for one in (name, "nobody@example.com")
        ]
        assert pictures[0] == pictures[1]
    assert (await program.open(f"/avatar/{ann.user_id}")).headers["location"] != pictures[0]
