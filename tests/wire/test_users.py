"""Accounts: reading, creating, changing, and deactivating, and their events."""

from typing import Any

import msgspec
import pytest

from tertulia.domain.accounts import users
from tertulia.model.changes import RealmChanged, UserChanged, UserGroupCreated
from tertulia.model.groups import Members, SystemGroup, UserGroup
from tertulia.model.users import AddressVisibility, Credential, PersonalSettings, Role, User
from tertulia.service.messages import deleting
from tests.reference_client import WAYS, ReferenceClient, differences
from tests.support import Listener, Organization, Person, open_organization, row

DIGEST = "https://secure.gravatar.com/avatar/"


async def hide_address(org: Organization, name: str, visibility: AddressVisibility) -> None:
    """This part has no endpoint for the setting, so change the node's state directly."""
    state = org.node.state
    settings = state.settings[org[name].user_id]
    state.settings.put(msgspec.structs.replace(settings, email_address_visibility=visibility))


async def limit_guests(org: Organization) -> None:
    members = SystemGroup.MEMBERS.value
    await org.do(RealmChanged(values={"can_access_all_users_group": members}))


async def crowd(org: Organization, count: int) -> None:
    """This many more accounts."""
    state = org.node.state
    first = state.users.next_id()
    changes = []
    for user_id in range(first, first + count):
        user = User(id=user_id, address=f"n{user_id}@example.com", full_name=f"N {user_id}")
        own = Credential(user_id=user_id, key_digest=f"{user_id:064x}", key_sealed="")
        changes.append(users.creation_change(state, user, own))
    await org.do(*changes)


def shapes(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["op"]) for event in events]


async def events_of(listener: Listener, kind: str, op: str) -> list[dict[str, Any]]:
    return [e for e in await listener.events() if (e["type"], e.get("op")) == (kind, op)]


# Reading


async def test_the_list_has_every_account_but_the_system_s(org: Organization) -> None:
    members = (await org["ben"].get("/users")).ok["members"]
    assert [user["full_name"] for user in members] == ["Ann", "Ben", "Cleo", "Gus", "Robo Bot"]
    assert [user["user_id"] for user in members] == sorted(user["user_id"] for user in members)
    (robo,) = [user for user in members if user["is_bot"]]
    assert robo["bot_type"] == 1
    assert robo["bot_owner_id"] == org["ben"].user_id
    assert "profile_data" not in robo
    ann = members[0]
    assert ann["delivery_email"] == ann["email"] == "ann@example.com"
    assert (ann["is_owner"], ann["is_admin"], ann["is_guest"]) == (True, True, False)
    assert (ann["bot_type"], ann["bot_owner_id"]) == (None, None)
    assert ann["avatar_url"] is None


async def test_the_list_can_be_limited_to_ids(org: Organization) -> None:
    ids = [org["gus"].user_id, 999_999, org["ann"].user_id, org["ann"].user_id]
    members = (await org["ben"].get("/users", user_ids=ids)).ok["members"]
    assert [user["full_name"] for user in members] == ["Ann", "Gus"]
    assert (await org["ben"].get("/users", user_ids=[])).ok["members"] == []


async def test_the_list_can_be_read_in_pages(org: Organization) -> None:
    await crowd(org, 100)
    await limit_guests(org)
    for who in ("ben", "gus"):
        every = (await org[who].get("/users")).ok
        assert "next_after" not in every
        found: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            part = (await org[who].get("/users", after=after, limit=30)).ok
            found += part["members"]
            after = part["next_after"]
        assert found == every["members"]
        first = every["members"][0]["user_id"]
        rest = (await org[who].get("/users", after=first)).ok["members"]
        assert rest == every["members"][1:]
        # Wherever a client starts, nothing is cached beyond the whole list.
        ids = [user["user_id"] for user in every["members"]]
        kept = set(org.node.fragments._kept)
        for after in (*ids, 2**52):
            part = (await org[who].get("/users", after=after, limit=1)).ok["members"]
            assert [user["user_id"] for user in part][:1] == [one for one in ids if one > after][:1]
        assert set(org.node.fragments._kept) == kept
    (await org["ben"].get("/users", user_ids=[1], limit=5)).refused()


async def test_profiles_and_avatars_are_included_on_request(org: Organization) -> None:
    reply = await org["ben"].get(
        "/users", include_custom_profile_fields=True, client_gravatar=False
    )
    for user in reply.ok["members"]:
        assert user["avatar_url"].startswith(DIGEST)
        assert ("profile_data" in user) is not user["is_bot"]


@pytest.mark.parametrize(
    "user_ids", ['"x"', "[1", '["1"]', "[1.5]", "{}", "[99999999999999999999]"]
)
async def test_invalid_ids_are_refused(readonly_org: Organization, user_ids: str) -> None:
    reply = await readonly_org["ben"].get("/users", user_ids=user_ids)
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == "user_ids"


async def test_accounts_of_a_closed_organization_are_not_public(org: Organization) -> None:
    (await org.nobody.get("/users")).refused("UNAUTHORIZED", 401)


