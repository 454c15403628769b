"""The fields of a message."""

from typing import Any

import pytest

from tests.support import Organization, Person, row

pytestmark = pytest.mark.usefixtures("no_logged_errors")

COMMON = {
    *("id", "type", "sender_id", "sender_email", "sender_full_name", "sender_realm_str"),
    *("client", "content", "content_type", "timestamp", "subject", "topic_links"),
    *("display_recipient", "recipient_id", "avatar_url", "is_me_message"),
    *("reactions", "submessages", "flags"),
}


async def fetched(who: Person, message_id: int, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = (await who.get(f"/messages/{message_id}", **more)).ok["message"]
    return message


async def test_a_channel_message_has_these_fields(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "Tea", "**hot**", client="test")
    message = await fetched(org["ben"], sent)
    assert set(message) == COMMON | {"stream_id"}
    expected = {
        "id": sent,
        "type": "stream",
        "stream_id": channel,
        "display_recipient": "lounge",
        "sender_id": org["ann"].user_id,
        "sender_email": "ann@example.com",
        "sender_full_name": "Ann",
        "sender_realm_str": "",
        "client": "test",
        "content": "<p><strong>hot</strong></p>",
        "content_type": "text/html",
        "subject": "Tea",
        "topic_links": [],
        "is_me_message": False,
        "reactions": [],
        "submessages": [],
        "flags": [],
    }
    assert {name: message[name] for name in expected} == expected
    other = await fetched(org["ben"], await org["ann"].send("lounge", "Cake", "x"))
    assert other["recipient_id"] == message["recipient_id"]
    reply = (await org["ben"].get(f"/messages/{sent}", apply_markdown=False)).ok
    assert reply["raw_content"] == reply["message"]["content"] == "**hot**"
    assert reply["message"]["content_type"] == "text/x-markdown"


async def test_a_direct_message_has_these_fields(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    message = await fetched(ben, await ann.write([ben.user_id], "psst"))
    assert set(message) == COMMON
    assert (message["type"], message["subject"]) == ("private", "")
    assert message["display_recipient"] == [
        {
            "id": who.user_id,
            "email": who.email,
            "full_name": name,
            "is_mirror_dummy": False,
        }
        for who, name in ((ann, "Ann"), (ben, "Ben"))
    ]
    alone = await fetched(ann, await ann.write([ann.user_id], "note"))
    assert [one["id"] for one in alone["display_recipient"]] == [ann.user_id]


async def test_an_event_s_message_equals_the_fetched_one_without_flags(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    listener = await org["ben"].register(apply_markdown=True, client_gravatar=False)
    sent = await org["ann"].send("lounge", "t", "/poll *Tea*?\nyes\n@**Ben**")
    (event,) = await listener.events()
    message = await fetched(org["ben"], sent)
    assert event["flags"] == message.pop("flags") == ["mentioned"]
    assert event["message"] == message


async def test_the_empty_topic_has_a_name_for_clients_that_need_one(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "", "x")
    page = {"anchor": sent, "num_before": 0, "num_after": 0}
    for more, name in (({}, "general chat"), ({"allow_empty_topic_name": True}, "")):
        assert (await fetched(org["ann"], sent, **more))["subject"] == name
        reply = (await org["ann"].get("/messages", **page, **more)).ok
        assert [message["subject"] for message in reply["messages"]] == [name]
        assert (reply["history_limited"], reply["found_anchor"]) == (False, True)


ABOUT_ONESELF = [
    ("/me waves", True),
    ("/me", False),
    ("/mean", False),
    ("x /me", False),
    ("/me a\n\nb", False),
]


async def test_a_me_message_is_one_paragraph(org: Organization) -> None:
    for content, is_me in ABOUT_ONESELF:
        with row(content, is_me):
            sent = await org["ann"].write([org["ann"].user_id], content)
            assert (await fetched(org["ann"], sent))["is_me_message"] is is_me
