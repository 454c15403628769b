"""A bot's permissions never exceed its owner's current ones."""

import pytest

from tertulia.domain import permissions
from tertulia.model.groups import Members
from tertulia.model.users import Role
from tests.support import Organization, Person


@pytest.fixture
async def staffed(org: Organization) -> Organization:
    """Ada is an administrator, and so is her bot. Mel is a member with a bot."""
    await org.add("ada", Role.ADMINISTRATOR)
    await org.add("aide", owner="ada")
    await org.add("mel")
    await org.add("mute", owner="mel")
    await give_role(org, "aide", Role.ADMINISTRATOR)
    return org


async def give_role(org: Organization, name: str, role: Role) -> None:
    assert (await org["ann"].patch(f"/users/{org[name].user_id}", role=int(role))).ok


def channels(events: list[dict[str, object]], op: str) -> list[object]:
    """Return the channels that became visible or hidden."""
    key = "streams" if op == "create" else "stream_ids"
    of = [e for e in events if e["type"] == "stream" and e["op"] == op]
    return [one for event in of for one in event[key]]  # type: ignore[attr-defined]


async def test_no_bot_changes_roles(staffed: Organization) -> None:
    org = staffed
    for who in ("ada", "cleo", "mute", "aide"):
        reply = await org["aide"].patch(f"/users/{org[who].user_id}", role=int(Role.MODERATOR))
        reply.refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["aide"].patch(f"/users/{org['cleo'].user_id}", full_name="Cleo 2")).ok
    assert org.node.state.users[org["cleo"].user_id].role is Role.MEMBER


async def test_a_demoted_administrator_s_bot_loses_its_rights(staffed: Organization) -> None:
    org = staffed
    assert (await org["aide"].patch("/realm", description="by a bot")).ok
    await give_role(org, "ada", Role.MEMBER)
    (await org["aide"].patch("/realm", description="again")).refused("UNAUTHORIZED_PRINCIPAL")
    await give_role(org, "ada", Role.ADMINISTRATOR)
    assert (await org["aide"].patch("/realm", description="again")).ok


async def test_an_administrator_s_bot_loses_private_channels_with_its_owner_s_role(
    staffed: Organization,
) -> None:
    org = staffed
    vault = await org.channel("vault", "cleo", is_private=True)
    listener = await org["aide"].register()
    assert vault in [c["stream_id"] for c in listener.data["never_subscribed"]]
    await give_role(org, "ada", Role.MEMBER)
    assert channels(await listener.events(), "delete") == [vault]
    await give_role(org, "ada", Role.ADMINISTRATOR)
    (appeared,) = channels(await listener.events(), "create")
    assert appeared["stream_id"] == vault  # type: ignore[index]


async def test_other_people_s_bots_are_hidden_after_a_demotion(
    staffed: Organization,
) -> None:
    org = staffed
    listener = await org["aide"].register()
    assert org["robo"].user_id in [b["user_id"] for b in listener.data["realm_bots"]]
    await give_role(org, "ada", Role.MEMBER)
    gone = [e["bot"]["user_id"] for e in await listener.events() if e["type"] == "realm_bot"]
    assert org["robo"].user_id in gone
    assert (await org["aide"].register()).data["realm_bots"] == []


async def test_a_guest_s_bot_reads_no_public_channel(staffed: Organization) -> None:
    org = staffed
    lounge = await org.channel("lounge", "cleo")
    message = await org["cleo"].send("lounge", "talk", "for members")
    listener = await org["mute"].register(all_public_streams=True)
    narrow = [{"operator": "channel", "operand": "lounge"}]
    page = {"narrow": narrow, "anchor": "newest", "num_before": 10, "num_after": 0}
    assert [m["id"] for m in (await org["mute"].get("/messages", **page)).ok["messages"]]
    await give_role(org, "mel", Role.GUEST)
    assert channels(await listener.events(), "delete") == [lounge]
    later = await org["cleo"].send("lounge", "talk", "for members still")
    assert [e for e in await listener.events() if e["type"] == "message"] == []
    reply = await org["mute"].get("/messages", **page)
    assert reply.status == 400 or reply.ok["messages"] == []
    for one in (message, later):
        (await org["mute"].get(f"/messages/{one}")).refused()
    (await org["mute"].post("/register", all_public_streams=True)).refused()
    subscriptions = [{"name": "lounge"}]
    (await org["mute"].post("/users/me/subscriptions", subscriptions=subscriptions)).refused()
    registered = (await org["mute"].register()).data
    assert lounge not in [c["stream_id"] for c in registered["never_subscribed"]]


