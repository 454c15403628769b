"""Reporting messages to moderators, and endpoints without a function here."""

import pytest

from tests.support import Organization


@pytest.fixture
async def moderated(org: Organization) -> Organization:
    """An organization with a channel for reports, which ann reads."""
    channel = await org.channel("moderators", "ann", is_private=True)
    await org.channel("lounge", "ben", "cleo")
    assert (await org["ann"].patch("/realm", moderation_request_channel_id=channel)).ok
    return org


async def test_a_report_is_sent_to_the_moderators(moderated: Organization) -> None:
    org = moderated
    sent = await org["cleo"].send("lounge", "t", "buy ````` tea")
    ann, cleo = await org["ann"].register(event_types=["message"]), await org["cleo"].register()
    report = {"report_type": "spam", "description": " @**Ann** ``` look"}
    assert (await org["ben"].post(f"/messages/{sent}/report", **report)).ok
    (event,) = await ann.events()
    message = event["message"]
    assert message["sender_full_name"] == "Notification Bot"
    assert (message["display_recipient"], message["subject"]) == ("moderators", "Reports of Cleo")
    for words in ("Spam", "@**Ann** ``` look", "buy ````` tea", f"@{sent}**", "Ben|", "Cleo|"):
        assert words in message["content"]
    assert "mentioned" not in event["flags"]
    assert await cleo.events() == []


async def test_the_channel_for_reports_stays_private(moderated: Organization) -> None:
    org = moderated
    channels = {channel.name: channel.id for channel in org.node.state.channels}
    private, public = channels["moderators"], channels["lounge"]
    message = "The channel for message reports can't be public."
    reply = await org["ann"].patch("/realm", moderation_request_channel_id=public)
    assert reply.refused()["msg"] == message
    for change in ({"is_private": False}, {"is_private": False, "is_web_public": True}):
        (await org["ann"].patch(f"/streams/{private}", **change)).refused()
    reply = await org["ann"].patch(f"/streams/{private}", is_private=False)
    assert reply.refused()["msg"] == message
    assert (await org["ann"].patch(f"/streams/{private}", new_name="team")).ok
    assert (await org["ann"].patch("/realm", moderation_request_channel_id=-1)).ok
    assert (await org["ann"].patch(f"/streams/{private}", is_private=False)).ok


async def test_a_direct_message_is_reported_by_a_participant(moderated: Organization) -> None:
    org = moderated
    sent = await org["cleo"].write([org["ben"].user_id], "hello")
    path = f"/messages/{sent}/report"
    assert (await org["ben"].post(path, report_type="norms")).ok
    (await org["ann"].post(path, report_type="norms")).refused()


async def test_invalid_reports_are_refused(moderated: Organization) -> None:
    org = moderated
    sent = await org["cleo"].send("lounge", "t", "tea")
    path = f"/messages/{sent}/report"
    for wrong in (
        {"report_type": "boring"},
        {"report_type": "other"},
        {"report_type": "other", "description": "  "},
        {"report_type": "spam", "description": "x" * 1001},
    ):
        (await org["ben"].post(path, **wrong)).refused()
    (await org["ben"].post(path)).refused("REQUEST_VARIABLE_MISSING")
    (await org["ben"].post("/messages/4242/report", report_type="spam")).refused()
    assert (await org["ben"].post(path, report_type="other", description="x" * 1000)).ok
    assert (await org["ann"].patch("/realm", moderation_request_channel_id=-1)).ok
    (await org["ben"].post(path, report_type="spam")).refused()


async def test_a_conversation_is_not_summarized(org: Organization) -> None:
    reply = await org["ann"].get("/messages/summary", narrow=[])
    assert "summaries" in reply.refused()["msg"]


async def test_an_administrator_tests_the_welcome_message(org: Organization) -> None:
    ann = await org["ann"].register(event_types=["message"])
    path = "/realm/test_welcome_bot_custom_message"
    sent = (await org["ann"].post(path, welcome_message_custom_text="Tea is at *five*.")).ok
    (event,) = await ann.events()
    message = event["message"]
    assert (message["id"], message["type"]) == (sent["message_id"], "private")
    assert message["sender_full_name"] == "Welcome Bot"
    assert message["content"].startswith("Welcome to **")
    assert message["content"].endswith("Tea is at *five*.")
    for text in ("", "  ", "x" * 8001):
        (await org["ann"].post(path, welcome_message_custom_text=text)).refused()
    (await org["ben"].post(path, welcome_message_custom_text="Hi")).refused(
        "UNAUTHORIZED_PRINCIPAL"
    )


async def test_pages_find_the_api_where_they_expect_it(org: Organization) -> None:
    auth = (org["ben"].email, org["ben"].api_key)
    for path in ("/users/me", f"/users/{org['ann'].user_id}"):
        own, other = [
            (await org.http.get(f"{prefix}{path}", auth=auth)).json()
            for prefix in ("/api/v1", "/json")
        ]
        assert own == other
        assert own["result"] == "success"
    assert (await org.http.get("/json/nothing", auth=auth)).status_code == 404
    assert (await org.http.get("/json/users/me")).status_code == 401
