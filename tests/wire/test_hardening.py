"""Hardening: HTTPS, links in emails, session lifetimes, and password rules."""

import time

import msgspec
import pytest

from tertulia.app import config as settings
from tertulia.app.config import ConfigError
from tertulia.model.sessions import LIFETIME
from tertulia.service.config import Config
from tertulia.wire.http.request_head import (
    CSRF_COOKIE,
    DEVICE_COOKIE,
    POSITION_COOKIE,
    SESSION_COOKIE,
)
from tests.browsers import signed_in_browser, signed_out_browser
from tests.emails import due_emails, no_email_job
from tests.support import PASSWORD, Organization, TestClock, new_organization

pytestmark = [
    pytest.mark.usefixtures("no_logged_errors"),
    pytest.mark.usefixtures(no_email_job.__name__),
]

RIGHT = {"username": "ann@example.com", "password": PASSWORD}
DAY = 86400


# Passwords


async def test_a_weak_password_is_accepted_nowhere(org: Organization) -> None:
    for weak in ("password", "ann@example.com", "12345678"):
        new = {"old_password": PASSWORD, "new_password": weak}
        told = (await org["ann"].patch("/settings", **new)).refused()
        assert "too easy to guess" in told["msg"]
    for weak in ("password", "zoe@example.com", "Zoe Zander"):
        sent = {"email": "zoe@example.com", "full_name": "Zoe Zander", "password": weak}
        assert "too easy to guess" in (await org["ann"].post("/users", **sent)).refused()["msg"]
    data = (await org["ann"].register()).data
    assert (data["password_min_length"], data["password_min_guesses"]) == (8, 1_000_000)


async def test_a_password_made_of_personal_data_is_accepted_nowhere(org: Organization) -> None:
    name = "Bernadette Longname-Featherstone"
    address = "bernadette.longname@example-company.com"
    asked = {"email": address, "full_name": name}
    for known in (name, address, address.upper(), "bernadette.longname", "2026 Example 2026"):
        reply = await org["ann"].post("/users", **asked, password=known)
        assert "too easy to guess" in reply.refused()["msg"]
    (await org["ann"].patch("/settings", full_name=name)).ok
    new = {"old_password": PASSWORD, "new_password": name}
    assert "too easy to guess" in (await org["ann"].patch("/settings", **new)).refused()["msg"]


async def test_password_rules_are_configurable(config: Config) -> None:
    lax = msgspec.structs.replace(config, password_min_length=3, password_min_guesses=0)
    async with new_organization(lax) as org:
        (await org["ann"].patch("/settings", old_password=PASSWORD, new_password="abc")).ok
        data = (await org["ann"].register()).data
        assert (data["password_min_length"], data["password_min_guesses"]) == (3, 0)


# HTTPS


async def test_a_site_on_https_sends_strict_transport_security(config: Config) -> None:
    secure = msgspec.structs.replace(config, external_url="https://chat.example.com")
    async with new_organization(secure) as org:
        for path in ("/login", "/api/v1/server_settings", "/nothing"):
            told = (await org.http.get(path)).headers["strict-transport-security"]
            assert told == "max-age=31536000"


@pytest.mark.parametrize(
    ("site", "seconds"), [("http://chat.example.com", 31_536_000), ("https://chat.example.com", 0)]
)
async def test_without_https_or_if_disabled_it_is_not_sent(
    config: Config, site: str, seconds: int
) -> None:
    plain = msgspec.structs.replace(config, external_url=site, hsts_seconds=seconds)
    async with new_organization(plain) as org:
        assert "strict-transport-security" not in (await org.http.get("/login")).headers


async def test_other_sites_cannot_set_our_cookies(config: Config) -> None:
    secure = msgspec.structs.replace(config, external_url="https://chat.example.com")
    async with new_organization(secure) as org:
        browser = signed_out_browser(org, site="https://chat.example.com")
        reply = await browser.post("/sessions", **RIGHT)
        cookies = {c.partition("=")[0]: c for c in reply.headers.get_list("set-cookie")}
        names = {SESSION_COOKIE, CSRF_COOKIE, DEVICE_COOKIE}
        names |= {POSITION_COOKIE} if org.node.positions.is_on else set()
        assert set(cookies) == {f"__Host-{name}" for name in names}
        for cookie in cookies.values():
            assert "; Secure" in cookie
            assert "; Path=/" in cookie
            assert "Domain" not in cookie
        (await browser.get("/users/me")).ok
        browser.http.headers["X-CSRF-Token"] = browser.http.cookies[f"__Host-{CSRF_COOKIE}"]
        (await browser.patch("/settings", full_name="Anna")).ok
        # A cookie without the prefix may come from another site, and so may old ones.
        token = browser.http.cookies[f"__Host-{SESSION_COOKIE}"]
        headers = {"Cookie": f"{SESSION_COOKIE}={token}"}
        (await signed_out_browser(org).raw("GET", "/users/me", headers=headers)).refused(
            "UNAUTHORIZED", 401
        )


