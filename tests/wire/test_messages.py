"""Sending messages."""

import asyncio
from typing import Any

import pytest

from tertulia.domain.messages.sending import MessageDraft
from tertulia.log import replica
from tertulia.model.changes import ChannelChanged, MessageSent, RealmChanged, UserDeactivated
from tertulia.model.channels import TopicsPolicy
from tertulia.model.groups import SystemGroup
from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.state import messages
from tertulia.state.state import State
from tests.support import Organization, new_organization, open_organization, row

pytestmark = pytest.mark.usefixtures("no_logged_errors")

NOBODY = SystemGroup.NOBODY.value
ADMINISTRATORS = SystemGroup.ADMINISTRATORS.value


async def test_a_channel_message_reaches_every_subscriber_once(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    sent = await org["ann"].send("lounge", "greetings", "hello")
    for listener in (ann, ben):
        (event,) = await listener.events()
        assert event["type"] == "message"
        assert event["message"]["id"] == sent
        assert event["message"]["stream_id"] == channel
        assert event["message"]["content"] == "hello"
    assert await cleo.events() == []


async def test_a_direct_message_reaches_only_its_participants(org: Organization) -> None:
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    await org["ann"].write([org["ben"].user_id], "psst")
    assert [len(await one.events()) for one in (ann, ben, cleo)] == [1, 1, 0]


# Recipients


async def test_a_channel_can_be_given_in_many_forms(org: Organization) -> None:
    channel = await org.channel("Größe 7", "ann")
    ann = org["ann"]
    ways = ["Größe 7", " größe 7 ", '"Größe 7"', '["Größe 7"]', channel, [channel], f"[{channel}]"]
    for to in ways:
        for kind in ("stream", "channel", '"channel"'):
            sent = (await ann.post("/messages", type=kind, to=to, topic="t", content="x")).ok["id"]
            message = (await ann.get(f"/messages/{sent}")).ok["message"]
            assert (message["type"], message["stream_id"]) == ("stream", channel)
            assert message["display_recipient"] == "Größe 7"


async def test_a_channel_whose_name_is_json_is_found(org: Organization) -> None:
    ann = org["ann"]
    for name in ("1.5", "true", "null", "{x", "[x]"):
        channel = await org.channel(name, "ann")
        sent = await ann.send(name, "t", "x")
        assert (await ann.get(f"/messages/{sent}")).ok["message"]["stream_id"] == channel


async def test_people_can_be_given_in_many_forms(org: Organization) -> None:
    ann, ben, cleo = (org[name] for name in ("ann", "ben", "cleo"))
    one, both = [ann.user_id, ben.user_id], [ann.user_id, ben.user_id, cleo.user_id]
    table: list[tuple[Any, list[int]]] = [
        (ben.user_id, one),
        ([ben.user_id], one),
        ([ben.user_id, ben.user_id, ann.user_id], one),
        (ben.email, one),
        (f'"{ben.email}"', one),
        ([ben.email.upper()], one),
        ([f"user{ben.user_id}@chat.test"], one),
        (f"{ben.email}, {cleo.email}", both),
        ([ben.email, cleo.email], both),
        ([cleo.user_id, ben.user_id], both),
        (ann.user_id, [ann.user_id]),
        ([ann.email], [ann.user_id]),
    ]
    for to, members in table:
        for kind in ("direct", "private"):
            sent = (await ann.post("/messages", type=kind, to=to, content="x")).ok["id"]
            message = (await ann.get(f"/messages/{sent}")).ok["message"]
            assert message["type"] == "private"
            assert message["subject"] == ""
            assert [one["id"] for one in message["display_recipient"]] == members, to


@pytest.mark.parametrize(
    "to",
    [
        None,
        "",
        ",",
        "[]",
        '[""]',
        "nobody@example.com",
        "[999999]",
        "-1",
        "0",
        f"[{2**63}]",
        f"{10**30}",
        '["nobody@example.com"]',
        "user999999@chat.test",
        "[null]",
        "[true]",
        "{}",
        '[1, "ben@example.com"]',
        '["ben@example.com", 1]',
        "a\0b",
        '["a\\u0000b"]',
        "x" * 10_000,
    ],
)
async def test_unknown_people_cannot_be_written_to(
    readonly_org: Organization, to: str | None
) -> None:
    reply = await readonly_org["ann"].post("/messages", type="direct", to=to, content="x")
    assert reply.status == 400
    assert reply.body["result"] == "error"


@pytest.fixture(scope="module")
async def kept_lounge(shared_org: Organization) -> Organization:
    """A channel of ann's and ben's."""
    await shared_org.channel("lounge", "ann", "ben")
    return shared_org


@pytest.mark.parametrize(
    ("to", "code", "extra"),
    [
        (None, "BAD_REQUEST", {}),
        ("", "BAD_REQUEST", {}),
        ("[]", "BAD_REQUEST", {}),
        ('["lounge", "den"]', "BAD_REQUEST", {}),
        ("[1, 2]", "BAD_REQUEST", {}),
        ("nowhere", "STREAM_DOES_NOT_EXIST", {"stream": "nowhere"}),
        ("999999", "STREAM_DOES_NOT_EXIST", {"stream_id": 999999}),
        (f"{10**30}", "REQUEST_VARIABLE_INVALID", {"var_name": "to"}),
        (f"[{2**63}]", "REQUEST_VARIABLE_INVALID", {"var_name": "to"}),
        ('[1, "lounge"]', "REQUEST_VARIABLE_INVALID", {"var_name": "to"}),
        ("lounge\0", "REQUEST_VARIABLE_INVALID", {"var_name": "to"}),
        ('"lounge\\u0000"', "REQUEST_VARIABLE_INVALID", {"var_name": "to"}),
    ],
)
async def test_an_unknown_channel_cannot_be_written_to(
    kept_lounge: Organization,
    readonly_org: Organization,
    to: str | None,
    code: str,
    extra: dict[str, Any],
) -> None:
    reply = await readonly_org["ann"].post(
        "/messages", type="stream", to=to, topic="t", content="x"
    )
    body = reply.refused(code)
    assert {name: body[name] for name in extra} == extra


async def test_an_invisible_channel_looks_like_an_unknown_one(org: Organization) -> None:
    secret = await org.channel("secret", "ann", is_private=True)
    public = await org.channel("public", "ann")
    sent = {"type": "stream", "topic": "t", "content": "x"}
    for name, channels in (("ben", [secret]), ("gus", [secret, public])):
        unknown = (await org[name].post("/messages", to=999999, **sent)).refused(
            "STREAM_DOES_NOT_EXIST"
        )
        for channel in channels:
            hidden = (await org[name].post("/messages", to=channel, **sent)).refused(
                "STREAM_DOES_NOT_EXIST"
            )
            assert hidden == {**unknown, "stream_id": channel, "msg": hidden["msg"]}
            assert hidden["msg"] == unknown["msg"].replace("999999", str(channel))


async def test_people_can_post_in_unsubscribed_channels(org: Organization) -> None:
    await org.channel("lounge", "ann")
    ben = await org["ben"].register()
    sent = await org["ben"].send("lounge", "t", "x", read_by_sender=True)
    assert await ben.events() == []
    flags = (await org["ben"].get(f"/messages/{sent}")).ok["message"]["flags"]
    assert flags == ["read", "historical"]


async def test_the_channel_decides_who_can_post(org: Organization) -> None:
    await org.channel("news", "ann", "ben", "robo", can_send_message_group=ADMINISTRATORS)
    await org["ann"].send("news", "t", "x")
    sent = {"type": "stream", "to": "news", "topic": "t", "content": "x"}
    (await org["ben"].post("/messages", **sent)).refused()
    (await org["robo"].post("/messages", **sent)).refused()


async def test_nobody_posts_in_an_archived_channel(org: Organization) -> None:
    channel = await org.channel("old", "ann")
    change = ChannelChanged(
        channel_id=channel, values={"is_archived": True}, was={"is_archived": False}
    )
    await org.do(change, actor="ann")
    sent = {"type": "stream", "to": channel, "topic": "t", "content": "x"}
    (await org["ann"].post("/messages", **sent)).refused()


# Topics


@pytest.mark.parametrize(
    ("topic", "stored"),
    [
        ("tea", "tea"),
        ("  tea \n", "tea"),
        ("", ""),
        ("   ", ""),
        ("(no topic)", ""),
        ("general chat", ""),
        ("General chat", "General chat"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 57 + "..."),
        ("😀" * 200, "😀" * 57 + "..."),
        ("<b>&amp;", "<b>&amp;"),
        ("null", "null"),
    ],
)
async def test_a_topic_is_normalized(kept_lounge: Organization, topic: str, stored: str) -> None:
    sent = await kept_lounge["ann"].send("lounge", topic, "x")
    path = f"/messages/{sent}"
    message = (await kept_lounge["ann"].get(path, allow_empty_topic_name=True)).ok["message"]
    assert message["subject"] == stored
    message = (await kept_lounge["ann"].get(path)).ok["message"]
    assert message["subject"] == (stored or "general chat")


@pytest.mark.parametrize("topic", [None, "a\nb", "a\tb", "a\x7fb", "\ue000", "\uffff", "a\0b"])
async def test_a_topic_of_invisible_characters_is_refused(
    kept_lounge: Organization, readonly_org: Organization, topic: str | None
) -> None:
    reply = await readonly_org["ann"].post(
        "/messages", type="stream", to="lounge", topic=topic, content="x"
    )
    assert reply.status == 400


POLICIES: list[tuple[TopicsPolicy, bool, bool]] = [
    (TopicsPolicy.INHERIT, True, True),
    (TopicsPolicy.ALLOW_EMPTY, True, True),
    (TopicsPolicy.DISABLE_EMPTY, False, True),
    (TopicsPolicy.EMPTY_ONLY, True, False),
]
"""A policy, and whether it allows the empty topic and others."""


async def test_the_channel_s_policy_decides_which_topics_are_allowed(org: Organization) -> None:
    for policy, empty, named in POLICIES:
        with row(policy):
            channel = await org.channel(f"lounge {policy}", "ann", topics_policy=policy)
            for topics, allowed in ((("", "(no topic)"), empty), (("tea",), named)):
                for topic in topics:
                    sent = {"type": "stream", "to": channel, "topic": topic, "content": "x"}
                    reply = await org["ann"].post("/messages", **sent)
                    assert (reply.status == 200) is allowed, topic


async def test_starting_a_topic_needs_permission(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", can_create_topic_group=ADMINISTRATORS)
    sent = {"type": "stream", "to": "lounge", "content": "x"}
    (await org["ben"].post("/messages", topic="Tea", **sent)).refused()
    await org["ann"].send("lounge", "Tea", "x")
    (await org["ben"].post("/messages", topic="tea", **sent)).ok


# Content


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        ("hello", "hello"),
        ("\n\n  hello \t\n", "  hello"),
        ("a\r\nb", "a\r\nb"),
        ("x" * 10_000, "x" * 10_000),
        ("x" * 10_001, "x" * 9_980 + "\n[message truncated]"),
        ("😀" * 20_000, "😀" * 9_980 + "\n[message truncated]"),
        ("x" + " " * 20_000, "x"),
        ('"quoted"', '"quoted"'),
        ("null", "null"),
        ("\u202e\u200b\ufeff", "\u202e\u200b\ufeff"),
    ],
)
async def test_content_is_normalized(shared_org: Organization, content: str, stored: str) -> None:
    sent = await shared_org["ann"].write([shared_org["ben"].user_id], content)
    found = (await shared_org["ben"].get(f"/messages/{sent}", apply_markdown=False)).ok
    assert found["raw_content"] == found["message"]["content"] == stored
    assert found["message"]["content_type"] == "text/x-markdown"


