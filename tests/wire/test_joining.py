"""When people join: immediately, or with their first sign-in to an account that someone created."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from tertulia.model.changes import RealmChanged, UserChanged
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, TestClock, new_organization, open_organization

DAY = 86400
DAN = {"email": "dan@example.com", "password": "long enough", "full_name": "Dan"}


@pytest.fixture
async def timed(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """The owner, a guest, and a clock that tests set."""
    async with new_organization(config, clock=clock) as organization:
        await organization.add("gus", Role.GUEST)
        yield organization


async def joined(org: Organization, user_id: int) -> str:
    user = (await org["gus"].get(f"/users/{user_id}")).ok["user"]
    text: str = user["date_joined"]
    datetime.fromisoformat(text)
    return text


async def test_an_account_created_by_someone_else_joins_with_the_first_sign_in(
    timed: Organization, clock: TestClock
) -> None:
    dan = (await timed["ann"].post("/users", **DAN)).ok["user_id"]
    made = await joined(timed, dan)
    listener = await timed["gus"].register(
        event_types=["realm_user"],
        idle_queue_timeout=7 * DAY,  # Longer than the clock is advanced.
    )
    clock.ahead = 3 * DAY
    assert await joined(timed, dan) == made
    sign_in = {"username": DAN["email"], "password": DAN["password"]}
    assert (await timed.nobody.post("/fetch_api_key", **sign_in)).ok
    first = await joined(timed, dan)
    assert first > made
    (event,) = await listener.events()
    assert event["person"] == {"user_id": dan, "date_joined": first}
    clock.ahead = 5 * DAY
    assert (await timed.nobody.post("/fetch_api_key", **sign_in)).ok
    assert await joined(timed, dan) == first
    assert await listener.events() == []
    async with open_organization(timed.node.config, clock=clock) as later:
        assert await joined(later, dan) == first


async def test_a_placeholder_becomes_an_account_with_the_first_sign_in(
    timed: Organization,
) -> None:
    dan = (await timed["ann"].post("/users", **DAN)).ok["user_id"]
    stub = {"is_placeholder": True, "joined_elsewhere": True}
    was = {"is_placeholder": False, "joined_elsewhere": False}
    await timed.do(UserChanged(user_id=dan, values=stub, was=was))
    listener = await timed["gus"].register(event_types=["realm_user"])
    sign_in = {"username": DAN["email"], "password": DAN["password"]}
    assert (await timed.nobody.post("/fetch_api_key", **sign_in)).ok
    (event,) = await listener.events()
    assert event["person"] == {"user_id": dan, "is_imported_stub": False}
    assert (await timed["gus"].get(f"/users/{dan}")).ok["user"]["is_imported_stub"] is False


async def test_other_accounts_joined_when_they_were_created(
    timed: Organization, clock: TestClock
) -> None:
    before = await joined(timed, timed["ann"].user_id)
    clock.ahead = 3 * DAY
    sign_in = {"username": "ann@example.com", "password": "correct horse"}
    assert (await timed.nobody.post("/fetch_api_key", **sign_in)).ok
    assert await joined(timed, timed["ann"].user_id) == before


async def test_the_waiting_period_starts_with_joining(
    timed: Organization, clock: TestClock
) -> None:
    await timed.do(RealmChanged(values={"waiting_period_threshold": 2}))
    dan = (await timed["ann"].post("/users", **DAN)).ok["user_id"]
    clock.ahead = 3 * DAY
    await timed.tick()
    groups = (await timed["ann"].get("/user_groups")).ok["user_groups"]
    (full,) = [group for group in groups if group["name"] == "role:fullmembers"]
    assert dan in full["members"]
    listener = await timed["ann"].register(event_types=["user_group"])
    sign_in = {"username": DAN["email"], "password": DAN["password"]}
    assert (await timed.nobody.post("/fetch_api_key", **sign_in)).ok
    (event,) = await listener.events()
    assert (event["op"], event["group_id"]) == ("remove_members", full["id"])
    assert event["user_ids"] == [dan]


async def test_administrators_set_email_addresses(org: Organization) -> None:
    admin = await org.add("admin", Role.ADMINISTRATOR)
    cleo = org["cleo"].user_id
    assert (await admin.patch(f"/users/{cleo}", new_email="cleo@new.example")).ok
    user = (await org["ben"].get("/users/cleo@new.example")).ok["user"]
    assert (user["user_id"], user["email"]) == (cleo, "cleo@new.example")
    assert user["delivery_email"] == "cleo@new.example"
    robo = org["robo"].user_id
    (await org["ben"].patch(f"/users/{robo}", new_email="r@b.example")).refused(
        "UNAUTHORIZED_PRINCIPAL"
    )


async def test_an_account_is_neither_an_imported_stub_nor_deleted(org: Organization) -> None:
    for user in (await org["ben"].get("/users")).ok["members"]:
        assert user["is_imported_stub"] is False
        assert "is_deleted" not in user
        assert "is_billing_admin" not in user