async def test_spectators_see_no_address_and_only_the_date(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    members = (await org.nobody.get("/users")).ok["members"]
    (cleo,) = [user for user in members if user["full_name"] == "Cleo"]
    assert cleo["delivery_email"] is None
    assert len(cleo["date_joined"]) == len("2026-01-01")
    assert cleo["avatar_url"].startswith("/user_avatars/1/drawn/")


HOSTS = ["CHAT.test", "elsewhere.test", "sub.chat.test", "chat.test.", ""]


async def test_a_substitute_address_is_in_this_organization(
    org: Organization,
) -> None:
    for number, host in enumerate(HOSTS):
        with row(host):
            channel = await org.channel(f"lounge{number}", "ann", "cleo")
            name = f"User{org['cleo'].user_id}@{host}"
            term = {"operator": "sender", "operand": name}
            page = {"anchor": "newest", "num_before": 1, "num_after": 0}
            principals = {"subscriptions": [f"lounge{number}"], "principals": [name]}
            replies = [
                await org["ann"].get(f"/users/{name}"),
                await org["ann"].post("/messages", type="direct", to=[name], content="psst"),
                await org["ann"].get("/messages", narrow=[term], **page),
                await org["ann"].delete("/users/me/subscriptions", **principals),
            ]
            ours = host == "CHAT.test"
            assert [reply.status == 200 for reply in replies] == [ours] * len(replies)
            assert org.node.state.is_subscribed(org["cleo"].user_id, channel) is not ours


@pytest.mark.parametrize(
    ("visibility", "seen_by"),
    [
        (AddressVisibility.EVERYONE, {"ann", "ben", "gus"}),
        (AddressVisibility.MEMBERS, {"ann", "ben"}),
        (AddressVisibility.ADMINISTRATORS, {"ann"}),
        (AddressVisibility.NOBODY, set()),
    ],
)
async def test_an_address_is_visible_to_people_chosen_by_its_owner(
    org: Organization, visibility: AddressVisibility, seen_by: set[str]
) -> None:
    await hide_address(org, "cleo", visibility)
    cleo = org["cleo"].user_id
    hidden = f"user{cleo}@chat.test"
    shown_to_all = visibility is AddressVisibility.EVERYONE
    for name in ("ann", "ben", "gus"):
        user = (await org[name].get(f"/users/{cleo}")).ok["user"]
        assert (user["delivery_email"] == "cleo@example.com") is (name in seen_by)
        assert (user["delivery_email"] is None) is (name not in seen_by)
        assert user["email"] == ("cleo@example.com" if shown_to_all else hidden)
        assert (user["avatar_url"] is None) is (name in seen_by)
        assert (await org[name].get(f"/users/{hidden}")).ok["user"] == user
        by_address = await org[name].get("/users/CLEO@example.com")
        if name in seen_by:
            assert by_address.ok["user"] == user
        else:
            unknown = await org[name].get("/users/nobody@example.com")
            assert by_address.refused() == unknown.refused()
    own = (await org["cleo"].get("/users/me")).ok
    assert own["delivery_email"] == "cleo@example.com"


async def test_the_own_account_is_a_flat_object(org: Organization) -> None:
    await org.channel("lounge", "ben")
    before = (await org["ben"].get("/users/me")).ok
    assert before["max_message_id"] == -1
    sent = await org["ben"].send("lounge", "hi", "hello")
    own = (await org["ben"].get("/users/me")).ok
    assert own["max_message_id"] == sent
    assert own["user_id"] == org["ben"].user_id
    assert own["profile_data"] == {}
    assert own["is_imported_stub"] is False
    assert own["avatar_url"].startswith(DIGEST)
    assert "bot_type" not in own
    assert "profile_data" not in (await org["robo"].get("/users/me")).ok


@pytest.mark.parametrize("path", ["/users/999999", "/users/x@y.z", "/users/user999@chat.test"])
async def test_an_unknown_account_is_refused(readonly_org: Organization, path: str) -> None:
    (await readonly_org["ben"].get(path)).refused()
    (await readonly_org["ann"].patch(path, full_name="Somebody")).refused()


async def test_limited_guests_see_only_people_they_share_a_conversation_with(
    org: Organization,
) -> None:
    await limit_guests(org)
    await org.channel("club", "cleo", "gus")
    await org["ann"].write([org["gus"].user_id], "welcome")
    members = (await org["gus"].get("/users")).ok["members"]
    assert [user["full_name"] for user in members] == ["Ann", "Cleo", "Gus", "Robo Bot"]
    unseen = await org["gus"].get(f"/users/{org['ben'].user_id}")
    assert unseen.refused() == (await org["gus"].get("/users/999999")).refused()
    assert (await org["gus"].get("/users/ben@example.com")).refused() == unseen.refused()
    assert len((await org["ben"].get("/users")).ok["members"]) == 5


# Creating


async def test_a_new_person_is_subscribed_to_the_default_channels(org: Organization) -> None:
    await org.channel("welcome", "ann", is_default=True)
    secret = await org.channel("secret", "ann")
    reply = await org["ann"].post(
        "/users", email=" Dora@Example.com ", password="sesame open", full_name=" Dora "
    )
    user_id = reply.ok["user_id"]
    user = (await org["ben"].get(f"/users/{user_id}")).ok["user"]
    assert (user["full_name"], user["email"]) == ("Dora", "Dora@Example.com")
    assert user["role"] == 400
    assert not org.node.state.is_subscribed(user_id, secret)
    assert len(org.node.state.channel_ids_of(user_id)) == 1
    key = await org.nobody.post(
        "/fetch_api_key", username="dora@example.com", password="sesame open"
    )
    assert key.ok["user_id"] == user_id


async def test_a_new_person_is_sent_to_everyone(org: Organization) -> None:
    gravatar = await org["ben"].register(client_gravatar=True)
    plain = await org["cleo"].register(client_gravatar=False)
    reply = await org["ann"].post(
        "/users", email="dora@example.com", password="sesame open", full_name="Dora"
    )
    user_id = reply.ok["user_id"]
    events = await gravatar.events()
    assert shapes(events) == [
        ("realm_user", "add"),
        ("user_group", "add_members"),
        ("user_group", "add_members"),
    ]
    person = events[0]["person"]
    shown = (
        await org["ben"].get(
            f"/users/{user_id}", client_gravatar=True, include_custom_profile_fields=True
        )
    ).ok["user"]
    assert person == shown
    assert person["is_active"] is True
    assert person["avatar_url"] is None
    groups = {event["group_id"]: event["user_ids"] for event in events[1:]}
    assert groups == {SystemGroup.FULL_MEMBERS: [user_id], SystemGroup.MEMBERS: [user_id]}
    assert (await plain.events())[0]["person"]["avatar_url"].startswith(DIGEST)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"email": "ben@example.com"}, "BAD_REQUEST"),
        ({"email": "BEN@EXAMPLE.COM"}, "BAD_REQUEST"),
        ({"email": "no address"}, "BAD_REQUEST"),
        ({"email": ""}, "BAD_REQUEST"),
        ({"email": "x" * 300 + "@example.com"}, "BAD_REQUEST"),
        ({"email": "a\0b@example.com"}, "REQUEST_VARIABLE_INVALID"),
        ({"password": "short"}, "BAD_REQUEST"),
        ({"password": "x" * 101}, "BAD_REQUEST"),
        ({"full_name": "D"}, "BAD_REQUEST"),
        ({"full_name": "   "}, "BAD_REQUEST"),
        ({"full_name": "D" * 101}, "BAD_REQUEST"),
        ({"full_name": "Do@ra"}, "BAD_REQUEST"),
        ({"full_name": "Dora|12"}, "BAD_REQUEST"),
        ({"full_name": "Do\u0001ra"}, "BAD_REQUEST"),
        ({"full_name": None}, "REQUEST_VARIABLE_MISSING"),
        ({"password": None}, "REQUEST_VARIABLE_MISSING"),
    ],
)
async def test_an_invalid_person_is_refused(
    readonly_org: Organization, changed: dict[str, str | None], code: str
) -> None:
    before = len(readonly_org.node.state.users)
    asked = {"email": "dora@example.com", "password": "sesame open", "full_name": "Dora"}
    (await readonly_org["ann"].post("/users", **(asked | changed))).refused(code)
    assert len(readonly_org.node.state.users) == before