@pytest.mark.parametrize("content", [None, "", "   ", "\n\t\n", "a\0b", "\0"])
async def test_empty_content_is_refused(readonly_org: Organization, content: str | None) -> None:
    reply = await readonly_org["ann"].post(
        "/messages", type="direct", to=[readonly_org["ben"].user_id], content=content
    )
    assert reply.status == 400
    assert await (await readonly_org["ben"].register()).events() == []


# Permissions


async def test_deactivated_people_get_no_messages(org: Organization) -> None:
    await org["ann"].write([org["ben"].user_id], "x")
    await org.do(UserDeactivated(user_id=org["ben"].user_id), actor="ann")
    sent = {"type": "direct", "to": [org["ben"].user_id], "content": "x"}
    (await org["ann"].post("/messages", **sent)).refused()


async def test_direct_messages_can_be_disabled(org: Organization) -> None:
    change = RealmChanged(values={"direct_message_permission_group": NOBODY})
    await org.do(change, actor="ann")
    for to in (["ben"], ["ben", "cleo"]):
        ids = [org[name].user_id for name in to]
        (await org["ann"].post("/messages", type="direct", to=ids, content="x")).refused()
    await org["ann"].write([org["robo"].user_id], "bots may be written to")
    await org["ann"].write([org["ann"].user_id], "and oneself")


