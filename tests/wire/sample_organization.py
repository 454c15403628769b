"""Setup for tests of what clients see."""

from typing import Any

from tertulia.model.changes import RealmChanged, Unsubscribed, UserDeactivated, UserGroupCreated
from tertulia.model.groups import SystemGroup, UserGroup
from tests.support import Organization, Person

Data = dict[str, Any]

LIMITED = RealmChanged(values={"can_access_all_users_group": SystemGroup.MEMBERS.value})
"""Guests see only people they share a conversation with."""


async def appear(org: Organization, *names: str) -> None:
    """They report presence."""
    for name in names:
        reply = await org[name].post("/users/me/presence", status="active")
        assert reply.ok


async def flag(org: Organization, who: str, op: str, name: str, *message_ids: int) -> None:
    """Set or clear someone's flag."""
    reply = await org[who].post("/messages/flags", messages=list(message_ids), op=op, flag=name)
    assert reply.ok


async def lived_in(org: Organization) -> None:
    """An organization with one of everything, visible to ben."""
    everybody = ("ann", "ben", "cleo", "gus")
    ids = {name: org[name].user_id for name in org.people}
    await org.channel("lounge", *everybody)
    await org.channel("attic", "ann", "ben", is_private=True)
    await org.channel("square", "ann", is_web_public=True)
    await org.channel("cellar", "ann", is_private=True)
    left = await org.channel("garden", "ann", "ben")
    await org.do(Unsubscribed(channel_id=left, user_ids=(ids["ben"],), until=0, name="garden"))
    await org["ann"].send("lounge", "greetings", f"hello @**Ben|{ids['ben']}**")
    await org["ann"].send("lounge", "", "without a topic")
    first = await org["ann"].write([ids["ben"]], "psst")
    await org["ann"].write([ids["ben"], ids["cleo"]], "we three")
    await org["ben"].write([ids["ben"]], "to myself")
    await flag(org, "ben", "add", "starred", first)
    await appear(org, *everybody)
    gone = UserGroup(id=100, name="gone", created_at=0, deactivated=True)
    await org.do(
        UserGroupCreated(group=UserGroup(id=99, name="cooks", created_at=0, members=(ids["ben"],))),
        UserGroupCreated(group=gone),
    )
    await org.add("dan")
    await org.do(UserDeactivated(user_id=org["dan"].user_id))


def named(data: Data, key: str) -> list[Any]:
    """The names in a list."""
    return [one.get("name", one.get("full_name")) for one in data[key]]


async def direct_messages(person: Person) -> list[str]:
    """The contents of someone's newest direct messages, as Markdown."""
    page = await person.get(
        "/messages",
        anchor="newest",
        num_before=99,
        num_after=0,
        narrow=[["is", "dm"]],
        apply_markdown=False,
    )
    return [message["content"] for message in page.ok["messages"]]
