"""Client capabilities: which events a client gets, and in which form."""

from typing import Any

import pytest

from tertulia.service.config import Config
from tests.support import Organization, TestClock, new_organization, rows


@pytest.mark.parametrize(
    ("capable", "name"), [(False, "general chat"), (True, "")], ids=["by name", "empty"]
)
async def test_every_event_with_a_topic_names_the_empty_one_as_the_client_expects(
    org: Organization, capable: bool, name: str
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    before = await org["ann"].send("lounge", "", "a")
    can = {"empty_topic_name": capable, "stream_typing_notifications": True}
    ben = await org["ben"].register(client_capabilities=can)
    ann = org["ann"]
    at = {"type": "stream", "stream_id": lounge, "topic": ""}
    sent = await ann.send("lounge", "", "b")
    (await ann.post("/typing", op="start", **at)).ok
    (await ann.post(f"/messages/{sent}/typing", op="start")).ok
    for op in ("add", "remove"):
        flag = {"messages": [before], "flag": "read", "op": op}
        (await org["ben"].post("/messages/flags", **flag)).ok
    quiet = {"propagate_mode": "change_one", "send_notification_to_new_thread": False}
    for topic in ("tea", ""):
        (await ann.patch(f"/messages/{sent}", topic=topic, **quiet)).ok
    muted = {"stream_id": lounge, "topic": "", "visibility_policy": 1}
    (await org["ben"].post("/user_topics", **muted)).ok
    events = await ben.events()
    (await ann.delete(f"/messages/{sent}")).ok

    found: dict[str, Any] = {}
    for event in events + await ben.events():
        match event:
            case {"type": "message", "message": message}:
                found["message"] = message["subject"]
            case {"type": "typing"}:
                found["typing"] = event["topic"]
            case {"type": "typing_edit_message", "recipient": recipient}:
                found["typing_edit_message"] = recipient["topic"]
            case {"type": "update_message_flags", "message_details": details}:
                found["update_message_flags"] = details[str(before)]["topic"]
            case {"type": "update_message", "orig_subject": "tea"}:
                found["update_message.subject"] = event["subject"]
            case {"type": "update_message"}:
                found["update_message.orig_subject"] = event["orig_subject"]
            case {"type": "user_topic"}:
                found["user_topic"] = event["topic_name"]
            case {"type": "muted_topics", "muted_topics": [[_, topic, _]]}:
                found["muted_topics"] = topic
            case {"type": "delete_message"}:
                found["delete_message"] = event["topic"]
    assert found == dict.fromkeys(
        [
            *("message", "typing", "typing_edit_message", "update_message_flags"),
            *("update_message.subject", "update_message.orig_subject"),
            *("user_topic", "muted_topics", "delete_message"),
        ],
        name,
    )


@rows("capable", [False, True])
@rows(
    "capability", ["user_avatar_url_field_optional", "user_settings_object", "no_such_capability"]
)
async def test_a_capability_can_be_without_effect(
    readonly_org: Organization, capability: str, capable: bool
) -> None:
    data = (await readonly_org["ben"].register(client_capabilities={capability: capable})).data
    assert all("avatar_url" in user for user in data["realm_users"])
    assert data["user_settings"]["twenty_four_hour_time"] is False


async def test_spectators_do_not_compute_avatars(org: Organization) -> None:
    (await org["ann"].patch("/realm", enable_spectator_access=True)).ok
    data = (await org.nobody.post("/register")).ok
    assert all(user["avatar_url"] for user in data["realm_users"])
    (await org.nobody.post("/register", client_gravatar=False)).ok
    (await org.nobody.post("/register", include_subscribers=False)).ok
    (await org.nobody.post("/register", include_subscribers="partial")).refused()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [({}, 600), ({"idle_queue_timeout": 60}, 60), ({"idle_queue_timeout": "mobile"}, 43200)],
    ids=["by default", "seconds", "mobile"],
)
async def test_a_queue_expires_after_its_lifespan_without_polls(
    config: Config, asked: dict[str, Any], seconds: int
) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        ann = await org["ann"].register(**asked, fetch_event_types=[])
        assert ann.data["idle_queue_timeout_secs"] == seconds
        clock.ahead += seconds - 5
        await org.node.delivery.sweep()
        assert await ann.events() == []
        clock.ahead += seconds + 600  # With possible other nodes, it waits for them.
        for _ in range(2):
            await org.node.delivery.sweep()
        asked_for = {"queue_id": ann.queue_id, "last_event_id": ann.last_event_id}
        reply = await org["ann"].get("/events", **asked_for, dont_block=True)
        assert reply.refused("BAD_EVENT_QUEUE_ID")["queue_id"] == ann.queue_id
        assert (await org["ann"].register()).queue_id != ann.queue_id