async def test_starting_a_conversation_needs_permission(org: Organization) -> None:
    await org["cleo"].write([org["ann"].user_id], "before")
    change = RealmChanged(values={"direct_message_initiator_group": ADMINISTRATORS})
    await org.do(change, actor="ann")
    ben, ann = org["ben"], org["ann"]
    sent = {"type": "direct", "content": "x"}
    (await ben.post("/messages", to=[ann.user_id], **sent)).refused()
    await org["cleo"].write([ann.user_id], "it goes on")
    await ann.write([ben.user_id], "you may answer")
    await ben.write([ann.user_id], "thank you")


@pytest.mark.parametrize(
    ("mention", "code"),
    [
        ("@**all**", "STREAM_WILDCARD_MENTION_NOT_ALLOWED"),
        ("@**topic**", "TOPIC_WILDCARD_MENTION_NOT_ALLOWED"),
    ],
)
async def test_wildcard_mentions_need_permission(
    org: Organization, mention: str, code: str
) -> None:
    many = [f"person{number}" for number in range(15)]
    for name in many:
        await org.add(name)
    await org.channel("hall", "ann", "ben", *many)
    await org.channel("nook", "ben", *many[:14])
    for name in ("ann", "ben", *many):
        for channel in ("hall", "nook") if name in {"ben", *many[:14]} else ("hall",):
            await org[name].send(channel, "t", "x")
    values = {"can_mention_many_users_group": ADMINISTRATORS}
    await org.do(RealmChanged(values=values), actor="ann")
    sent = {"type": "stream", "topic": "t", "content": f"{mention} tea!"}
    (await org["ben"].post("/messages", to="hall", **sent)).refused(code)
    (await org["ben"].post("/messages", to="nook", **sent)).ok
    (await org["ann"].post("/messages", to="hall", **sent)).ok


