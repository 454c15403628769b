"""Changing an account's email address: requested, and confirmed with an emailed link."""

import asyncio
from typing import Any

import pytest

from tertulia.domain.accounts.addresses import CONFIRMATIONS_PER_ACCOUNT
from tertulia.model.changes import RealmChanged
from tertulia.model.users import AddressVisibility
from tertulia.service.config import Config
from tests.emails import due_emails, link_path, no_email_job
from tests.support import (
    PASSWORD,
    Organization,
    TestClock,
    new_organization,
    open_organization,
    rows,
)

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

NEW = "benjamin@example.com"
DAY = 86400


async def requested_link(org: Organization, who: str = "ben", email: str = NEW) -> str:
    """The path of the link that is emailed to the new address."""
    (await org[who].patch("/settings", email=email)).ok
    (letter,) = await due_emails(org)
    assert letter.to == email
    return link_path(letter)


async def address(org: Organization, who: str = "ben") -> str:
    return org.node.state.users[org[who].user_id].address


async def test_the_address_changes_only_when_the_link_is_confirmed(org: Organization) -> None:
    path = await requested_link(org)
    assert await address(org) == "ben@example.com"
    page = await org.http.get(path)
    assert page.status_code == 200
    assert NEW in page.text
    assert '<form method="post">' in page.text
    assert await address(org) == "ben@example.com"
    page = await org.http.post(path)
    assert page.status_code == 200
    assert await address(org) == NEW
    assert (await org.http.post(path)).status_code == 404
    org["ben"].email = NEW
    own = (await org["ben"].get("/users/me")).ok
    assert own["email"] == own["delivery_email"] == NEW


async def test_the_previous_address_is_notified(org: Organization) -> None:
    await org.http.post(await requested_link(org))
    (letter,) = await due_emails(org)
    assert letter.to == "ben@example.com"
    assert NEW in letter.text
    assert "/confirm/" not in letter.text


async def test_clients_get_the_new_address_if_they_may_see_it(org: Organization) -> None:
    listeners = {
        who: await org[who].register(event_types=["realm_user"]) for who in ("ann", "ben", "gus")
    }
    await org.http.post(await requested_link(org))
    org["ben"].email = NEW
    for who, listener in listeners.items():
        found: dict[str, Any] = {}
        for event in await listener.events():
            found |= event["person"]
        assert found["user_id"] == org["ben"].user_id
        assert found["delivery_email"] == NEW, who
        assert found["new_email"] == NEW, who
    hidden = AddressVisibility.ADMINISTRATORS.value
    (await org["ben"].patch("/settings", email_address_visibility=hidden)).ok
    for listener in listeners.values():
        await listener.events()
    await due_emails(org)
    await org.http.post(await requested_link(org, email="b@example.com"))
    assert "b@example.com" in str(await listeners["ann"].events())
    assert "b@example.com" not in str(await listeners["gus"].events())


@rows(
    "email",
    ["", "nobody", "a b@example.com", "cleo@example.com", "CLEO@example.com", "x@mailinator.com"],
)
async def test_an_invalid_used_or_forbidden_address_is_refused(
    readonly_org: Organization, email: str
) -> None:
    (await readonly_org["ben"].patch("/settings", email=email, full_name="Other")).refused()
    assert readonly_org.node.state.users[readonly_org["ben"].user_id].full_name == "Ben"
    assert await due_emails(readonly_org) == []


async def test_the_same_address_is_ignored_and_another_spelling_needs_no_email(
    org: Organization,
) -> None:
    same = (await org["ben"].patch("/settings", email="ben@example.com")).ok
    assert same["ignored_parameters_unsupported"] == ["email"]
    (await org["ben"].patch("/settings", email="Ben@Example.com")).ok
    assert await address(org) == "Ben@Example.com"
    assert await due_emails(org) == []


