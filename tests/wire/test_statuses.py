"""User statuses."""

from typing import Any

import pytest

from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated, RealmChanged
from tertulia.model.reactions import CustomEmoji
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.conftest import OTHERS
from tests.support import Organization, TestClock, new_organization, open_organization, row
from tests.wire.sample_organization import LIMITED

PIZZA = {"emoji_name": "pizza", "emoji_code": "1f355", "reaction_type": "unicode_emoji"}
NONE = {"emoji_name": "", "emoji_code": "", "reaction_type": "unicode_emoji"}


async def status(org: Organization, name: str, viewer: str = "gus") -> dict[str, Any]:
    reply = await org[viewer].get(f"/users/{org[name].user_id}/status")
    found: dict[str, Any] = reply.ok["status"]
    return found


async def statuses(org: Organization, viewer: str = "gus") -> dict[str, Any]:
    found: dict[str, Any] = (await org[viewer].register()).data["user_status"]
    return found


SET: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"status_text": "lunch"}, {"status_text": "lunch"}),
    ({"status_text": "  lunch "}, {"status_text": "lunch"}),
    ({"status_text": "x" * 60}, {"status_text": "x" * 60}),
    ({"status_text": "午餐 🍜"}, {"status_text": "午餐 🍜"}),
    ({"emoji_name": "pizza"}, PIZZA),
    (PIZZA, PIZZA),
    (
        {"emoji_name": "zulip", "reaction_type": "service_extra_emoji"},
        {
            "emoji_name": "zulip",
            "emoji_code": "zulip",
            "reaction_type": "zulip_extra_emoji",
        },
    ),
    ({"status_text": "lunch", **PIZZA}, {"status_text": "lunch", **PIZZA}),
]
"""What is sent, and the resulting event."""


async def test_a_status_is_sent_to_everyone_and_persists(org: Organization) -> None:
    for number in range(len(SET)):
        await org.add(f"dora{number}")
    listener = await org["gus"].register()
    everyone: dict[str, dict[str, str]] = {}
    for number, (given, told) in enumerate(SET):
        with row(given):
            who = f"dora{number}"
            assert (await org[who].post("/users/me/status", **given)).ok
            (event,) = await listener.events()
            user_id = org[who].user_id
            assert event == {"id": event["id"], "type": "user_status", "user_id": user_id, **told}
            assert await status(org, who) == told
            everyone[str(user_id)] = told
            assert await statuses(org) == everyone
    async with open_organization(org.node.config) as later:
        assert await statuses(later) == everyone


async def test_only_the_given_fields_change(org: Organization) -> None:
    assert (await org["ben"].post("/users/me/status", status_text="lunch", **PIZZA)).ok
    listener = await org["ben"].register()
    assert (await org["ben"].post("/users/me/status", status_text="")).ok
    assert await status(org, "ben") == PIZZA
    assert (await org["ben"].post("/users/me/status", emoji_name="")).ok
    assert await status(org, "ben") == {}
    assert await statuses(org) == {}
    first, second = await listener.events()
    assert {n: v for n, v in first.items() if n != "id"} == {
        "type": "user_status",
        "user_id": org["ben"].user_id,
        "status_text": "",
    }
    assert {name: second[name] for name in NONE} == NONE
    assert "status_text" not in second


async def test_an_equal_status_sends_no_event(org: Organization) -> None:
    assert (await org["ben"].post("/users/me/status", status_text="lunch")).ok
    listener = await org["ben"].register()
    assert (await org["ben"].post("/users/me/status", status_text="lunch", **NONE)).ok
    assert await listener.events() == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"status_text": "x" * 61},
        {"status_text": "two\nlines"},
        {"status_text": "null\0"},
        {"emoji_name": "no such emoji"},
        {"emoji_name": "x" * 10_000},
        {"emoji_name": "pizza", "emoji_code": "1f600"},
        {"emoji_name": "pizza", "reaction_type": "smiley"},
        {"emoji_name": "pizza", "reaction_type": "realm_emoji"},
        {"emoji_name": "pizza", "reaction_type": "zulip_extra_emoji"},
        {"emoji_code": "1f355"},
        {"reaction_type": "unicode_emoji"},
        {"away": "yes"},
        {"scheduled_end_time": 2**33},
        {"status_text": "lunch", "scheduled_end_time": 1},
        {"status_text": "lunch", "scheduled_end_time": -1},
        {"status_text": "lunch", "scheduled_end_time": 2**33},
    ],
)
async def test_an_invalid_status_is_refused(
    readonly_org: Organization, given: dict[str, str]
) -> None:
    reply = await readonly_org["ben"].post("/users/me/status", **given)
    assert reply.status == 400
    assert await status(readonly_org, "ben") == {}


async def test_the_away_flag_means_invisible(org: Organization) -> None:
    ben = org["ben"].user_id
    assert (await org["ben"].post("/users/me/presence", status="active")).ok
    listener, own = await org["gus"].register(), await org["ben"].register()
    assert (await org["ben"].post("/users/me/status", away=True)).ok
    events = {event["type"]: event for event in await listener.events()}
    assert (events["user_status"]["user_id"], events["user_status"]["away"]) == (ben, True)
    (setting,) = [e for e in await own.events() if e["type"] == "user_settings"]
    assert (setting["property"], setting["value"]) == ("presence_enabled", False)
    assert await statuses(org) == {str(ben): {"away": True}}
    assert await status(org, "ben") == {"away": True}
    assert (await org["ben"].post("/users/me/status", away=False)).ok
    assert await statuses(org) == {}