async def test_creating_accounts_needs_permission(org: Organization) -> None:
    for name in ["ben", "gus", "robo"]:
        with row(name):
            (
                await org[name].post(
                    "/users", email="dora@example.com", password="sesame open", full_name="Dora"
                )
            ).refused()


async def test_a_guest_never_creates_accounts(org: Organization) -> None:
    everyone = SystemGroup.EVERYONE.value
    await org.do(RealmChanged(values={"can_create_users_group": everyone}))
    asked = {"email": "dora@example.com", "password": "sesame open", "full_name": "Dora"}
    (await org["gus"].post("/users", **asked)).refused()
    assert (await org["ben"].post("/users", **asked)).ok["user_id"]


async def test_names_can_be_required_to_be_unique(org: Organization) -> None:
    asked = {"password": "sesame open", "full_name": "BEN"}
    assert (await org["ann"].post("/users", email="b2@example.com", **asked)).ok
    await org.do(RealmChanged(values={"require_unique_names": True}))
    (await org["ann"].post("/users", email="b3@example.com", **asked)).refused()
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", full_name="ben")).refused()


RESERVED = (
    "Notification Bot",
    "notification  bot",
    "Notificati0n Bot",
    "N\u043etification Bot",
    "Welcome Bot",
    "Emai1 Gateway",
)
CYRILLIC_BEN, CYRILLIC_CLEO = "\u0412\u0435n", "\u0421l\u0435\u043e"