async def test_if_address_changes_are_disabled_administrators_can_still_change_theirs(
    org: Organization,
) -> None:
    early = await requested_link(org)
    await org.do(RealmChanged(values={"email_changes_disabled": True}))
    (await org["ben"].patch("/settings", email="other@example.com")).refused()
    assert (await org.http.post(early)).status_code == 400
    assert await address(org) == "ben@example.com"
    await org.http.post(await requested_link(org, "ann", "anna@example.com"))
    assert await address(org, "ann") == "anna@example.com"


async def test_bots_and_other_people_s_addresses_cannot_be_changed_this_way(
    readonly_org: Organization,
) -> None:
    (await readonly_org["robo"].patch("/settings", email=NEW)).refused()
    (
        await readonly_org["ann"].patch(
            "/settings", email=NEW, target_users={"user_ids": [readonly_org["ben"].user_id]}
        )
    ).refused()
    assert await due_emails(readonly_org) == []


async def test_an_address_taken_in_the_meantime_is_refused(org: Organization) -> None:
    path = await requested_link(org)
    other = await requested_link(org, "cleo", NEW)
    assert (await org.http.post(other)).status_code == 200
    # It belongs to someone, so it can't be requested anymore.
    assert (await org.http.post(path)).status_code == 404
    assert await address(org) == "ben@example.com"


async def test_of_two_concurrent_confirmations_one_gets_the_address(org: Organization) -> None:
    paths = [await requested_link(org), await requested_link(org, "cleo")]
    responses = await asyncio.gather(*(org.http.post(path) for path in paths))
    assert sorted(response.status_code for response in responses)[0] == 200
    assert [await address(org), await address(org, "cleo")].count(NEW) == 1


async def test_a_link_expires_after_a_day_and_with_deactivation(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        path = await requested_link(org)
        (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
        assert (await org.http.post(path)).status_code == 400
        (await org["ann"].post(f"/users/{org['ben'].user_id}/reactivate")).ok
        org.person_of("ben", org.node.state.users[org["ben"].user_id])
        clock.ahead = DAY + 1
        for response in (await org.http.get(path), await org.http.post(path)):
            assert response.status_code == 410
        assert await address(org) == "ben@example.com"
        # Expired requests are deleted with the next request.
        await requested_link(org)
        assert len(org.node.state.confirmations) == 1


async def test_deleting_an_account_deletes_its_requests(org: Organization) -> None:
    path = await requested_link(org)
    who = f"/users/{org['ben'].user_id}"
    (await org["ann"].delete(who, actions={"delete_profile": True})).ok
    assert not len(org.node.state.confirmations)
    assert (await org.http.post(path)).status_code == 404


async def test_address_change_emails_are_limited(org: Organization) -> None:
    for number in range(CONFIRMATIONS_PER_ACCOUNT):
        (await org["ben"].patch("/settings", email=f"{number}@example.com")).ok
    (await org["ben"].patch("/settings", email=NEW)).refused()


async def test_invitation_and_address_links_are_not_interchangeable(
    org: Organization,
) -> None:
    path = await requested_link(org)
    assert (await org.http.get(path.replace("/confirm/", "/join/"))).status_code == 404
    (await org["ann"].post("/invites", invitee_emails="z@x.org", stream_ids=[])).ok
    (letter,) = await due_emails(org)
    join = link_path(letter)
    assert (await org.http.get(join.replace("/join/", "/confirm/"))).status_code == 404


async def test_a_confirmation_survives_a_restart_and_the_new_address_signs_in(
    org: Organization, config: Config
) -> None:
    path = await requested_link(org, "ann", "anna@example.com")
    async with open_organization(config) as again:
        assert (await again.http.post(path)).status_code == 200
        (
            await again.nobody.post(
                "/fetch_api_key", username="anna@example.com", password=PASSWORD
            )
        ).ok
        (
            await again.nobody.post("/fetch_api_key", username="ann@example.com", password=PASSWORD)
        ).refused("AUTHENTICATION_FAILED", 401)
