"""Attacks on signing in that apply to every method. docs/security.md lists where the others are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec
import pytest

from tertulia.app.composition import asgi
from tertulia.app.sign_in_tables import methods_from
from tertulia.service.config import Config
from tertulia.wire.http import rate_limits
from tertulia.wire.http.peers import PEER
from tertulia.wire.http.request_head import SESSION_COOKIE
from tertulia.wire.pages.sign_in_flow import HOME, own_path
from tests.authenticator import Authenticator
from tests.browsers import page_text, session_cookie, set_password, signed_out_browser
from tests.emails import link_path, no_email_job
from tests.support import PASSWORD, Newcomer, Organization, Person, TestClock, new_organization
from tests.wire.test_app_sign_in import (
    DESKTOP,
    MOBILE,
    OTP,
    decoded_key,
    desktop_path,
    mobile_result,
)
from tests.wire.test_login_pages import pending_emails
from tests.wire.test_passkeys import add, answer
from tests.wire.test_second_factors import set_up
from tests.wire.test_sign_in_links import link_for

pytestmark = pytest.mark.usefixtures("no_logged_errors", no_email_job.__name__)

BEN: Final = {"username": "ben@example.com", "password": PASSWORD}
PROXY: Final = "127.0.0.1"
JWT_SECRET: Final = "a secret of at least 32 characters"
WAYS: Final = ("password", "link", "passkey", "header")
"""Methods that end in a browser. Providers, SAML, and LDAP have their own tests."""


@pytest.fixture
def clock() -> TestClock:
    return TestClock(stopped_at=1_800_000_000)


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    own = msgspec.structs.replace(
        config,
        sign_in=methods_from([{"name": "company", "kind": "header"}]),
        proxy_trusted=PROXY,
        jwt_secret=JWT_SECRET,
    )
    async with new_organization(own, clock=clock, others=(Newcomer("ben"),)) as org:
        await set_password(org, "ben")
        await org.change_realm(sign_in_links="everyone")
        yield org


class SignIns:
    """Signs in as Ben with each method. Requirements of his account are prepared first."""

    def __init__(self, org: Organization) -> None:
        self._org = org
        self._device = Authenticator()

    async def prepare(self, way: str) -> None:
        if way == "passkey":
            await add(self._org["ben"], self._device)

    async def sign_in(
        self, way: str, query: str = "", browser: Person | None = None
    ) -> httpx.Response:
        """Sign in, and return the last response. The query has no question mark."""
        http = (browser or self.browser(way)).http
        clock: Any = self._org.node.clock
        clock.ahead += 1  # Otherwise, the same link would be sent again.
        match way:
            case "password":
                return await http.post(f"/login?{query}", data=BEN)
            case "link":
                asked = signed_out_browser(self._org).http
                await asked.post(f"/login/link?{query}", data={"email": "ben@example.com"})
                return await http.post(link_path((await pending_emails(self._org))[-1]))
            case "passkey":
                page = await signed_out_browser(self._org).http.get(f"/login?{query}")
                return await http.post(f"/login?{query}", data=answer(page, self._device))
            case _:
                headers = {"Remote-User": "ben-3", "Remote-Email": "ben@example.com"}
                return await http.get(f"/sign-in/company?{query}", headers=headers)

    def browser(self, way: str) -> Person:
        if way != "header":
            return signed_out_browser(self._org)
        app = asgi(self._org.node)

        async def arriving(scope: Any, receive: Any, send: Any) -> None:
            scope["state"] = {PEER: (PROXY, 1)}
            await app(scope, receive, send)

        transport = httpx.ASGITransport(app=arriving)
        return Person(httpx.AsyncClient(transport=transport, base_url="http://chat.test"))


@asynccontextmanager
async def prepared(org: Organization, way: str) -> AsyncIterator[SignIns]:
    made = SignIns(org)
    await made.prepare(way)
    yield made


# Apps can sign in with every method


@pytest.mark.parametrize("way", WAYS)
async def test_both_apps_sign_in_by_every_way(org: Organization, way: str) -> None:
    async with prepared(org, way) as made:
        result = mobile_result(await made.sign_in(way, MOBILE.partition("?")[2]))
        assert decoded_key(result["otp_encrypted_api_key"]) == org["ben"].api_key
        page = await made.sign_in(way, DESKTOP.partition("?")[2])
        app = signed_out_browser(org)
        assert (await app.http.get(desktop_path(page, OTP))).status_code == 303
        assert (await app.get("/users/me")).ok["user_id"] == org["ben"].user_id


# Open redirect

ELSEWHERE: Final = (
    *("//evil.example", "///evil.example", "https://evil.example", "https:/evil.example"),
    *("/\\evil.example", "\\\\evil.example", "/\t/evil.example", "\t//evil.example"),
    *("/\n/evil.example", " //evil.example", "javascript:alert(1)", "data:text/html,x"),
    *("evil.example", "/\x00/evil.example", "/a\\..\\evil", "//evil.example\\@chat.test"),
    *("/" + "a" * 2001, "/logout", "/logout?x=1", "zulip://login"),
)


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_other_sites_are_no_place_to_continue(wanted: str) -> None:
    assert own_path(wanted) == HOME


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_leads_elsewhere(org: Organization, way: str) -> None:
    async with prepared(org, way) as made:
        for wanted in ("//evil.example", "/\\evil.example", "/%2F/evil.example"):
            response = await made.sign_in(way, f"next={quote(wanted, safe='')}")
            assert response.status_code == 303
            place = httpx.URL("http://chat.test").join(response.headers["location"])
            assert place.host == "chat.test", wanted


# Session fixation, and signing in a victim's browser


@pytest.mark.parametrize("way", WAYS)
async def test_a_session_that_an_attacker_chose_is_not_kept(org: Organization, way: str) -> None:
    async with prepared(org, way) as made:
        browser = made.browser(way)
        browser.http.cookies.set(SESSION_COOKIE, "chosen", domain="chat.test")
        assert (await made.sign_in(way, browser=browser)).status_code == 303
        first = browser.http.cookies.get(SESSION_COOKIE, domain="chat.test")
        assert first not in {None, "chosen"}
        # A cookie of an earlier sign-in doesn't work either, although the account is the same.
        thief = signed_out_browser(org)
        thief.http.cookies.set(SESSION_COOKIE, str(first), domain="chat.test")
        assert (await made.sign_in(way, browser=browser)).status_code == 303
        assert (await thief.get("/users/me")).status == 401


async def test_another_site_signs_no_browser_in(org: Organization, clock: TestClock) -> None:
    """Otherwise, the victim would write in an account of the attacker, who reads it."""
    link = await link_for(org, "ben")
    page = await signed_out_browser(org).http.post(DESKTOP, data=BEN)
    desktop = desktop_path(page, OTP)
    app, _ = await set_up(org["ben"], clock)
    victim = signed_out_browser(org)
    second = await signed_out_browser(org).http.post("/login", data=BEN)
    step = second.text.partition('name="step" value="')[2].partition('"')[0]
    assert step
    for origin in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for path, sent in (
            ("/login", BEN),
            ("/login/", BEN),
            (link, {}),
            ("/login/second-factor", {"step": step, "code": app.at(int(clock()))}),
            ("/api/v1/sessions", BEN),
        ):
            response = await victim.http.post(path, data=sent, headers=origin)
            assert response.status_code == 403, (path, origin)
    response = await victim.http.get(desktop, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    assert session_cookie(victim) is None


# Guessing


async def test_recovery_codes_cannot_be_guessed(org: Organization, clock: TestClock) -> None:
    await set_up(org["ben"], clock)
    statuses = [
        (await org.nobody.post("/fetch_api_key", **BEN, code=f"abcde-{number:05}")).status
        for number in range(rate_limits.FACTOR_TRIES + 1)
    ]
    assert statuses == [401] * rate_limits.FACTOR_TRIES + [429]


async def test_the_desktop_app_s_codes_cannot_be_guessed(org: Organization) -> None:
    browser = signed_out_browser(org)
    statuses = [
        (await browser.http.get(f"/accounts/login/subdomain/{number}")).status_code
        for number in range(rate_limits.TRIES_PER_CODE + 1)
    ]
    assert statuses == [410] * rate_limits.TRIES_PER_CODE + [429]


# Deactivated accounts


@pytest.mark.parametrize("way", WAYS)
async def test_a_deactivated_account_gets_in_by_no_way(org: Organization, way: str) -> None:
    async with prepared(org, way) as made:
        assert (await made.sign_in(way)).status_code == 303
        page = await made.sign_in(way, DESKTOP.partition("?")[2])
        desktop = desktop_path(page, OTP)
        browser = made.browser(way)
        begun = None
        if way == "link":
            begun = await link_for(org, "ben")
        (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
        if way == "link":
            assert begun is not None
            response = await browser.http.post(begun)
        else:
            response = await made.sign_in(way, browser=browser)
        assert response.status_code in {403, 410}, page_text(response)
        assert session_cookie(browser) is None
        assert (await signed_out_browser(org).http.get(desktop)).status_code >= 400
        (await org.nobody.post("/fetch_api_key", **BEN)).refused("USER_DEACTIVATED", 401)


# Trusted headers


async def test_forwarded_addresses_make_nobody_a_proxy(org: Organization) -> None:
    headers = {"Remote-User": "ann", "Remote-Email": "ann@example.com"}
    for forged in (
        {"X-Forwarded-For": PROXY},
        {"X-Forwarded-For": f"{PROXY}, {PROXY}"},
        {"X-Real-IP": PROXY},
        {"Forwarded": f"for={PROXY};by={PROXY}"},
        {"X-Forwarded-Host": "chat.test", "X-Forwarded-Proto": "https"},
    ):
        for spelled in (headers, {k.replace("-", "_"): v for k, v in headers.items()}):
            browser = signed_out_browser(org)
            path = "/sign-in/company"
            response = await browser.http.get(path, headers={**spelled, **forged})
            assert response.status_code == 403, forged
            assert session_cookie(browser) is None