async def test_a_name_that_looks_like_a_system_s_or_another_person_s_is_refused(
    org: Organization,
) -> None:
    ann, cleo = org["ann"], org["cleo"].user_id
    hal = (await ann.post("/bots", full_name="Hal", short_name="hal")).ok["user_id"]
    for name in (*RESERVED, CYRILLIC_BEN):
        with row(name):
            asked = {"email": "x@example.com", "password": "sesame open", "full_name": name}
            (await ann.post("/users", **asked)).refused()
            (await ann.patch(f"/users/{cleo}", full_name=name)).refused()
            (await org["cleo"].patch("/settings", full_name=name)).refused()
            (await ann.post("/bots", full_name=name, short_name="x")).refused()
            (await ann.patch(f"/bots/{hal}", full_name=name)).refused()
    # The person's own name in another case, the same name again, and names that only start the
    # same.
    for name in (CYRILLIC_CLEO, "Ben", "BEN", "Notification Bot 2", "Welcome"):
        with row(name):
            assert (await ann.patch(f"/users/{cleo}", full_name=name)).ok


async def test_an_account_that_looks_like_another_can_be_edited_otherwise(
    org: Organization,
) -> None:
    cleo = org["cleo"].user_id
    await org.do(UserChanged(user_id=cleo, values={"full_name": CYRILLIC_BEN}, was={}))
    assert (await org["ann"].patch(f"/users/{cleo}", full_name=CYRILLIC_BEN, role=300)).ok


# Changing


async def test_a_new_name_is_sent_to_everyone(org: Organization) -> None:
    cleo = org["cleo"].user_id
    listener = await org["gus"].register()
    assert (await org["ann"].patch(f"/users/{cleo}", full_name="Cleopatra")).ok
    assert (await org["ann"].patch("/users/cleo@example.com", full_name="Cleopatra")).ok
    (event,) = await listener.events()
    assert (event["type"], event["op"]) == ("realm_user", "update")
    assert event["person"] == {"user_id": cleo, "full_name": "Cleopatra"}


async def test_a_new_role_changes_the_system_groups(org: Organization) -> None:
    cleo = org["cleo"].user_id
    listener = await org["ben"].register()
    assert (await org["ann"].patch(f"/users/{cleo}", role=300)).ok
    events = await listener.events()
    assert [e.get("group_id") for e in events] == [
        None,
        SystemGroup.FULL_MEMBERS,
        SystemGroup.MEMBERS,
        SystemGroup.MODERATORS,
    ]
    assert events[0]["person"] == {"user_id": cleo, "role": 300}
    assert [e["op"] for e in events] == [
        "update",
        "remove_members",
        "remove_members",
        "add_members",
    ]
    groups = (await org["ben"].get("/user_groups")).ok["user_groups"]
    assert [g["name"] for g in groups if cleo in g["members"]] == ["role:moderators"]


async def test_a_new_administrator_sees_what_administrators_see(org: Organization) -> None:
    await hide_address(org, "ben", AddressVisibility.ADMINISTRATORS)
    cleo, ben, robo = [org[name].user_id for name in ("cleo", "ben", "robo")]
    listener = await org["cleo"].register()
    assert (await org["ann"].patch(f"/users/{cleo}", role=200)).ok
    events = await listener.events()
    people = [e["person"] for e in events if e["type"] == "realm_user"]
    assert {"user_id": ben, "delivery_email": "ben@example.com"} in people
    assert [e["bot"]["user_id"] for e in events if e["type"] == "realm_bot"] == [robo]
    assert (await org["ann"].patch(f"/users/{cleo}", role=400)).ok
    events = await listener.events()
    people = [e["person"] for e in events if e["type"] == "realm_user"]
    assert {"user_id": ben, "delivery_email": None} in people
    assert [(e["op"], e["bot"]) for e in events if e["type"] == "realm_bot"] == [
        ("delete", {"user_id": robo})
    ]


async def test_someone_who_becomes_a_limited_guest_loses_sight_of_others(org: Organization) -> None:
    await limit_guests(org)
    await org.channel("club", "cleo", "ann")
    cleo, ben, gus = [org[name].user_id for name in ("cleo", "ben", "gus")]
    listener = await org["cleo"].register()
    assert (await org["ann"].patch(f"/users/{cleo}", role=600)).ok
    lost = await events_of(listener, "realm_user", "remove")
    assert [event["person"]["user_id"] for event in lost] == [ben, gus]
    assert (await org["ann"].patch(f"/users/{cleo}", role=400)).ok
    gained = await events_of(listener, "realm_user", "add")
    assert [event["person"]["user_id"] for event in gained] == [ben, gus]


