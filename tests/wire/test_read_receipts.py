"""Read receipts, and rendering a message without sending it."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged, UserDeactivated
from tertulia.model.users import PersonalSettings
from tests.support import Organization, Person
from tests.wire.test_muted_users import mute

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def read(who: Person, *message_ids: int) -> None:
    assert (await who.post("/messages/flags", messages=list(message_ids), op="add", flag="read")).ok


async def readers(who: Person, message_id: int) -> list[int]:
    found: list[int] = (await who.get(f"/messages/{message_id}/read_receipts")).ok["user_ids"]
    return found


def ids(org: Organization, *names: str) -> list[int]:
    return sorted(org[name].user_id for name in names)


async def test_readers_of_a_message_are_listed(org: Organization) -> None:
    """Without its sender and accounts that haven't read it."""
    await org.channel("lounge", "ann", "ben", "cleo", "gus", "robo")
    sent = await org["ann"].send("lounge", "t", "x", read_by_sender=True)
    assert await readers(org["ann"], sent) == []
    await read(org["ben"], sent)
    await read(org["robo"], sent)
    assert await readers(org["ann"], sent) == ids(org, "ben", "robo")
    await read(org["gus"], sent)
    for who in ("ann", "ben", "cleo"):
        assert await readers(org[who], sent) == ids(org, "ben", "gus", "robo")
    reply = await org["ben"].post("/messages/flags", messages=[sent], op="remove", flag="read")
    assert reply.ok
    assert await readers(org["ann"], sent) == ids(org, "gus", "robo")


async def test_people_who_read_it_in_the_history_are_listed(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    assert (await org["ben"].post(f"/messages/{sent}/reactions", emoji_name="heart")).ok
    assert await readers(org["ann"], sent) == ids(org, "ben")


async def test_readers_of_a_direct_message_are_listed_for_its_participants(
    org: Organization,
) -> None:
    sent = await org["ann"].write([org["ben"].user_id, org["cleo"].user_id], "psst")
    await read(org["cleo"], sent)
    assert await readers(org["ann"], sent) == ids(org, "cleo")
    unknown = (await org["gus"].get("/messages/999999/read_receipts")).refused()
    assert (await org["gus"].get(f"/messages/{sent}/read_receipts")).refused() == unknown
    (await org.nobody.get(f"/messages/{sent}/read_receipts")).refused("UNAUTHORIZED", 401)


@pytest.mark.parametrize("reason", ["deactivated", "keeps it", "muted", "has muted"])
async def test_some_readers_are_left_out(org: Organization, reason: str) -> None:
    """Deactivated people, people who turned receipts off, and both sides of a muting."""
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    await org.channel("lounge", "ann", "ben", "cleo")
    sent = await ann.send("lounge", "t", "x")
    for who in (ben, cleo):
        await read(who, sent)
    match reason:
        case "deactivated":
            await org.do(UserDeactivated(user_id=ben.user_id))
        case "keeps it":
            settings = PersonalSettings(user_id=ben.user_id, send_read_receipts=False)
            org.node.state.settings.put(settings)
        case "muted":
            await mute(ann, ben)
        case _:
            await mute(ben, ann)
    assert await readers(ann, sent) == ids(org, "cleo")
    if reason in {"muted", "has muted"}:
        assert await readers(cleo, sent) == ids(org, "ben", "cleo")


async def test_an_organization_can_disable_read_receipts(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "x")
    await org.do(RealmChanged(values={"enable_read_receipts": False}))
    (await org["ann"].get(f"/messages/{sent}/read_receipts")).refused()


# Rendering


async def test_a_text_is_rendered_like_a_message(org: Organization) -> None:
    ben = org["ben"].user_id
    content = "**bold** @**Ben**\n\n```\n<b>\n```"
    rendered = (await org["ann"].post("/messages/render", content=content)).ok["rendered"]
    sent = await org["ann"].write([ben], content)
    assert rendered == (await org["ann"].get(f"/messages/{sent}")).ok["message"]["content"]
    assert "<strong>bold</strong>" in rendered
    assert f'data-user-id="{ben}"' in rendered
    assert "&lt;b&gt;" in rendered


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({}, "REQUEST_VARIABLE_MISSING"),
        ({"content": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
        ({"content": ""}, "BAD_REQUEST"),
    ],
)
async def test_an_empty_text_is_not_rendered(
    sqlite_org: Organization, sent: dict[str, Any], code: str
) -> None:
    (await sqlite_org["ann"].post("/messages/render", **sent)).refused(code)
    (await sqlite_org.nobody.post("/messages/render", content="x")).refused("UNAUTHORIZED", 401)