# Effects


@pytest.mark.parametrize(
    ("client", "asked", "is_read"),
    [
        ("ZulipMobile/27.0 (iOS)", None, True),
        ("ZulipElectron", None, True),
        ("website", None, True),
        ("ZulipPython/0.9", None, False),
        ("curl/8", None, False),
        ("", None, False),
        ("website", False, False),
        ("curl/8", True, True),
    ],
)
async def test_messages_sent_by_a_person_s_client_are_read_for_the_sender(
    kept_lounge: Organization, client: str, asked: bool | None, is_read: bool
) -> None:
    ann, ben = await kept_lounge["ann"].register(), await kept_lounge["ben"].register()
    sent = {"type": "stream", "to": "lounge", "topic": "t", "content": "x"}
    more = {} if asked is None else {"read_by_sender": str(asked).lower()}
    reply = await kept_lounge["ann"].raw(
        "POST", "/messages", data={**sent, **more}, headers={"User-Agent": client}
    )
    own, other = (await ann.events())[0], (await ben.events())[0]
    assert own["flags"] == (["read"] if is_read else [])
    assert other["flags"] == []
    assert own["message"]["client"] == (client.partition("/")[0] or "Unspecified")
    fetched = (await kept_lounge["ann"].get(f"/messages/{reply.ok['id']}")).ok["message"]
    assert fetched["flags"] == own["flags"]