async def test_limited_guests_get_no_events_about_invisible_people(org: Organization) -> None:
    await limit_guests(org)
    listener = await org["gus"].register(
        event_types=["realm_user", "subscription", "realm_bot"],
        client_capabilities={"user_list_incomplete": True},
    )
    ben = org["ben"].user_id
    assert (await org["ann"].patch(f"/users/{ben}", full_name="Benjamin", role=300)).ok
    assert (
        await org["ann"].post(
            "/users", email="dora@example.com", password="sesame open", full_name="Dora"
        )
    ).ok
    assert (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    assert (await org["ann"].post(f"/users/{org['cleo'].user_id}/reactivate")).ok
    assert await listener.events() == []


async def test_a_new_address_is_sent_to_people_who_can_see_it(org: Organization) -> None:
    await hide_address(org, "cleo", AddressVisibility.ADMINISTRATORS)
    cleo = org["cleo"].user_id
    ann = await org["ann"].register(client_gravatar=True)
    gus = await org["gus"].register()
    assert (await org["ann"].patch(f"/users/{cleo}", new_email="cleo@new.example")).ok
    people = [event["person"] for event in await ann.events()]
    assert {"user_id": cleo, "delivery_email": "cleo@new.example"} in people
    assert not any("new_email" in person for person in people)
    assert any(person.get("avatar_url", "") is None for person in people)
    # People who can't see the address get an avatar that doesn't depend on it.
    assert await gus.events() == []


async def test_a_new_public_address_is_the_new_api_user_name(
    org: Organization,
) -> None:
    cleo = org["cleo"].user_id
    gus = await org["gus"].register()
    assert (await org["ann"].patch("/users/cleo@example.com", new_email="cleo@new.example")).ok
    people = [event["person"] for event in await gus.events()]
    assert {"user_id": cleo, "new_email": "cleo@new.example"} in people
    assert (await org["gus"].get("/users/cleo@new.example")).ok
    (await org["gus"].get("/users/cleo@example.com")).refused()


@pytest.fixture(scope="module")
async def admin(shared_org: Organization) -> Person:
    """An administrator who isn't an owner."""
    return await shared_org.add("admin", Role.ADMINISTRATOR)


@pytest.mark.parametrize(
    ("actor", "target", "changes", "code"),
    [
        ("ben", "cleo", {"full_name": "Other"}, "BAD_REQUEST"),
        ("ben", "ben", {"full_name": "Other"}, "BAD_REQUEST"),
        ("ben", "robo", {"role": 200}, "UNAUTHORIZED_PRINCIPAL"),
        ("gus", "ann", {"full_name": "Other"}, "BAD_REQUEST"),
        ("admin", "ann", {"full_name": "Other"}, "BAD_REQUEST"),
        ("admin", "ann", {"role": 400}, "BAD_REQUEST"),
        ("admin", "admin", {"role": 100}, "UNAUTHORIZED_PRINCIPAL"),
        ("admin", "ben", {"role": 100}, "UNAUTHORIZED_PRINCIPAL"),
        ("ben", "robo", {"new_email": "b@example.com"}, "UNAUTHORIZED_PRINCIPAL"),
        ("admin", "ann", {"new_email": "b@example.com"}, "BAD_REQUEST"),
        ("ann", "ben", {"new_email": "cleo@example.com"}, "BAD_REQUEST"),
        ("ann", "ben", {"new_email": "nothing"}, "BAD_REQUEST"),
        ("ann", "ben", {"full_name": "x"}, "BAD_REQUEST"),
        ("ann", "ben", {"role": 500}, "REQUEST_VARIABLE_INVALID"),
        ("ann", "ben", {"role": "owner"}, "REQUEST_VARIABLE_INVALID"),
        ("ann", "ben", {"profile_data": [{"id": 1, "value": "x"}]}, "BAD_REQUEST"),
        ("ann", "ben", {"profile_data": {"id": 1}}, "REQUEST_VARIABLE_INVALID"),
        ("ann", "ann", {"role": 200}, "CANNOT_DEACTIVATE_LAST_USER"),
    ],
)
async def test_a_forbidden_change_is_refused(
    admin: Person,
    readonly_org: Organization,
    actor: str,
    target: str,
    changes: dict[str, Any],
    code: str,
) -> None:
    org = readonly_org
    before = org.node.state.users[org[target].user_id]
    listener = await org["cleo"].register()
    (await org[actor].patch(f"/users/{org[target].user_id}", **changes)).refused(code)
    assert org.node.state.users[org[target].user_id] == before
    assert await listener.events() == []


async def test_system_bots_cannot_be_changed(org: Organization) -> None:
    (await org["ann"].patch("/users/1", full_name="Other")).refused()
    (await org["ann"].delete("/users/1")).refused()


async def test_an_owner_can_leave_if_another_remains(org: Organization) -> None:
    refused = await org["ann"].delete("/users/me")
    extra = refused.refused("CANNOT_DEACTIVATE_LAST_USER")
    assert (extra["is_last_owner"], extra["entity"]) == (True, "organization owner")
    assert (await org["ann"].patch(f"/users/{org['robo'].user_id}", role=100)).ok
    (await org["ann"].delete("/users/me")).refused("CANNOT_DEACTIVATE_LAST_USER")
    assert (await org["ann"].patch(f"/users/{org['ben'].user_id}", role=100)).ok
    assert (await org["ann"].delete("/users/me")).ok
    (await org["ann"].get("/users/me")).refused("USER_DEACTIVATED", 401)


# Deactivating and reactivating


async def test_a_deactivated_person_is_removed_from_lists_before_the_account(
    org: Organization,
) -> None:
    lounge = await org.channel("lounge", "ben", "cleo")
    hidden = await org.channel("hidden", "ben", "cleo", is_private=True)
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    await org.do(UserGroupCreated(group=UserGroup(id=20, name="crew", members=(ben, cleo))))
    inside, outside = await org["cleo"].register(), await org["gus"].register()
    admin = await org["ann"].register()
    assert (await org["ann"].delete(f"/users/{ben}")).ok
    events = await inside.events()
    assert shapes(events) == [
        ("subscription", "peer_remove"),
        ("user_group", "remove_members"),
        ("user_group", "remove_members"),
        ("user_group", "remove_members"),
        ("realm_user", "update"),
        ("user_group", "remove_members"),
        ("user_group", "remove_members"),
        ("realm_user", "update"),
    ]
    assert events[0]["stream_ids"] == [lounge, hidden]
    assert events[0]["user_ids"] == [ben]
    groups = [event["group_id"] for event in events[1:4]]
    assert groups == [SystemGroup.FULL_MEMBERS, SystemGroup.MEMBERS, 20]
    assert events[4]["person"] == {"user_id": ben, "is_active": False}
    assert events[7]["person"] == {"user_id": org["robo"].user_id, "is_active": False}
    assert shapes(await outside.events()) == shapes(events)[1:]
    assert (await admin.events())[0]["stream_ids"] == [lounge, hidden]
    crew = (await org["cleo"].get("/user_groups")).ok["user_groups"][-1]
    assert crew["members"] == [cleo]
    (await org["ben"].get("/users/me")).refused("USER_DEACTIVATED", 401)
    (await org["robo"].get("/users/me")).refused("USER_DEACTIVATED", 401)
    (await org["ann"].delete(f"/users/{ben}")).refused()


async def test_a_reactivated_person_returns_to_the_same_channels(org: Organization) -> None:
    lounge = await org.channel("lounge", "ben", "cleo")
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    await org.do(UserGroupCreated(group=UserGroup(id=20, name="crew", members=(ben, cleo))))
    assert (await org["ann"].delete(f"/users/{ben}")).ok
    assert (await org["cleo"].get(f"/users/{ben}")).ok["user"]["is_active"] is False
    listener = await org["cleo"].register()
    assert (await org["ann"].post(f"/users/{ben}/reactivate")).ok
    assert (await org["ann"].post(f"/users/{ben}/reactivate")).ok
    events = await listener.events()
    assert shapes(events) == [
        ("realm_user", "update"),
        ("user_group", "add_members"),
        ("user_group", "add_members"),
        ("user_group", "add_members"),
        ("subscription", "peer_add"),
    ]
    assert events[0]["person"] == {"user_id": ben, "is_active": True}
    assert (events[-1]["stream_ids"], events[-1]["user_ids"]) == ([lounge], [ben])
    org.person_of("ben", org.node.state.users[ben])
    assert (await org["ben"].get("/users/me")).ok["is_active"] is True
    (await org["robo"].get("/users/me")).refused("USER_DEACTIVATED", 401)


DEACTIVATING = [("ben", "cleo"), ("gus", "cleo"), ("robo", "ben"), ("admin", "ann")]


async def test_deactivating_others_needs_permission(org: Organization) -> None:
    await org.add("admin", Role.ADMINISTRATOR)
    for actor, target in DEACTIVATING:
        with row(actor, target):
            (await org[actor].delete(f"/users/{org[target].user_id}")).refused()
            (await org[actor].post(f"/users/{org[target].user_id}/reactivate")).refused()
            assert org.node.state.users[org[target].user_id].is_active


async def test_unsupported_deletions_are_refused_explicitly(org: Organization) -> None:
    path = f"/users/{org['cleo'].user_id}"
    before = org.node.state.users[org["cleo"].user_id]
    actions = {"delete_profile": True, "delete_everything": True}
    assert (await org["ann"].delete(path, actions=actions)).status == 400
    both = {"actions": {"delete_profile": True}, "deactivation_notification_comment": "bye"}
    (await org["ann"].delete(path, **both)).refused()
    assert org.node.state.users[org["cleo"].user_id] == before


@pytest.mark.parametrize("what", ["public_channel", "private_channel", "direct"])
async def test_messages_of_an_account_and_its_bots_are_deleted_on_request(
    org: Organization, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "BATCH", 2)
    ben, robo, cleo = org["ben"], org["robo"], org["cleo"]
    await org.channel("lounge", "ben", "cleo", "robo")
    await org.channel("office", "ben", "cleo", "robo", is_private=True)
    written: dict[str, list[int]] = {"public_channel": [], "private_channel": [], "direct": []}
    for who in (ben, robo):
        for number in range(3):
            text = f"m{number}"
            written["public_channel"].append(await who.send("lounge", f"t{number % 2}", text))
            written["private_channel"].append(await who.send("office", "t", text))
            written["direct"].append(await who.write([cleo.user_id], text))
    others = [await cleo.send("lounge", "t0", "kept"), await cleo.write([ben.user_id], "kept")]
    path, actions = f"/users/{ben.user_id}", {f"delete_{what}_messages": True}
    (await cleo.delete(path, actions=actions)).refused("UNAUTHORIZED_PRINCIPAL")
    assert org.node.state.users[ben.user_id].is_active
    gone = written.pop(what)
    monkeypatch.setattr(deleting, "WRITTEN_SECONDS", -1.0)
    first = await org["ann"].delete(path, actions=actions)
    assert first.ok["complete"] is False
    monkeypatch.undo()
    assert not org.node.state.users[ben.user_id].is_active
    actions["delete_profile"] = True
    assert (await org["ann"].delete(path, actions=actions)).ok["complete"] is True
    assert org.node.state.users[ben.user_id].is_deleted
    page = {"anchor": "newest", "num_before": 100, "num_after": 0}
    found = {message["id"] for message in (await cleo.get("/messages", **page)).ok["messages"]}
    left = [*others, *(message_id for ids in written.values() for message_id in ids)]
    assert set(left) <= found
    assert not found & set(gone)


@pytest.mark.parametrize("deactivated_before", [False, True])
async def test_an_account_can_be_deleted_for_good(
    org: Organization, deactivated_before: bool
) -> None:
    ann, cleo, gus = org["ann"], org["cleo"].user_id, org["gus"]
    field = (await ann.post("/realm/profile_fields", name="Desk", field_type=1)).ok["id"]
    data = [{"id": field, "value": "3"}]
    assert (await org["cleo"].patch("/users/me/profile_data", data=data)).ok
    assert (await org["cleo"].post("/users/me/status", status_text="lunch")).ok
    assert (await org["cleo"].patch("/settings", timezone="Europe/Madrid")).ok
    client = await ReferenceClient.begin(gus, WAYS["modern"])
    path = f"/users/{cleo}"
    if deactivated_before:
        assert (await ann.delete(path)).ok
    assert (await ann.delete(path, actions={"delete_profile": True})).ok
    shown = (await gus.get(path, include_custom_profile_fields=True)).ok["user"]
    assert (shown["is_active"], shown["is_deleted"]) == (False, True)
    assert shown["full_name"] == f"Deleted user {cleo}"
    assert shown["email"] == shown["delivery_email"] == f"deleteduser{cleo}@chat.test"
    assert (shown["timezone"], shown["profile_data"]) == ("", {})
    assert (await gus.get(f"{path}/status")).ok["status"] == {}
    await client.catch_up()
    fresh = await ReferenceClient.begin(gus, WAYS["modern"])
    assert not differences(client.shown(), fresh.shown())
    (await ann.delete(path, actions={"delete_profile": True})).refused()
    (await ann.post(f"{path}/reactivate")).refused()
    (await org["cleo"].get("/users/me")).refused("INVALID_API_KEY", 401)
    # The address can be used again.
    new = {"email": "cleo@example.com", "password": "long enough", "full_name": "Cleo"}
    assert (await ann.post("/users", **new)).ok["user_id"] != cleo


async def test_deleting_an_account_needs_permission_to_deactivate_it(org: Organization) -> None:
    await org.add("admin", Role.ADMINISTRATOR)
    actions = {"delete_profile": True}
    for who, target in (("ben", "cleo"), ("gus", "gus"), ("admin", "ann")):
        (await org[who].delete(f"/users/{org[target].user_id}", actions=actions)).refused()
    (await org["ann"].delete(f"/users/{org['ann'].user_id}", actions=actions)).refused(
        "CANNOT_DEACTIVATE_LAST_USER"
    )


async def test_people_can_deactivate_themselves_and_bots_cannot(org: Organization) -> None:
    (await org["robo"].delete("/users/me")).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["gus"].delete("/users/me")).ok
    (await org["gus"].get("/users/me")).refused("USER_DEACTIVATED", 401)


