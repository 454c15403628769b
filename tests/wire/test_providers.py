"""Signing in with a real OpenID provider (tests/openid)."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest
from PIL import Image

from tertulia.app.sign_in_tables import methods_from
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.links import OPERATOR_SECONDS
from tertulia.wire.http.request_head import SESSION_COOKIE
from tertulia.wire.pages.sign_in_attempt import ATTEMPT_SECONDS
from tests.browsers import page_text, send_csrf_token, signed_out_browser
from tests.emails import no_email_job
from tests.openid.running import OpenidServer, openid_server
from tests.support import Organization, Person, TestClock, new_organization, row
from tests.wire.test_app_sign_in import (
    DESKTOP,
    MOBILE,
    OTP,
    decoded_key,
    desktop_path,
    mobile_result,
)

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

SITE = "http://chat.test"
BEN: dict[str, Any] = {
    "sub": "b1",
    "email": "ben@example.com",
    "email_verified": True,
    "name": "Ben at Work",
}
EVE: dict[str, Any] = {
    "sub": "e1",
    "email": "eve@example.com",
    "email_verified": True,
    "name": "Eve Adams",
}


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenidServer]:
    with openid_server() as server:
        server.register(SITE)
        yield server


@dataclass
class Company:
    """An organization whose people sign in with the provider."""

    org: Organization
    provider: OpenidServer
    clock: TestClock

    def browser(self) -> Person:
        return signed_out_browser(self.org)

    async def to_provider(self, browser: Person, path: str = "/sign-in/company") -> str:
        """Begin to sign in. Return the URL that the browser is redirected to."""
        response = await browser.http.get(path)
        assert response.status_code == 302, response.text
        return str(response.headers["location"])

    async def at_provider(self, address: str, **person: Any) -> str:
        """Sign in there with a new browser. Return the URL that the provider redirects it to."""
        await asyncio.to_thread(self.provider.control, person=person)
        async with httpx.AsyncClient() as client:
            while not address.startswith(SITE):
                response = await client.get(address)
                assert "location" in response.headers, response.text
                address = str(response.url.join(response.headers["location"]))
        return address

    async def signed_in(
        self, browser: Person, path: str = "/sign-in/company", **person: Any
    ) -> httpx.Response:
        """Sign in at the provider, and return the last response of this server."""
        there = await self.to_provider(browser, path)
        return await browser.http.get(await self.at_provider(there, **person))


@asynccontextmanager
async def company(config: Config, provider: OpenidServer, **more: Any) -> AsyncIterator[Company]:
    methods = [provider.method(**more), provider.method("other", title="Other account")]
    configured = msgspec.structs.replace(config, external_url=SITE, sign_in=methods_from(methods))
    clock = TestClock()
    async with new_organization(configured, clock=clock) as org:
        await org.add("ben")
        yield Company(org, provider, clock)


@pytest.fixture
async def at(config: Config, provider: OpenidServer) -> AsyncIterator[Company]:
    async with company(config, provider) as made:
        yield made


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


async def test_people_sign_in_and_out(at: Company) -> None:
    browser = at.browser()
    page = await browser.http.get("/login?next=/%23inbox")
    assert 'href="/sign-in/company?next=/%23inbox">Sign in with Company account' in page.text
    there = query(await at.to_provider(browser))
    assert there["redirect_uri"] == f"{SITE}/sign-in/company/callback"
    assert there["code_challenge_method"] == "S256"
    response = await at.signed_in(browser, "/sign-in/company?next=/%23inbox", **BEN)
    assert (response.status_code, response.headers["location"]) == (303, "/#inbox")
    assert (await browser.get("/users/me")).ok["user_id"] == at.org["ben"].user_id
    (session,) = at.org.node.state.sessions
    assert session.method == "company"
    send_csrf_token(browser)
    response = await browser.http.post("/logout")
    assert response.headers["location"] == "/login?signed_out=company"
    page = await browser.http.get(response.headers["location"])
    assert 'href="/sign-in/company/end">Sign out of Company account' in page.text
    response = await browser.http.get("/sign-in/company/end")
    assert query(response.headers["location"])["post_logout_redirect_uri"] == f"{SITE}/login"
    assert (await at.browser().http.get("/login?signed_out=nothing")).status_code == 200


async def test_new_people_get_an_account_and_known_ones_keep_theirs(at: Company) -> None:
    browser = at.browser()
    assert (await at.signed_in(browser, **EVE)).status_code == 303
    me = (await browser.get("/users/me")).ok
    assert (me["full_name"], me["delivery_email"]) == ("Eve Adams", "eve@example.com")
    again = at.browser()
    await at.signed_in(again, **EVE | {"email": "new@example.com", "email_verified": False})
    assert (await again.get("/users/me")).ok["user_id"] == me["user_id"]


async def test_roles_follow_the_groups_claim(config: Config, provider: OpenidServer) -> None:
    async with company(config, provider, roles={"administrator": "chat-admins"}) as at:
        await at.signed_in(at.browser(), **BEN, groups=["chat-admins", "all"])
        assert at.org.node.state.users[at.org["ben"].user_id].role is Role.ADMINISTRATOR
        await at.signed_in(at.browser(), **BEN, groups=["all"])
        assert at.org.node.state.users[at.org["ben"].user_id].role is Role.MEMBER


async def test_an_unverified_address_opens_no_account(at: Company) -> None:
    for person in (BEN, EVE):
        with row(person):
            browser = at.browser()
            page = await at.signed_in(browser, **person | {"email_verified": False})
            assert page.status_code == 403
            assert "hasn’t verified your email address" in page_text(page)
            assert SESSION_COOKIE not in browser.http.cookies


async def test_only_known_people_are_matched(config: Config, provider: OpenidServer) -> None:
    async with company(config, provider, accounts="match") as at:
        assert (await at.signed_in(at.browser(), **BEN)).status_code == 303
        page = await at.signed_in(at.browser(), **EVE)
        assert page.status_code == 403
        assert "No account here has the address eve@example.com" in page_text(page)


async def test_refused_and_deactivated_people_are_told(at: Company) -> None:
    browser = at.browser()
    await asyncio.to_thread(at.provider.control, refuses=True)
    try:
        page = await at.signed_in(browser, **BEN)
    finally:
        await asyncio.to_thread(at.provider.control, refuses=False)
    assert page.status_code == 403
    assert "Sign-in canceled" in page_text(page)
    assert (await at.signed_in(browser, **BEN)).status_code == 303
    assert (await at.org["ann"].delete(f"/users/{at.org['ben'].user_id}")).ok
    page = await at.signed_in(at.browser(), **BEN)
    assert page.status_code == 403
    assert "deactivated" in page_text(page)


async def test_the_keys_may_be_rotated(at: Company) -> None:
    assert (await at.signed_in(at.browser(), **BEN)).status_code == 303
    await asyncio.to_thread(at.provider.control, rotate=True)
    provider = at.org.node.providers[at.org.node.config.sign_in[0]]
    provider._keys_at -= 60  # type: ignore[attr-defined]
    assert (await at.signed_in(at.browser(), **BEN)).status_code == 303


async def test_a_provider_that_is_down_is_named(config: Config, provider: OpenidServer) -> None:
    async with company(config, provider, issuer="http://127.0.0.1:9") as at:
        page = await at.browser().http.get("/sign-in/company")
        assert page.status_code == 502
        assert "Company account isn’t responding" in page_text(page)
        assert (await at.browser().http.get("/login")).status_code == 200


async def test_the_apps_sign_in_with_the_provider(at: Company) -> None:
    settings = (await at.org.nobody.get("/server_settings")).ok
    first = settings["external_authentication_methods"][0]
    assert first == {
        "name": "oidc:company",
        "display_name": "Company account",
        "display_icon": None,
        "login_url": "/sign-in/company",
        "signup_url": "/sign-in/company",
    }
    assert settings["authentication_methods"]["openid connect"]
    assert not settings["authentication_methods"]["github"]
    browser = at.browser()
    response = await at.signed_in(browser, MOBILE.replace("/login", first["login_url"]), **BEN)
    result = mobile_result(response)
    assert decoded_key(result["otp_encrypted_api_key"]) == at.org["ben"].api_key
    assert result["realm"] == SITE
    page = await browser.http.get(
        "/sign-in/company", headers={"User-Agent": "ZulipElectron/5.11.1 Chrome"}
    )
    assert page.status_code == 200
    assert 'id="desktop"' in page.text
    response = await at.signed_in(browser, DESKTOP.replace("/login", first["login_url"]), **BEN)
    app = at.browser()
    assert (await app.http.get(desktop_path(response, OTP))).status_code == 303
    assert (await app.get("/users/me")).ok["user_id"] == at.org["ben"].user_id
    (session,) = at.org.node.state.sessions
    assert session.method == "company"


# Attacks


async def test_an_answer_counts_once_and_only_in_the_browser_that_asked(at: Company) -> None:
    browser = at.browser()
    answer = await at.at_provider(await at.to_provider(browser), **BEN)
    # Another person's link doesn't sign in a victim's browser, with or without its own attempt.
    victim = at.browser()
    assert (await victim.http.get(answer)).status_code == 400
    await at.to_provider(victim)
    assert (await victim.http.get(answer)).status_code == 400
    assert SESSION_COOKIE not in victim.http.cookies
    cookies = dict(browser.http.cookies)
    assert (await browser.http.get(answer)).status_code == 303
    # The stolen cookie doesn't help either.
    thief = at.browser()
    thief.http.cookies.update({k: v for k, v in cookies.items() if k != SESSION_COOKIE})
    assert (await thief.http.get(answer)).status_code == 400
    assert SESSION_COOKIE not in thief.http.cookies


async def test_a_code_counts_once_at_the_provider(at: Company) -> None:
    browser, other = at.browser(), at.browser()
    answer = query(await at.at_provider(await at.to_provider(browser), **BEN))
    params = {"code": answer["code"], "iss": answer["iss"]}
    assert (await browser.http.get("/sign-in/company/callback", params=answer)).status_code == 303
    own = query(await at.to_provider(other))["state"]
    page = await other.http.get("/sign-in/company/callback", params=params | {"state": own})
    assert page.status_code == 403
    assert "didn’t confirm who you are" in page_text(page)


async def test_an_attempt_expires(at: Company) -> None:
    browser = at.browser()
    answer = await at.at_provider(await at.to_provider(browser), **BEN)
    at.clock.ahead += ATTEMPT_SECONDS + 1
    page = await browser.http.get(answer)
    assert page.status_code == 400
    assert "This sign-in has expired" in page_text(page)


async def test_methods_cannot_be_mixed_up(at: Company) -> None:
    browser = at.browser()
    answer = await at.at_provider(await at.to_provider(browser), **BEN)
    # Sent to another method's address, or in the name of another issuer.
    for wrong in (
        answer.replace("/company/", "/other/"),
        re.sub("iss=[^&]*", "iss=https%3A%2F%2Fevil.example", answer),
    ):
        with row(wrong):
            assert (await browser.http.get(wrong)).status_code in {400, 403}
            assert SESSION_COOKIE not in browser.http.cookies


async def test_nobody_is_sent_elsewhere(at: Company) -> None:
    for wrong in ("https://evil.example", "//evil.example", "/\\evil.example", "/logout"):
        with row(wrong):
            browser = at.browser()
            response = await at.signed_in(browser, f"/sign-in/company?next={wrong}", **BEN)
            assert response.headers["location"] == "/"


async def test_a_session_from_before_is_not_kept(at: Company) -> None:
    browser = at.browser()
    browser.http.cookies.set(SESSION_COOKIE, "chosen by an attacker")
    await at.signed_in(browser, **BEN)
    first = browser.http.cookies.get(SESSION_COOKIE, domain="chat.test")
    assert first != "chosen by an attacker"
    await at.signed_in(browser, **BEN)
    assert len(at.org.node.state.sessions) == 1


async def test_an_answer_by_form_is_taken_over_by_a_get(at: Company) -> None:
    browser = at.browser()
    answer = await at.at_provider(await at.to_provider(browser), **BEN)
    response = await browser.http.post(
        "/sign-in/company/callback",
        data=query(answer),
        headers={"Origin": "https://id.example", "Sec-Fetch-Site": "cross-site"},
    )
    assert response.status_code == 303
    assert (await browser.http.get(response.headers["location"])).status_code == 303
    assert SESSION_COOKIE in browser.http.cookies


async def test_only_a_logout_token_ends_sessions(at: Company) -> None:
    await at.signed_in(at.browser(), **BEN)
    for token in ("", "x", "a.b.c"):
        with row(token):
            data = {"logout_token": token}
            response = await at.browser().http.post("/sign-in/company/logout", data=data)
            assert response.status_code == 400
    assert len(at.org.node.state.sessions) == 1


async def test_unknown_methods_are_not_found(at: Company) -> None:
    for path in ("/sign-in/nothing", "/sign-in/nothing/callback", "/sign-in/Company"):
        with row(path):
            assert (await at.browser().http.get(path)).status_code == 404


async def test_buttons_and_apps_show_the_icon(
    config: Config, provider: OpenidServer, tmp_path: Path
) -> None:
    icon = tmp_path / "icon.png"
    made = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(made, "PNG")
    for wrong in (b"<svg/>", made.getvalue() + bytes(64 * 1024)):
        icon.write_bytes(wrong)
        with pytest.raises(ValueError, match="isn't a PNG image"):
            methods_from([provider.method(icon_file=str(icon))])
    icon.write_bytes(made.getvalue())
    async with company(config, provider, icon_file=str(icon)) as at:
        shown = (await at.org.nobody.get("/server_settings")).ok["external_authentication_methods"]
        assert [one["display_icon"] for one in shown] == ["/sign-in/company/icon.png", None]
        page = await at.browser().http.get("/login")
        assert 'src="/sign-in/company/icon.png"' in page.text
        response = await at.browser().http.get("/sign-in/company/icon.png")
        assert (response.headers["content-type"], response.content) == (
            "image/png",
            made.getvalue(),
        )


# Requiring single sign-on


async def test_nobody_joins_with_a_password_past_the_required_provider(at: Company) -> None:
    ann = at.org["ann"]
    invited = (await ann.post("/invites/multiuse")).ok["invite_link"].removeprefix(SITE)
    off = {"password_sign_in": False, "invite_required": False}
    await at.org.change_realm(**off)
    accounts = len(at.org.node.state.users)
    sent = {
        "email": "zoe@example.com",
        "full_name": "Zoe Zander",
        "password": "another battery staple",
    }
    for path in (invited, "/join"):
        browser = at.browser()
        page = await browser.http.get(path)
        assert "Sign in with Company account" in page_text(page), path
        assert (await browser.http.post(path, data=sent)).status_code == 403
        assert SESSION_COOKIE not in browser.http.cookies
    assert len(at.org.node.state.users) == accounts


async def test_reusable_invitations_work_with_the_required_provider(
    config: Config, provider: OpenidServer
) -> None:
    async with company(config, provider, accounts="match") as at:
        made = await at.org["ann"].post("/invites/multiuse", invite_as=int(Role.GUEST))
        invited = made.ok["invite_link"].removeprefix(SITE)
        await at.org.change_realm(password_sign_in=False)
        zoe = {**EVE, "sub": "z1", "email": "zoe@example.com"}
        assert (await at.signed_in(at.browser(), **zoe)).status_code == 403
        browser = at.browser()
        page = await browser.http.get(invited)
        (start,) = re.findall(r'href="(/sign-in/company[^"]*)"', page.text)
        assert (await at.signed_in(browser, unescape(start), **zoe)).status_code == 303
        user = at.org.node.state.user_with_address("zoe@example.com")
        assert user is not None
        assert user.role is Role.GUEST
        # A revoked invitation, and one that doesn't exist.
        for token in ("i1-" + "x" * 43, "nonsense"):
            path = f"/sign-in/company?invitation={token}"
            assert (await at.signed_in(at.browser(), path, **EVE)).status_code == 403
        await at.org["ann"].delete("/invites/multiuse/1")
        assert (await at.signed_in(at.browser(), unescape(start), **EVE)).status_code == 403


async def test_an_organization_can_require_the_provider_and_its_owner_still_gets_in(
    at: Company,
) -> None:
    off = {"Email": False, "OpenID Connect": True}
    assert (await at.org["ann"].patch("/realm", authentication_methods=off)).ok
    settings = (await at.org.nobody.get("/server_settings")).ok
    assert (settings["email_auth_enabled"], settings["authentication_methods"]["password"]) == (
        False,
        False,
    )
    (
        await at.org["ann"].patch("/realm", authentication_methods={"OpenID Connect": False})
    ).refused()
    browser = at.browser()
    page = await browser.http.get("/login")
    assert 'name="password"' not in page.text
    assert "doesn’t use passwords" not in page_text(page)
    assert "Sign in with Company account" in page_text(page)
    assert (await at.signed_in(at.browser(), **BEN)).status_code == 303
    node, ann = at.org.node, at.org["ann"]
    credential = node.state.credentials[ann.user_id]
    link = node.links.operator_sign_in(SITE, credential, node.clock())
    page = await browser.http.get(link)
    assert "Continue as Ann." in page_text(page)
    assert SESSION_COOKIE not in browser.http.cookies
    assert (await browser.http.post(link)).status_code == 303
    assert (await browser.get("/users/me")).ok["user_id"] == ann.user_id
    for wrong in (link, link[:-1] + "x"):
        with row(wrong):
            other = at.browser()
            assert (await other.http.post(wrong)).status_code == 410
            assert SESSION_COOKIE not in other.http.cookies
    old = node.links.operator_sign_in(SITE, credential, node.clock())
    at.clock.ahead += OPERATOR_SECONDS + 1
    assert (await at.browser().http.post(old)).status_code == 410
