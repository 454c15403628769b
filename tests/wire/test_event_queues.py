"""The options of a queue at registration."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.transients import PresenceChanged
from tertulia.wire.api.register import MAX_IDLE_SECONDS, MOBILE_IDLE_SECONDS
from tests.support import Listener, Organization, rows


async def event_types(listener: Listener) -> list[str]:
    """The types of the pending events."""
    return [event["type"] for event in await listener.events()]


async def message_contents(listener: Listener) -> list[str]:
    """The contents of the pending messages."""
    return [
        event["message"]["content"]
        for event in await listener.events()
        if event["type"] == "message"
    ]


@pytest.fixture(scope="module")
async def rooms(shared_org: Organization) -> Organization:
    """An organization with channels, whose listeners register new queues."""
    await shared_org.channel("lounge", "ann", "ben", "cleo")
    await shared_org.channel("pantry", "ann", "ben", "cleo")
    await shared_org.channel("square", "ann")
    await shared_org.channel("cellar", "ann", is_private=True)
    return shared_org


@rows(
    ("asked", "types"),
    [
        ({}, ["message", "stream", "subscription"]),
        ({"event_types": ["message"]}, ["message"]),
        ({"event_types": ["stream", "subscription"]}, ["stream", "subscription"]),
        ({"event_types": ["message", "no_such_type"]}, ["message"]),
        ({"event_types": []}, []),
        ({"fetch_event_types": ["message"]}, ["message", "stream", "subscription"]),
        ({"event_types": "null"}, ["message", "stream", "subscription"]),
    ],
    ids=["all", "one", "two", "unknown ones are passed over", "none", "fetch alone", "null"],
)
async def test_a_queue_has_the_requested_event_types(
    shared_org: Organization, asked: dict[str, Any], types: list[str]
) -> None:
    den = await shared_org.channel(f"den {asked}", "ann", "ben")
    ben = await shared_org["ben"].register(**asked)
    await shared_org["ann"].send(den, "tea", "hello")
    assert (await shared_org["ann"].patch(f"/streams/{den}", description="For all.")).ok
    assert (
        await shared_org["ben"].patch(
            f"/users/me/subscriptions/{den}", property="pin_to_top", value=True
        )
    ).ok
    assert sorted(set(await event_types(ben))) == types


@rows(
    ("asked", "content"),
    [
        ({}, "**loud**"),
        ({"apply_markdown": False}, "**loud**"),
        ({"apply_markdown": True}, "<p><strong>loud</strong></p>"),
    ],
    ids=["by default", "false", "true"],
)
async def test_content_is_markdown_unless_html_was_requested(
    rooms: Organization, asked: dict[str, Any], content: str
) -> None:
    ben = await rooms["ben"].register(**asked)
    await rooms["ann"].send("lounge", "tea", "**loud**")
    assert await message_contents(ben) == [content]


@rows(
    ("asked", "has_url"),
    [({}, False), ({"client_gravatar": True}, False), ({"client_gravatar": False}, True)],
    ids=["by default", "true", "false"],
)
async def test_default_avatars_are_left_to_clients_that_compute_them(
    rooms: Organization, asked: dict[str, Any], has_url: bool
) -> None:
    ben = await rooms["ben"].register(**asked)
    await rooms["ann"].send("lounge", "tea", "hello")
    (event,) = await ben.events()
    assert (event["message"]["avatar_url"] is not None) is has_url
    (ann,) = [u for u in ben.data["realm_users"] if u["user_id"] == rooms["ann"].user_id]
    assert (ann["avatar_url"] is not None) is has_url


@rows(
    ("who", "everything", "messages"),
    [("ben", False, ["here"]), ("ben", True, ["here", "there"])],
    ids=["own channels", "all public channels"],
)
async def test_messages_of_all_public_channels_are_delivered_on_request(
    rooms: Organization, who: str, everything: bool, messages: list[str]
) -> None:
    listener = await rooms[who].register(all_public_streams=everything, event_types=["message"])
    for channel, content in (("lounge", "here"), ("square", "there"), ("cellar", "hidden")):
        await rooms["ann"].send(channel, "tea", content)
    assert await message_contents(listener) == messages


async def test_guests_cannot_follow_all_public_channels(readonly_org: Organization) -> None:
    (await readonly_org["gus"].post("/register", all_public_streams=True)).refused()


NARROWS = [
    ([], ["tea", "milk", "@**Ben** sugar", "salt", "direct"]),
    ([["stream", "lounge"]], ["tea", "milk", "@**Ben** sugar"]),
    ([["channel", "LOUNGE"]], ["tea", "milk", "@**Ben** sugar"]),
    ([["topic", "DRINKS"]], ["tea", "milk"]),
    ([["subject", "drinks"]], ["tea", "milk"]),
    ([["channel", "lounge"], ["topic", "drinks"]], ["tea", "milk"]),
    ([["sender", "cleo@example.com"]], ["milk", "direct"]),
    ([["is", "dm"]], ["direct"]),
    ([["is", "private"]], ["direct"]),
    ([["is", "mentioned"]], ["@**Ben** sugar"]),
    ([["is", "unread"]], ["tea", "milk", "@**Ben** sugar", "salt", "direct"]),
    ([["is", "starred"]], []),
    ([["is", "alerted"]], []),
    ([["is", "resolved"]], ["salt"]),
    ([["channel", "no such channel"]], []),
]


@rows(("narrow", "messages"), NARROWS)
async def test_a_narrow_delivers_only_its_messages(
    rooms: Organization, narrow: list[list[str]], messages: list[str]
) -> None:
    ben = await rooms["ben"].register(narrow=narrow)
    await rooms["ann"].send("lounge", "Drinks", "tea")
    await rooms["cleo"].send("lounge", "drinks", "milk")
    await rooms["ann"].send("lounge", "food", "@**Ben** sugar")
    await rooms["ann"].send("pantry", "✔ food", "salt")
    await rooms["cleo"].write([rooms["ben"].user_id], "direct")
    await rooms.do(RealmChanged(values={"waiting_period_threshold": 3}))
    events = await ben.events()
    assert [e["message"]["content"] for e in events if e["type"] == "message"] == messages
    assert any(e["type"] == "realm" for e in events), "other events are not concerned"


@rows(
    ("name", "found"),
    [
        ("cleo@example.com", False),
        ("user{id}@chat.test", True),
        ("{id}", True),
        ("user{id}@x", False),
    ],
)
async def test_a_narrow_does_not_reveal_a_hidden_address(
    org: Organization, name: str, found: bool
) -> None:
    assert (await org["cleo"].patch("/settings", email_address_visibility=4)).ok
    narrow = [["sender", name.format(id=org["cleo"].user_id)]]
    ben = await org["ben"].register(narrow=narrow, event_types=["message"])
    await org["cleo"].write([org["ben"].user_id], "direct")
    assert await message_contents(ben) == ["direct"] * found


@rows(
    "narrow",
    [
        [["search", "tea"]],
        [["has", "link"]],
        [["is", "followed"]],
        [["dm", "ann@example.com"]],
        [["no such operator", "x"]],
        [["stream"]],
        [["stream", "a", "b"]],
        [{"operator": "stream", "operand": "lounge"}],
        "lounge",
    ],
)
async def test_a_narrow_unsupported_by_queues_is_refused(
    readonly_org: Organization, narrow: Any
) -> None:
    reply = await readonly_org["ben"].post("/register", narrow=narrow)
    assert reply.status == 400
    assert reply.body["code"] in {"BAD_REQUEST", "REQUEST_VARIABLE_INVALID"}


@rows(
    ("asked", "seconds"),
    [
        ({}, 600),
        ({"idle_queue_timeout": 1}, 1),
        ({"idle_queue_timeout": 86400}, 86400),
        ({"idle_queue_timeout": MAX_IDLE_SECONDS + 1}, MAX_IDLE_SECONDS),
        ({"idle_queue_timeout": "mobile"}, MOBILE_IDLE_SECONDS),
        ({"idle_queue_timeout": '"mobile"'}, MOBILE_IDLE_SECONDS),
    ],
    ids=["by default", "short", "long", "never longer than a week", "mobile", "mobile as JSON"],
)
async def test_a_queue_lives_as_long_as_requested(
    readonly_org: Organization, asked: dict[str, Any], seconds: int
) -> None:
    ben = await readonly_org["ben"].register(**asked, fetch_event_types=[])
    assert ben.data["idle_queue_timeout_secs"] == seconds


@rows(
    ("name", "value"),
    [
        ("idle_queue_timeout", "0"),
        ("idle_queue_timeout", "-5"),
        ("idle_queue_timeout", "soon"),
        ("include_subscribers", "some"),
        ("presence_history_limit_days", "-1"),
        ("presence_history_limit_days", "many"),
        ("apply_markdown", "yes"),
        ("event_types", "message"),
        ("event_types", '["message", 3]'),
        ("client_capabilities", "[]"),
        ("client_capabilities", '{"empty_topic_name": "yes"}'),
    ],
)
async def test_invalid_options_are_refused(
    readonly_org: Organization, name: str, value: str
) -> None:
    body = (await readonly_org["ben"].post("/register", **{name: value})).refused(
        "REQUEST_VARIABLE_INVALID"
    )
    assert body["var_name"] == name


async def test_unknown_options_are_ignored(readonly_org: Organization) -> None:
    ben = await readonly_org["ben"].register(
        event_types=["message", "weather"],
        client_capabilities={"empty_topic_name": True, "time_travel": True},
        moon_phase="full",
    )
    assert ben.data["ignored_parameters_unsupported"] == ["moon_phase"]


@rows(
    ("asked", "days_ago", "found"),
    # (The last presence of a person never decreases.)
    [({}, 15, False), ({"presence_history_limit_days": 20}, 15, True), ({}, 13, True)],
    ids=["not longer than two weeks", "as long as was asked for", "two weeks by default"],
)
async def test_presence_history_is_limited_as_requested(
    org: Organization, asked: dict[str, Any], days_ago: int, found: bool
) -> None:
    then = int(org.node.clock()) - days_ago * 86400
    seen = PresenceChanged(user_id=org["ann"].user_id, active_at=then, idle_at=then, update_id=7)
    org.node.delivery.presence.learn(seen)
    data = (await org["ben"].register(slim_presence=True, **asked)).data
    assert (str(org["ann"].user_id) in data["presences"]) is found


async def test_a_client_gets_the_feature_level_and_limits(readonly_org: Organization) -> None:
    data = (await readonly_org["ben"].register()).data
    assert data["service_feature_level"] == data["zulip_feature_level"] == 496
    for name, least in (
        ("max_message_length", 10000),
        ("max_topic_length", 60),
        ("max_stream_name_length", 60),
        ("max_stream_description_length", 1024),
        ("max_channel_folder_name_length", 60),
        ("max_channel_folder_description_length", 1024),
        ("max_file_upload_size_mib", 1),
    ):
        assert data[name] >= least, name
    assert data["realm_empty_topic_display_name"] == "general chat"


async def test_a_deleted_queue_is_reported_by_its_error_code(readonly_org: Organization) -> None:
    ben = await readonly_org["ben"].register()
    assert (await ben.person.delete("/events", queue_id=ben.queue_id)).ok
    reply = await ben.person.get("/events", queue_id=ben.queue_id, last_event_id=-1)
    assert reply.refused("BAD_EVENT_QUEUE_ID")["queue_id"] == ben.queue_id
    assert (await ben.person.register()).queue_id != ben.queue_id