# Keys


async def test_a_new_key_replaces_the_old_one_and_ends_its_polls(org: Organization) -> None:
    ben = org["ben"]
    listener = await ben.register()
    old = ben.api_key
    new = (await ben.post("/users/me/api_key/regenerate")).ok["api_key"]
    assert new != old
    (await ben.get("/users/me")).refused("INVALID_API_KEY", 401)
    ben.api_key = new
    assert (await ben.get("/users/me")).ok["user_id"] == ben.user_id
    assert await listener.events() == []
    (await org["robo"].post("/users/me/api_key/regenerate")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_a_new_key_keeps_the_password(org: Organization) -> None:
    new = (await org["ann"].post("/users/me/api_key/regenerate")).ok["api_key"]
    reply = await org.nobody.post(
        "/fetch_api_key", username="ann@example.com", password="correct horse"
    )
    assert reply.ok["api_key"] == new


def test_a_new_account_s_default_settings_show_its_address() -> None:
    assert PersonalSettings(user_id=1).email_address_visibility is AddressVisibility.EVERYONE


async def test_a_new_role_shows_and_hides_channels(org: Organization) -> None:
    await org.channel("own", "ben", "cleo")
    public = await org.channel("public", "ann", is_default=True)
    private = await org.channel("private", "ann", is_private=True)
    cleo = org["cleo"].user_id
    listener = await org["cleo"].register(event_types=["stream", "subscription", "default_streams"])
    assert (await org["ann"].patch(f"/users/{cleo}", role=200)).ok
    created, peers = await listener.events()
    assert [stream["stream_id"] for stream in created["streams"]] == [private]
    assert (peers["op"], peers["stream_ids"]) == ("peer_add", [private])
    assert peers["user_ids"] == [org["ann"].user_id]
    assert (await org["ann"].patch(f"/users/{cleo}", role=600)).ok
    events = await listener.events()
    assert [event.get("stream_ids") for event in events] == [[public], [private], None]
    assert [event.get("op") for event in events] == ["delete", "delete", None]
    assert events[-1]["default_streams"] == []
    assert (await org["ann"].patch(f"/users/{cleo}", role=400)).ok
    created, _, defaults = await listener.events()
    assert [stream["stream_id"] for stream in created["streams"]] == [public]
    assert defaults["default_streams"] == [public]


async def test_settings_do_not_name_deactivated_people(org: Organization) -> None:
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    both = Members(direct_members=(ben, cleo))
    open_, hidden = [
        await org.channel(name, "ben", is_private=private, can_administer_channel_group=both)
        for name, private in (("open", False), ("hidden", True))
    ]
    group = UserGroup(id=20, name="crew", can_manage_group=both)
    realm = RealmChanged(values={"can_create_groups": both})
    await org.do(UserGroupCreated(group=group), realm)
    listener, guest = await org["cleo"].register(), await org["gus"].register()
    for act, left in (("delete", [cleo]), ("post", [ben, cleo])):
        holder = {"direct_members": left, "direct_subgroups": []}
        path = f"/users/{ben}" + ("" if act == "delete" else "/reactivate")
        assert (await org["ann"].request(act.upper(), path)).ok
        events = await listener.events()
        streams = [e for e in events if e["type"] == "stream"]
        assert [e["stream_id"] for e in streams] == [open_, hidden]
        assert {e["property"] for e in streams} == {"can_administer_channel_group"}
        assert all(e["value"] == holder for e in streams)
        (told,) = [e for e in events if (e["type"], e["op"]) == ("user_group", "update")]
        assert (told["group_id"], told["data"]) == (20, {"can_manage_group": holder})
        (told,) = [e for e in events if e["type"] == "realm"]
        assert told["data"] == {"can_create_groups": holder}
        assert not any(e["type"] == "stream" for e in await guest.events())


async def test_a_late_poll_after_a_restart_has_the_same_events(org: Organization) -> None:
    await org.channel("own", "ben", "cleo")
    await org.channel("private", "ann", is_private=True)
    ben, cleo, robo = [org[name].user_id for name in ("ben", "cleo", "robo")]
    listeners = [await org[name].register() for name in ("ann", "cleo", "gus")]
    assert (await org["ann"].patch(f"/users/{cleo}", role=200, full_name="Cleopatra")).ok
    assert (await org["ann"].patch(f"/bots/{robo}", bot_owner_id=cleo)).ok
    assert (await org["ann"].patch(f"/users/{cleo}", new_email="cleo@new.example")).ok
    assert (await org["ann"].delete(f"/users/{ben}")).ok
    assert (await org["ann"].post(f"/users/{ben}/reactivate")).ok
    org["cleo"].email = "cleo@new.example"
    told = [await listener.events(acknowledge=False) for listener in listeners]
    assert all(told)
    async with open_organization(org.node.config) as again:
        for listener, before in zip(listeners, told, strict=True):
            listener.person.http = again.http
            assert await listener.events() == before


async def test_events_show_what_was_true_at_the_time(org: Organization) -> None:
    """For a client that polls after everything has happened."""
    ann, late = org["ann"], await org["ben"].register(event_types=["realm_user"])
    cleo = org["cleo"].user_id
    for name in ("Cleopatra", "Cleo"):
        assert (await ann.patch(f"/users/{cleo}", full_name=name)).ok
    for role in (300, 400):
        assert (await ann.patch(f"/users/{cleo}", role=role)).ok
    made = await ann.post(
        "/users", email="dora@example.com", password="sesame open", full_name="Dora"
    )
    dora = made.ok["user_id"]
    assert (await ann.patch(f"/users/{dora}", full_name="Theodora")).ok
    assert (await ann.delete(f"/users/{dora}")).ok

    async def told() -> list[tuple[Any, ...]]:
        late.last_event_id = -1
        people = [event["person"] for event in await late.events()]
        names = ("user_id", "full_name", "role", "is_active")
        return [tuple(one[name] for name in names if name in one) for one in people]

    assert await told() == [
        (cleo, "Cleopatra"),
        (cleo, "Cleo"),
        (cleo, 300),
        (cleo, 400),
        (dora, "Dora", 400, True),
        (dora, "Theodora"),
        (dora, False),
    ]
    # An erased person has no history.
    assert (await ann.delete(f"/users/{dora}", actions={"delete_profile": True})).ok
    assert "Dora" not in str(await told())
    assert "Theodora" not in str(await told())