async def test_the_local_id_is_echoed_to_its_queue(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    first, second, other = [await org[name].register() for name in ("ann", "ann", "ben")]
    await org["ann"].send("lounge", "t", "x", queue_id=first.queue_id, local_id="17.5")
    assert [event["local_message_id"] for event in await first.events()] == ["17.5"]
    for listener in (second, other):
        (event,) = await listener.events()
        assert "local_message_id" not in event
    await org["ann"].send("lounge", "t", "x", local_id="18")
    await org["ann"].send("lounge", "t", "x", queue_id=first.queue_id)
    assert not any("local_message_id" in event for event in await first.events())


async def test_a_repeated_request_sends_one_message(config: Config) -> None:
    attempt = {"queue_id": "q", "local_id": "17.5"}
    async with new_organization(config) as org:
        await org.add("ben")
        await org.channel("lounge", "ann", "ben")
        listener = await org["ben"].register()
        both = [org["ann"].send("lounge", "t", "x", **attempt) for _ in range(5)]
        (sent,) = set(await asyncio.gather(*both))
        others = [
            await org["ann"].send("lounge", "t", "something else", **attempt),
            await org["ann"].send("lounge", "t", "x", queue_id="q", local_id="18"),
            await org["ann"].send("lounge", "t", "x", queue_id="r", local_id="17.5"),
            await org["ben"].send("lounge", "t", "x", **attempt),
        ]
        told = [e["message"]["id"] for e in await listener.events() if e["type"] == "message"]
        assert told == [sent, *others]
    # The server was down, and the client retries.
    async with open_organization(config) as org:
        assert await org["ann"].send("lounge", "t", "x", queue_id="q", local_id="18") == others[1]
        assert await org["ann"].send("lounge", "t", "x", **attempt) == sent
        assert org.node.state.last_message_id == others[-1]


async def test_a_local_id_used_for_several_messages_loses_none(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    attempt = {"queue_id": "q", "local_id": "1"}

    async def all_of_them() -> list[int]:
        return [
            await org["ann"].send("lounge", "a", "ok", **attempt),
            await org["ann"].send("lounge", "b", "ok", **attempt),
            await org["ann"].write([org["ben"].user_id], "ok", **attempt),
            await org["ann"].write([org["cleo"].user_id], "ok", **attempt),
        ]

    first = await all_of_them()
    assert len(set(first)) == 4
    assert await all_of_them() == first


async def test_a_repeated_request_may_give_the_recipient_in_another_form(
    org: Organization,
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    ann, ben = org["ann"], org["ben"]
    ways: tuple[tuple[dict[str, Any], ...], ...] = (
        tuple(
            {"type": "channel", "to": to, "topic": topic}
            for to in ("lounge", "Lounge", lounge)
            for topic in ("Tea", "tea")
        ),
        tuple(
            {"type": "direct", "to": to}
            for to in ([ben.user_id], [ben.email], [ann.user_id, ben.user_id])
        ),
        ({"type": "direct", "to": [ann.user_id]}, {"type": "direct", "to": [ann.email]}),
    )
    attempt = {"queue_id": "q", "local_id": "1", "content": "hi"}
    found = [
        {(await ann.post("/messages", **way, **attempt)).ok["id"] for way in same} for same in ways
    ]
    assert [len(ids) for ids in found] == [1, 1, 1]
    assert len(set().union(*found)) == 3


async def test_a_repeated_request_is_recognized_after_many_others_and_a_restart(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 50
    monkeypatch.setattr(replica, "RECALLED_SENDS", most)
    assert messages.RECALLED_SENDS >= messages.REMEMBERED_SENDS
    attempt = {"queue_id": "q", "local_id": "1"}
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        first = await org["ann"].send("lounge", "t", "hi", **attempt)
        seq = org.node.state.seq
        while org.node.state.seq < seq + most - 5:
            await org["ann"].send("lounge", "t", "another")
    async with open_organization(config) as org:
        assert org.node.state.seq - seq < most
        assert await org["ann"].send("lounge", "t", "hi", **attempt) == first


async def test_a_repeated_request_is_recognized_after_its_message_changed(config: Config) -> None:
    attempt = {"queue_id": "q", "local_id": "1"}
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        sent = await org["ann"].send("lounge", "t", "as asked", **attempt)
        (await org["ann"].patch(f"/messages/{sent}", content="edited", topic="elsewhere")).ok
        gone = await org["ann"].send("lounge", "t", "deleted", **attempt)
        (await org["ann"].delete(f"/messages/{gone}")).ok
        assert await org["ann"].send("lounge", "t", "as asked", **attempt) == sent
    async with open_organization(config) as org:
        assert await org["ann"].send("lounge", "t", "as asked", **attempt) == sent
        assert await org["ann"].send("lounge", "t", "deleted", **attempt) == gone
        assert await org["ann"].send("lounge", "t", "edited", **attempt) > gone


async def test_a_request_sent_to_version_0_1_is_recognized_after_the_upgrade(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = {"queue_id": "q", "local_id": "1"}

    async def all_of_them(org: Organization) -> list[int]:
        return [
            await org["ann"].send("lounge", "Tea", "hi", **attempt),
            await org["ann"].send("lounge", "plans", "hi", **attempt),
            await org["ann"].write([org["ben"].user_id], "hi", **attempt),
        ]

    with monkeypatch.context() as before:
        before.setattr(MessageDraft, "request_digest", lambda *_: "")
        async with new_organization(config) as org:
            await org.add("ben")
            await org.channel("lounge", "ann")
            sent = await all_of_them(org)
    assert len(set(sent)) == 3
    async with open_organization(config) as org:
        assert await all_of_them(org) == sent


def test_remembered_requests_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "REMEMBERED_SENDS", 3)
    kept = messages.SentMessages(State().directs)
    for number in range(5):
        message = Message(id=number, sender_id=1, sent_at=1)
        queue_id, digest = "q" * 10_000, str(number)
        kept.note(
            MessageSent(message=message, queue_id=queue_id, local_id="1", request_digest=digest)
        )
    found = [kept.find(1, str(number)) for number in range(5)]
    assert found == [None, None, 2, 3, 4]
    held = [text for sender, *texts in kept._ids for text in texts]
    assert sum(map(len, held)) == 3  # Only the digests.


async def test_mentions_are_flags_of_their_recipients(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    listeners = {name: await org[name].register() for name in ("ann", "ben", "cleo")}
    await org["ann"].send("lounge", "t", "@**Ben** and @_**Cleo**", read_by_sender=True)
    await org["ann"].send("lounge", "t", "@**Gus** cannot see it", read_by_sender=True)
    await org["ann"].send("lounge", "t", "@**all** come", read_by_sender=True)
    found = {
        name: [event["flags"] for event in await listener.events()]
        for name, listener in listeners.items()
    }
    all_of_them = ["stream_wildcard_mentioned", "wildcard_mentioned"]
    assert found == {
        "ann": [["read"], ["read"], ["read", *all_of_them]],
        "ben": [["mentioned"], [], all_of_them],
        "cleo": [[], [], all_of_them],
    }
    assert (await org["gus"].get("/messages", anchor="newest", num_before=5, num_after=0)).ok[
        "messages"
    ] == []