async def test_a_guest_s_bot_leaves_channels_that_the_guest_is_not_in(
    staffed: Organization,
) -> None:
    org = staffed
    lounge = await org.channel("lounge", "cleo", "mute")
    attic = await org.channel("attic", "cleo", "mel", "mute")
    square = await org.channel("square", "mute", is_web_public=True)
    listener = await org["mute"].register()
    await give_role(org, "mel", Role.GUEST)
    removed = [e for e in await listener.events() if e["type"] == "subscription"]
    assert [s["stream_id"] for e in removed for s in e["subscriptions"]] == [lounge]
    bot = org["mute"].user_id
    assert org.node.state.channel_ids_of(bot) == [attic, square]
    brought = {"subscriptions": [{"name": "lounge"}], "principals": [bot]}
    (await org["cleo"].post("/users/me/subscriptions", **brought)).refused()
    unsubscribed = {"subscriptions": ["attic"], "principals": [org["mel"].user_id]}
    assert (await org["ann"].delete("/users/me/subscriptions", **unsubscribed)).ok
    assert org.node.state.channel_ids_of(bot) == [square]
    both = {"subscriptions": [{"name": "lounge"}], "principals": [bot, org["mel"].user_id]}
    assert (await org["cleo"].post("/users/me/subscriptions", **both)).ok


async def test_a_group_s_permissions_apply_to_a_member_s_bot(staffed: Organization) -> None:
    org = staffed
    people = [org["mel"].user_id, org["mute"].user_id]
    made = await org["ann"].post(
        "/user_groups/create", name="cooks", description="", members=people
    )
    group_id = made.ok["group_id"]
    kitchen = await org.channel(
        "kitchen", "cleo", is_private=True, can_administer_channel_group=group_id
    )
    listener = await org["mute"].register()
    assert kitchen in [c["stream_id"] for c in listener.data["never_subscribed"]]
    left = await org["ann"].post(f"/user_groups/{group_id}/members", delete=[org["mel"].user_id])
    assert left.ok
    assert channels(await listener.events(), "delete") == [kitchen]
    (await org["mute"].patch(f"/streams/{kitchen}", description="mine")).refused()


async def test_permissions_granted_to_a_bot_itself_apply(staffed: Organization) -> None:
    org = staffed
    named = Members(direct_members=(org["mute"].user_id,))
    news = await org.channel("news", "mute", can_send_message_group=named)
    assert await org["mute"].send("news", "today", "something happened")
    (await org["mel"].post("/messages", type="stream", to=news, topic="t", content="c")).refused()
    await give_role(org, "mel", Role.GUEST)
    state = org.node.state
    bot = state.users[org["mute"].user_id]
    assert not permissions.holds_as_member(state, bot, named)


async def test_a_bot_cannot_be_given_to_someone_with_more_permissions(
    staffed: Organization,
) -> None:
    org = staffed
    path = f"/bots/{org['mute'].user_id}"
    for name in ("ann", "ada"):
        (await org["mel"].patch(path, bot_owner_id=org[name].user_id)).refused()
    herald = await org.add("herald")
    only = Members(direct_members=(herald.user_id,))
    await org.channel("news", "herald", can_send_message_group=only)
    (await org["mel"].patch(path, bot_owner_id=herald.user_id)).refused()
    assert (await org["mel"].patch(path, bot_owner_id=org["cleo"].user_id)).ok
    assert (await org["ada"].patch(path, bot_owner_id=herald.user_id)).ok


async def test_a_new_owner_changes_a_bot_s_permissions(staffed: Organization) -> None:
    org = staffed
    vault = await org.channel("vault", "cleo", is_private=True)
    listener = await org["aide"].register()
    path = f"/bots/{org['aide'].user_id}"
    assert (await org["ada"].patch(path, bot_owner_id=org["cleo"].user_id)).ok
    events = await listener.events()
    assert channels(events, "delete") == [vault]
    assert [e["op"] for e in events if e["type"] == "realm_bot"].count("delete") >= 2
    (await org["aide"].patch("/realm", description="again")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_a_bot_cannot_reactivate_a_bot_as_its_owner(staffed: Organization) -> None:
    org = staffed
    assert (await org["ann"].delete(f"/users/{org['mel'].user_id}")).ok
    path = f"/users/{org['mute'].user_id}/reactivate"
    (await org["aide"].post(path)).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["ada"].post(path)).ok


def of_role(person: Person, org: Organization) -> Role:
    return permissions.role_of(org.node.state, org.node.state.users[person.user_id])


async def test_a_bot_without_an_active_owner_has_guest_permissions(staffed: Organization) -> None:
    org = staffed
    assert of_role(org["aide"], org) is Role.ADMINISTRATOR
    assert (await org["ann"].delete(f"/users/{org['ada'].user_id}")).ok
    assert of_role(org["aide"], org) is Role.GUEST
