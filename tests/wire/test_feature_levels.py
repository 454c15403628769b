"""Names and features of earlier feature levels."""

from typing import Any

from tests.support import Organization, rows

SCHEDULED = {
    "type": "direct",
    "to": [1],
    "content": "hi",
    "scheduled_delivery_timestamp": 4 * 10**9,
}


@rows(
    ("method", "path", "sent", "ignored"),
    [
        ("GET", "/users/me", {"weather": "fine"}, ["weather"]),
        ("POST", "/scheduled_messages", {**SCHEDULED, "scheduled_message_id": 7}, None),
        ("PATCH", "/settings", {"dense_mode": True}, None),
        ("POST", "/invites/multiuse", {"invite_expires_in_days": 3}, None),
        ("POST", "/realm/filters", {"pattern": "x", "url_template": "https://x.test/"}, []),
    ],
    ids=[
        "167: told at all",
        "184: editing is elsewhere",
        "364: no dense mode",
        "126: minutes",
        "none",
    ],
)
async def test_an_obsolete_parameter_is_reported_as_ignored(
    org: Organization, method: str, path: str, sent: dict[str, Any], ignored: list[str] | None
) -> None:
    body = (await org["ann"].request(method, path, **sent)).ok
    expected = list(sent)[-1:] if ignored is None else ignored
    assert body.get("ignored_parameters_unsupported", []) == expected


@rows(
    ("path", "sent", "missing"),
    [
        (
            "/realm/filters",
            {"pattern": "x", "url_format_string": "https://x.test/"},
            "url_template",
        ),
        (
            "/realm/playgrounds",
            {"name": "P", "pygments_language": "Python", "url_prefix": "https://x.test/?c="},
            "url_template",
        ),
        ("/users/me/apns_device_token", {"token": "aabb"}, "appid"),
    ],
    ids=["176: linkifiers", "196: playgrounds", "223: the app"],
)
async def test_a_renamed_parameter_is_required(
    org: Organization, path: str, sent: dict[str, Any], missing: str
) -> None:
    body = (await org["ann"].post(path, **sent)).refused("REQUEST_VARIABLE_MISSING")
    assert body["var_name"] == missing


@rows(("view", "taken"), [("recent", True), ("recent_topics", False), ("inbox", True)])
async def test_the_view_of_recent_conversations_has_its_new_name(
    org: Organization, view: str, taken: bool
) -> None:
    reply = await org["ann"].patch("/settings", web_home_view=view)
    assert (reply.status == 200) is taken


async def test_the_obsolete_endpoint_for_tokens_still_works(org: Organization) -> None:
    sent = {"token": "aabb", "appid": "org.example.chat"}
    assert (await org["ann"].post("/users/me/apns_device_token", **sent)).ok