async def test_administrators_set_other_people_s_statuses(org: Organization) -> None:
    ben = org["ben"].user_id
    assert (await org["ann"].post(f"/users/{ben}/status", status_text="on leave", **PIZZA)).ok
    assert await status(org, "ben") == {"status_text": "on leave", **PIZZA}
    bot = await org.add("helper", Role.MEMBER, owner="ann")
    assert (await org["ann"].patch(f"/users/{bot.user_id}", role=200)).ok
    assert (await bot.post(f"/users/{ben}/status", status_text="back")).ok
    assert (await status(org, "ben"))["status_text"] == "back"


@pytest.mark.parametrize(
    ("who", "path", "code"),
    [
        ("ben", "/users/{cleo}/status", "UNAUTHORIZED_PRINCIPAL"),
        ("ann", "/users/999/status", "BAD_REQUEST"),
        ("ann", "/users/1/status", "BAD_REQUEST"),
    ],
)
async def test_others_cannot_set_a_status(
    readonly_org: Organization, who: str, path: str, code: str
) -> None:
    place = path.format(cleo=readonly_org["cleo"].user_id)
    (await readonly_org[who].post(place, status_text="gone")).refused(code)


async def test_an_invisible_person_s_status_is_not_sent(org: Organization) -> None:
    await org.do(LIMITED)
    await org.channel("lounge", "ben", "gus")
    for name in ("ben", "cleo"):
        assert (await org[name].post("/users/me/status", status_text="lunch")).ok
    assert (await statuses(org)).keys() == {str(org["ben"].user_id)}
    (await org["gus"].get(f"/users/{org['cleo'].user_id}/status")).refused()
    (await org["gus"].get("/users/999/status")).refused()
    listener = await org["gus"].register()
    assert (await org["cleo"].post("/users/me/status", status_text="back")).ok
    assert await listener.events() == []


async def test_a_guest_who_becomes_a_member_gets_everyone_s_statuses(org: Organization) -> None:
    await org.do(LIMITED)
    assert (await org["cleo"].post("/users/me/status", status_text="lunch")).ok
    listener = await org["gus"].register()
    assert (await org["ann"].patch(f"/users/{org['gus'].user_id}", role=400)).ok
    news = [e for e in await listener.events() if e["type"] == "user_status"]
    assert [(e["user_id"], e["status_text"]) for e in news] == [(org["cleo"].user_id, "lunch")]


async def test_spectators_see_no_statuses(org: Organization) -> None:

    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    assert (await org["ben"].post("/users/me/status", status_text="lunch")).ok
    assert (await org.nobody.register()).data["user_status"] == {}


async def test_custom_emoji_can_be_used_in_a_status(org: Organization) -> None:
    await org.do(CustomEmojiAdded(emoji=CustomEmoji(id=7, name="team", file="x")))
    assert (await org["ben"].post("/users/me/status", emoji_name="team")).ok
    team = {"emoji_name": "team", "emoji_code": "7", "reaction_type": "realm_emoji"}
    assert await status(org, "ben") == team
    assert (await org["ben"].post("/users/me/status", status_text="x", **team)).ok
    (await org["ben"].post("/users/me/status", **{**team, "emoji_code": "8"})).refused()
    await org.do(CustomEmojiDeactivated(emoji_id=7))
    assert await status(org, "ben") == {"status_text": "x", **team}
    (await org["cleo"].post("/users/me/status", **team)).refused()


async def test_a_status_expires_once_and_a_later_one_stays(config: Config) -> None:
    clock = TestClock()
    clock.stopped_at = clock()
    now = int(clock())
    async with new_organization(config, clock=clock, others=OTHERS) as org:
        listener = await org["gus"].register()
        ben = org["ben"]
        given = {"status_text": "lunch", "scheduled_end_time": now + 60}
        assert (await ben.post("/users/me/status", **given)).ok
        assert await status(org, "ben") == given
        # Only the expiry changes, or nothing.
        assert (await ben.post("/users/me/status", scheduled_end_time=now + 90)).ok
        assert (await ben.post("/users/me/status", status_text="lunch")).ok
        assert (await ben.post("/users/me/status", scheduled_end_time=now + 90)).ok
        assert await statuses(org) == {str(ben.user_id): given | {"scheduled_end_time": now + 90}}
        first, second = await listener.events()
        assert first["scheduled_end_time"] == now + 60
        assert second["scheduled_end_time"] == now + 90
        assert "status_text" not in second
        clock.ahead += 89
        await org.tick()
        assert await listener.events() == []
        clock.ahead += 1
        await org.tick()
        await org.tick()
        (event,) = await listener.events()
        assert (event["type"], event["user_id"], event["status_text"]) == (
            "user_status",
            ben.user_id,
            "",
        )
        assert await status(org, "ben") == {}
        # A program without expiry support sets another status, which doesn't expire with the first.
        assert (await ben.post("/users/me/status", **given | {"scheduled_end_time": now + 999})).ok
        assert (await ben.post("/users/me/status", status_text="holiday")).ok
        assert await status(org, "ben") == {"status_text": "holiday"}
        cleo = {"status_text": "call", "scheduled_end_time": now + 999}
        assert (await org["cleo"].post("/users/me/status", **cleo)).ok
        assert (await org["ann"].post(f"/users/{org['cleo'].user_id}/status", **cleo)).ok
    clock.ahead += 5000
    # A status that expired while no server ran ends with the next start.
    async with open_organization(config, clock=clock) as later:
        await later.tick()
        assert await statuses(later) == {str(later["ben"].user_id): {"status_text": "holiday"}}
