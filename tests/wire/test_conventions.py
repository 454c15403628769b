"""General API conventions, accounts by role, and the events by name."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.users import Role
from tests.support import Organization, row, rows

SUBSCRIPTIONS = "/users/me/subscriptions"
CLAIM = {"name": "claim", "description": "", "members": []}
MESSAGE = {"type": "channel", "to": "lounge", "topic": "tea", "content": "x"}
LINKIFIER = {"pattern": "#(?P<id>[0-9]+)", "url_template": "https://example.com/{id}"}
DRAFT = {"type": "", "to": [], "topic": "", "content": "later"}


@pytest.fixture(scope="module")
async def lounged(shared_org: Organization) -> Organization:
    """An organization with two channels created by ann: the first, and one that she leaves."""
    assert await shared_org.channel("lounge", "ann") == 1
    await shared_org.channel("hall", "ann")
    return shared_org


@rows(
    ("method", "path", "parameters"),
    [
        ("GET", "/server_settings", {}),
        ("GET", "/users", {}),
        ("GET", "/users/ann@example.com", {}),
        ("GET", "/streams/1", {}),
        ("GET", "/drafts", {}),
        ("POST", SUBSCRIPTIONS, {"subscriptions": [{"name": "den"}]}),
        ("PATCH", f"{SUBSCRIPTIONS}/1", {"property": "is_muted", "value": True}),
        ("DELETE", SUBSCRIPTIONS, {"subscriptions": ["hall"]}),
        ("PATCH", "/settings", {"color_scheme": 2}),
        ("PATCH", "/streams/1", {"description": "of all"}),
        ("POST", "/users/me/presence", {"status": "idle"}),
        ("POST", "/register", {}),
        ("POST", "/drafts", {"drafts": [DRAFT]}),
        ("POST", "/user_groups/create", CLAIM),
        ("POST", "/channel_folders/create", {"name": "work", "description": ""}),
        ("POST", "/user_uploads", {}),
    ],
)
async def test_every_endpoint_reports_unsupported_parameters(
    lounged: Organization, method: str, path: str, parameters: dict[str, Any]
) -> None:
    ann = lounged["ann"]
    odd = {"odd": "1", "stream_ID": "2"}
    if path == "/user_uploads":
        files = {"file": ("note.txt", b"hello", "text/plain")}
        reply = await ann.raw(method, path, data=odd, files=files)
    else:
        reply = await ann.request(method, path, **parameters, **odd)
    assert reply.ok["ignored_parameters_unsupported"] == ["odd", "stream_ID"]


# Accounts


ROLES: list[tuple[Role, int, set[str]]] = [
    (Role.OWNER, 100, {"is_owner", "is_admin"}),
    (Role.ADMINISTRATOR, 200, {"is_admin"}),
    (Role.MODERATOR, 300, set()),
    (Role.MEMBER, 400, set()),
    (Role.GUEST, 600, {"is_guest"}),
]
"""A role, its number, and its flags."""


async def test_a_role_has_its_number_and_flags(org: Organization) -> None:
    names = {"is_owner", "is_admin", "is_guest", "is_bot", "is_imported_stub"}
    for role, number, flags in ROLES:
        with row(role):
            dora = await org.add(f"dora{number}", role)
            user = (await org["ben"].get(f"/users/{dora.email}")).ok["user"]
            (listed,) = (await org["ben"].get("/users", user_ids=[dora.user_id])).ok["members"]
            assert user == listed
            assert user["role"] == number
            assert {name for name in names if user[name]} == flags
            assert user["is_active"] is True
            assert "is_billing_admin" not in user
            assert "is_deleted" not in user


@rows(
    ("parameters", "is_null", "has_profile"),
    [
        ({}, True, False),
        ({"client_gravatar": True}, True, False),
        ({"client_gravatar": False}, False, False),
        ({"include_custom_profile_fields": True}, True, True),
        ({"include_custom_profile_fields": False}, True, False),
    ],
)
@rows("where", ["/users/{email}", "/users/{user_id}", "/users"])
async def test_avatars_and_profiles_are_included_by_default_or_on_request(
    readonly_org: Organization,
    where: str,
    parameters: dict[str, Any],
    is_null: bool,
    has_profile: bool,
) -> None:
    ann = readonly_org["ann"]
    path = where.format(email=ann.email, user_id=ann.user_id)
    body = (await readonly_org["ben"].get(path, **parameters)).ok
    user = body["user"] if "user" in body else body["members"][0]
    assert user["user_id"] == ann.user_id
    assert (user["avatar_url"] is None) is is_null
    assert ("profile_data" in user) is has_profile


@rows("name", ["client_gravatar", "include_custom_profile_fields"])
@rows("where", ["/users/ann@example.com", "/users"])
@rows("text", ["", "1", "True", '"true"', "[]", "\0"])
async def test_a_boolean_account_field_is_a_boolean(
    readonly_org: Organization, where: str, name: str, text: str
) -> None:
    reply = await readonly_org["ben"].get(where, **{name: text})
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == name


# New channels


@pytest.mark.parametrize(
    ("options", "announced"),
    [
        ({}, False),
        ({"announce": False}, False),
        ({"announce": True}, True),
        ({"announce": True, "invite_only": True}, False),
    ],
    ids=str,
)
async def test_subscribing_announces_a_channel_that_it_creates_on_request(
    org: Organization, options: dict[str, Any], announced: bool
) -> None:
    board = await org.channel("board", "ann")
    await org.do(RealmChanged(values={"new_channel_announcements_channel_id": board}))
    for _ in range(2):  # The second time there is nothing to create.
        wanted = [{"name": "den"}]
        assert (await org["ben"].post(SUBSCRIPTIONS, subscriptions=wanted, **options)).ok
    page = {"anchor": "newest", "num_before": 9, "num_after": 0}
    narrow = [{"operator": "channel", "operand": board}]
    found = (await org["ann"].get("/messages", **page, narrow=narrow)).ok["messages"]
    assert [m["sender_full_name"] for m in found] == ["Notification Bot"] * announced


# Events by name

NAMED: list[tuple[str, str | None, str, str, dict[str, Any]]] = [
    ("message", None, "POST", "/messages", MESSAGE),
    ("subscription", "add", "POST", SUBSCRIPTIONS, {"subscriptions": [{"name": "garden"}]}),
    (
        "subscription",
        "update",
        "PATCH",
        f"{SUBSCRIPTIONS}/1",
        {"property": "is_muted", "value": True},
    ),
    (
        "subscription",
        "peer_add",
        "POST",
        SUBSCRIPTIONS,
        {"subscriptions": [{"name": "lounge"}], "principals": ["cleo@example.com"]},
    ),
    (
        "subscription",
        "peer_remove",
        "DELETE",
        SUBSCRIPTIONS,
        {"subscriptions": ["lounge"], "principals": ["ben@example.com"]},
    ),
    ("stream", "create", "POST", SUBSCRIPTIONS, {"subscriptions": [{"name": "den"}]}),
    ("stream", "update", "PATCH", "/streams/1", {"description": "of all"}),
    (
        "realm_user",
        "add",
        "POST",
        "/users",
        {"email": "dan@example.com", "password": "correct horse", "full_name": "Dan"},
    ),
    ("realm_linkifiers", None, "POST", "/realm/filters", LINKIFIER),
    ("user_group", "add", "POST", "/user_groups/create", {**CLAIM, "name": "more"}),
    ("user_group", "remove", "POST", "/user_groups/{group}/deactivate", {}),
    ("delete_message", None, "DELETE", "/messages/{message}", {}),
    ("user_settings", "update", "PATCH", "/settings", {"color_scheme": 2}),
    ("drafts", "add", "POST", "/drafts", {"drafts": [DRAFT]}),
    ("drafts", "update", "PATCH", "/drafts/{draft}", {"draft": {**DRAFT, "content": "now"}}),
    ("drafts", "remove", "DELETE", "/drafts/{draft}", {}),
    ("subscription", "remove", "DELETE", SUBSCRIPTIONS, {"subscriptions": ["lounge"]}),
]


async def test_each_event_follows_its_action(org: Organization) -> None:
    ann = org["ann"]
    await org.channel("lounge", "ann", "ben")
    await org.channel("garden", "ben")
    ids = {
        "group": (await ann.post("/user_groups/create", **CLAIM)).ok["group_id"],
        "message": await ann.send("lounge", "tea", "x"),
        "draft": (await ann.post("/drafts", drafts=[DRAFT])).ok["ids"][0],
    }
    capabilities = {"linkifier_url_template": True, "bulk_message_deletion": True}
    listener = await ann.register(client_capabilities=capabilities)
    for kind, op, method, path, parameters in NAMED:
        with row(kind, op):
            only = await ann.register(client_capabilities=capabilities, event_types=[kind])
            assert (await ann.request(method, path.format(**ids), **parameters)).ok
            told = [(event["type"], event.get("op")) for event in await listener.events()]
            assert (kind, op) in told
            assert {event["type"] for event in await only.events()} == {kind}


@pytest.mark.parametrize("knows", [True, False])
async def test_a_deactivated_group_is_removed_for_clients_without_the_capability(
    org: Organization, knows: bool
) -> None:
    group = (await org["ann"].post("/user_groups/create", **CLAIM)).ok["group_id"]
    listener = await org["ben"].register(client_capabilities={"include_deactivated_groups": knows})
    assert (await org["ann"].post(f"/user_groups/{group}/deactivate")).ok
    (event,) = await listener.events()
    assert (event["type"], event["op"]) == ("user_group", "update" if knows else "remove")
