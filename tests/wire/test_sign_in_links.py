"""Signing in with a link by email."""

from collections.abc import AsyncIterator

import pytest

from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.browsers import page_text, session_cookie, set_password, signed_out_browser
from tests.emails import link_path, no_email_job
from tests.support import Newcomer, Organization, TestClock, new_organization, rows
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
