"""Signing in with a link by email."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.store import used_secrets
from tertulia.store.database import Connection
from tests import postgres
from tests.browsers import page_text, session_cookie, set_password, signed_out_browser
from tests.emails import link_path, no_email_job
from tests.nodes import cluster
from tests.support import (
    Newcomer,
    Organization,
    TestClock,
    new_organization,
    open_organization,
    rows,
)
from tests.wire.test_login_pages import pending_emails
from tests.wire.test_second_factors import OTP, set_up

pytestmark = pytest.mark.usefixtures("no_logged_errors", no_email_job.__name__)


@pytest.fixture
def clock() -> TestClock:
    return TestClock(stopped_at=1_800_000_000)


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    others = (Newcomer("ben"), Newcomer("gus", Role.GUEST), Newcomer("robo", owner="ben"))
    async with new_organization(config, clock=clock, others=others) as org:
        await org.change_realm(sign_in_links="everyone")
        yield org


async def link_for(org: Organization, name: str, query: str = "") -> str:
    """The path of the emailed link."""
    sent = {"email": f"{name}@example.com"}
    page = await signed_out_browser(org).http.post(f"/login/link{query}", data=sent)
    assert page.status_code == 200
    (email,) = await pending_emails(org)
    assert email.to == sent["email"]
    return link_path(email)


async def test_a_link_signs_in_once(org: Organization) -> None:
    path = await link_for(org, "ben", "?next=/%23x")
    browser = signed_out_browser(org)
    page = await browser.http.get(path)
    assert (page.status_code, "Continue as Ben" in page_text(page)) == (200, True)
    assert session_cookie(browser) is None
    page = await browser.http.post(path)
    assert (page.status_code, page.headers["location"]) == (303, "/#x")
    assert (await browser.get("/users/me")).ok["user_id"] == org["ben"].user_id
    other = signed_out_browser(org)
    assert (await other.http.post(path)).status_code == 410
    assert session_cookie(other) is None


async def test_links_of_the_same_second_work_once_each(org: Organization) -> None:
    ben = {"email": "ben@example.com"}
    for _ in range(2):
        await signed_out_browser(org).http.post("/login/link", data=ben)
    first, second = [link_path(email) for email in await pending_emails(org)]
    for path in (first, second):
        assert (await signed_out_browser(org).http.post(path)).status_code == 303
        assert (await signed_out_browser(org).http.post(path)).status_code == 410


async def test_a_used_link_stays_used_after_a_restart(config: Config) -> None:
    async with new_organization(config, others=[Newcomer("ben")]) as org:
        await org.change_realm(sign_in_links="everyone")
        path = await link_for(org, "ben")
        assert (await signed_out_browser(org).http.post(path)).status_code == 303
    async with open_organization(config) as org:
        assert (await signed_out_browser(org).http.post(path)).status_code == 410


async def test_nodes_accept_a_secret_once_at_the_same_moment(
    postgres_url: str, tmp_path: Path
) -> None:
    with postgres.schema(postgres_url) as url:
        config = Config(data_dir=str(tmp_path / "data"), database_url=url)
        async with cluster(config, 2) as two:
            for number in range(20):
                uses = (one.node.uses_first("link", str(number), 60) for one in two.nodes)
                assert sorted(await asyncio.gather(*uses)) == [False, True]


async def test_used_secrets_are_forgotten_when_they_have_expired(
    org: Organization, clock: TestClock
) -> None:
    def count(connection: Connection) -> int:
        ((found,),) = connection.query("SELECT COUNT(*) FROM used_secrets")
        return int(found)

    for number in range(3):
        assert await org.node.uses_first("link", str(number), 60)
    assert not await org.node.uses_first("link", "2", 60)
    assert await org.node.uses_first("another purpose", "2", 60)
    clock.ahead = 60 + used_secrets.SKEW_SECONDS + 1
    assert await org.node.uses_first("link", "3", 60)
    assert await org.node.store.read(count) == 1


async def test_the_answer_is_the_same_for_every_address(org: Organization) -> None:
    pages = [
        page_text(
            await org.http.post("/login/link", data={"email": f"{name}@example.com"})
        ).replace(name, "")
        for name in ("ben", "nobody")
    ]
    assert pages[0] == pages[1]
    assert len(await pending_emails(org)) == 1


@rows(
    ("policy", "name", "works"),
    [
        ("nobody", "gus", False),
        ("guests", "gus", True),
        ("guests", "ben", False),
        ("everyone", "ben", True),
        ("everyone", "robo", False),
    ],
)
async def test_the_organization_says_who_can(
    org: Organization, policy: str, name: str, works: bool
) -> None:
    await org.change_realm(sign_in_links=policy)
    page = await org.http.get("/login")
    assert ("/login/link" in page.text) is (policy != "nobody")
    await org.http.post("/login/link", data={"email": org[name].email})
    assert bool(await pending_emails(org)) is works


async def test_a_link_ends(org: Organization, clock: TestClock) -> None:
    browser = signed_out_browser(org)
    path = await link_for(org, "ben")
    clock.ahead += 901
    assert (await browser.http.post(path)).status_code == 410
    path = await link_for(org, "ben")
    await set_password(org, "ben")
    assert (await browser.http.post(path)).status_code == 410
    clock.ahead += 901
    path = await link_for(org, "ben")
    await org.change_realm(sign_in_links="guests")
    assert (await browser.http.post(path)).status_code == 410
    assert (await browser.http.post("/login/link/x.y")).status_code == 410
    assert session_cookie(browser) is None


async def test_a_link_is_not_enough_for_two_steps(org: Organization, clock: TestClock) -> None:
    await set_up(org["ben"], clock)
    await pending_emails(org)
    path = await link_for(org, "ben")
    browser = signed_out_browser(org)
    page = await browser.http.post(path)
    assert ("Two-step verification" in page_text(page), session_cookie(browser)) == (True, None)


async def test_a_link_continues_in_the_app(org: Organization) -> None:
    path = await link_for(org, "ben", f"?mobile_flow_otp={OTP}")
    page = await signed_out_browser(org).http.post(path)
    assert page.headers["location"].startswith("zulip://login?otp_encrypted_api_key=")


async def test_links_are_limited(org: Organization) -> None:
    for _ in range(7):
        await org.http.post("/login/link", data={"email": org["ben"].email})
    assert len(await pending_emails(org)) == 5