# Sessions


async def test_a_session_ends_after_its_lifetime_even_if_used(config: Config) -> None:
    clock = TestClock(stopped_at=time.time())
    async with new_organization(
        msgspec.structs.replace(config, session_days=60), clock=clock
    ) as org:
        browser = await signed_in_browser(org)
        for day in (29, 58, 59):
            clock.ahead = day * DAY
            (await browser.get("/users/me")).ok
        assert len((await browser.get("/sessions")).ok["sessions"]) == 1
        clock.ahead = 60 * DAY
        (await browser.get("/users/me")).refused("UNAUTHORIZED", 401)
        assert (await org["ann"].get("/sessions")).ok["sessions"] == []


async def test_the_lifetime_may_be_unlimited(config: Config) -> None:
    clock = TestClock(stopped_at=time.time())
    async with new_organization(
        msgspec.structs.replace(config, session_days=0), clock=clock
    ) as org:
        browser = await signed_in_browser(org)
        for _ in range(20):
            clock.ahead += LIFETIME - 60
            (await browser.get("/users/me")).ok


# Links in emails


@pytest.mark.parametrize("configured", [True, False])
async def test_a_link_in_an_email_does_not_depend_on_the_request(
    config: Config, configured: bool
) -> None:
    external = "http://chat.test" if configured else ""
    expected = external or "http://127.0.0.1:9991"
    async with new_organization(msgspec.structs.replace(config, external_url=external)) as org:
        headers = {"Host": "evil.example"}
        await org.http.post("/reset", data={"email": "ann@example.com"}, headers=headers)
        await org.node.log.catch_up()
        ann = org["ann"]
        invited = {"invitee_emails": "zoe@example.com", "stream_ids": "[]"}
        (await ann.raw("POST", "/invites", data=invited, headers=headers)).ok
        new = {"email": "anna@example.com"}
        (await ann.raw("PATCH", "/settings", data=new, headers=headers)).ok
        letters = await due_emails(org)
        assert {letter.to for letter in letters} == {
            "ann@example.com",
            "zoe@example.com",
            "anna@example.com",
        }
        for letter in letters:
            assert "evil" not in letter.text + letter.html
            assert f"{expected}/" in letter.text


# Configuration


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("", ""),
        ("https://chat.example.com", "https://chat.example.com"),
        ("https://Chat.Example.com/", "https://chat.example.com"),
        ("http://[2001:db8::1]:8000", "http://[2001:db8::1]:8000"),
        ("http://localhost:9991", "http://localhost:9991"),
    ],
)
def test_a_valid_external_url_is_accepted(given: str, taken: str) -> None:
    assert settings.load({"external_url": given}, environment={}).external_url == taken


@pytest.mark.parametrize(
    "given",
    [
        "chat.example.com",
        "ftp://chat.example.com",
        "https://",
        "https:///x",
        "https://chat.example.com/chat",
        "https://chat.example.com?x",
        "https://ann:secret@chat.example.com",
        "https://chat.example.com:99999",
        "https://chat example.com",
        "https://chat.example.com\nX: y",
        "https://[broken",
    ],
)
def test_an_invalid_external_url_is_reported(given: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)external_url: .* isn't the URL of a site"):
        settings.load({"external_url": given}, environment={})


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("", ""),
        ("127.0.0.1", "127.0.0.1"),
        (" 10.0.0.0/8 , ::1", "10.0.0.0/8,::1"),
        ("*", "*"),
    ],
)
def test_valid_proxies_are_accepted(given: str, taken: str) -> None:
    assert settings.load({"proxy_trusted": given}, environment={}).proxy_trusted == taken


@pytest.mark.parametrize("given", ["nginx", "10.0.0.1/8", "10.0.0.1 10.0.0.2", "1.2.3", "**"])
def test_an_invalid_proxy_is_reported(given: str) -> None:
    with pytest.raises(ConfigError, match=r"proxy_trusted: .* isn't an address or network"):
        settings.load({"proxy_trusted": given}, environment={})
