"""Brute force: guessing is blocked and logged, and known browsers get in anyway."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tertulia.app import logs
from tertulia.app.composition import asgi
from tertulia.service.config import Config
from tertulia.wire.http import limiters, rate_limits
from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.limiters import Limiters
from tertulia.wire.http.request_head import DEVICE_COOKIE
from tests.browsers import FIREFOX, send_csrf_token, signed_in_browser, signed_out_browser
from tests.support import PASSWORD, Organization, Person, TestClock, new_organization, row

pytestmark = pytest.mark.usefixtures("no_logged_errors")

WRONG = {"username": "ann@example.com", "password": "something else"}
RIGHT = {"username": "ann@example.com", "password": PASSWORD}
DOCUMENT = Path(__file__).parents[2] / "docs" / "securing.md"


@asynccontextmanager
async def stopped(config: Config) -> AsyncIterator[Organization]:
    """An organization whose clock doesn't move."""
    async with new_organization(config, clock=TestClock(stopped_at=1_800_000_000)) as org:
        yield org


def at(org: Organization, address: str) -> Person:
    """A signed-out browser on another computer."""
    transport = httpx.ASGITransport(
        app=asgi(org.node), raise_app_exceptions=False, client=(address, 1234)
    )
    headers = {"User-Agent": FIREFOX}
    return Person(
        httpx.AsyncClient(transport=transport, base_url="http://chat.test", headers=headers)
    )


async def attacked(org: Organization) -> None:
    """Ann's password is guessed from many computers until all of them are blocked."""
    tried = 0
    for number in range(1, 256):
        attacker = at(org, f"203.0.113.{number}")
        for _ in range(rate_limits.TRIES_PER_ACCOUNT):
            reply = await attacker.post("/sessions", **WRONG)
            if reply.status == 429:
                break
            reply.refused("AUTHENTICATION_FAILED", 401)
            tried += 1
        else:
            continue
        break
    assert tried == rate_limits.TRIES_FROM_ANYWHERE
    (await at(org, "203.0.113.254").post("/sessions", **RIGHT)).refused("RATE_LIMIT_HIT", 429)


async def test_one_account_cannot_be_guessed_from_many_addresses(config: Config) -> None:
    async with stopped(config) as org:
        await attacked(org)
        other = {"username": "nobody@example.com", "password": "x"}
        reply = await at(org, "203.0.113.254").post("/sessions", **other)
        reply.refused("AUTHENTICATION_FAILED", 401)


async def test_spellings_of_a_name_count_together(config: Config) -> None:
    """A directory considers these names equal."""
    async with stopped(config) as org:
        attacker = at(org, "203.0.113.1")
        names = ("ann smith", " ANN  Smith ", "a\u00adnn smith", "\uff41nn smith", "ánn smith")
        for number in range(rate_limits.TRIES_PER_ACCOUNT):
            sent = {"username": names[number % len(names)], "password": "x"}
            assert (await attacker.http.post("/login", data=sent)).status_code == 403
        for name in names:
            reply = await attacker.http.post("/login", data={"username": name, "password": "x"})
            assert reply.status_code == 429, name


async def test_its_owner_signs_in_with_a_browser_used_before(config: Config) -> None:
    async with stopped(config) as org:
        browser = at(org, "192.0.2.1")
        (await browser.post("/sessions", **RIGHT)).ok
        send_csrf_token(browser)
        (await browser.raw("POST", "/sessions", data=RIGHT)).ok
        device = browser.http.cookies[DEVICE_COOKIE]
        await attacked(org)
        elsewhere = at(org, "203.0.113.254")
        elsewhere.http.cookies.set(DEVICE_COOKIE, device)
        (await elsewhere.post("/sessions", **RIGHT)).ok
        # The cookie alone is rate limited, too, so a stolen one isn't enough.
        for _ in range(rate_limits.TRIES_PER_ACCOUNT):
            (await elsewhere.post("/sessions", **WRONG)).refused("AUTHENTICATION_FAILED", 401)
        (await elsewhere.post("/sessions", **RIGHT)).refused("RATE_LIMIT_HIT", 429)


async def test_its_owner_signs_in_from_an_address_used_before(config: Config) -> None:
    async with stopped(config) as org:
        (await at(org, "192.0.2.1").post("/fetch_api_key", **RIGHT)).ok
        await attacked(org)
        (await at(org, "192.0.2.1").post("/fetch_api_key", **RIGHT)).ok


async def test_a_browser_is_known_for_its_own_accounts_and_current_passwords(
    config: Config,
) -> None:
    async with stopped(config) as org:
        await org.add("ben")
        devices = [
            (await signed_in_browser(org, name)).http.cookies[DEVICE_COOKIE]
            for name in ("ben", "ann")
        ]
        new = {"old_password": PASSWORD, "new_password": "other good words"}
        (await org["ann"].patch("/settings", **new)).ok
        await attacked(org)
        for device in devices:
            elsewhere = at(org, "203.0.113.254")
            elsewhere.http.cookies.set(DEVICE_COOKIE, device)
            (await elsewhere.post("/sessions", **RIGHT)).refused("RATE_LIMIT_HIT", 429)


async def test_a_forged_browser_cookie_is_not_trusted(config: Config) -> None:
    async with stopped(config) as org:
        await attacked(org)
        for number, value in enumerate(["", "x", "~~~~~~~~", "a.b", "é", "x" * 5000, "'"]):
            with row(value):
                # Each from an unused address.
                browser = at(org, f"198.51.100.{number}")
                headers = {"Cookie": f"{DEVICE_COOKIE}={value}".encode()}
                reply = await browser.raw("POST", "/sessions", data=RIGHT, headers=headers)
                reply.refused("RATE_LIMIT_HIT", 429)


async def test_a_shared_browser_is_known_for_all_its_users(config: Config) -> None:
    async with stopped(config) as org:
        await org.add("ben")
        browser = await signed_in_browser(org, "ben")
        del browser.http.headers["X-CSRF-Token"]
        (await browser.post("/sessions", **RIGHT)).ok
        assert browser.http.cookies[DEVICE_COOKIE].count("~") == 1


@pytest.mark.parametrize("by_cookie", [True, False])
async def test_a_signed_in_session_cannot_guess_the_current_password(
    config: Config, by_cookie: bool
) -> None:
    async with stopped(config) as org:
        ann = await signed_in_browser(org) if by_cookie else org["ann"]
        wrong = {"old_password": "something else", "new_password": "other good words"}
        for _ in range(rate_limits.TRIES_PER_ACCOUNT):
            (await ann.patch("/settings", **wrong)).refused()
        right = wrong | {"old_password": PASSWORD}
        (await ann.patch("/settings", **right)).refused("RATE_LIMIT_HIT", 429)
        # A stolen session blocks nothing else.
        (await signed_out_browser(org).post("/sessions", **RIGHT)).ok
        other = org["ann"] if by_cookie else await signed_in_browser(org)
        (await other.patch("/settings", **right)).ok


@pytest.mark.parametrize("path", ["/join/i1-" + "x" * 43, "/confirm/x", "/reset/x"])
async def test_guessing_links_is_blocked(config: Config, path: str) -> None:
    async with stopped(config) as org:
        nobody = at(org, "203.0.113.1")
        for _ in range(rate_limits.TRIES_PER_CODE):
            assert (await nobody.http.get(path)).status_code in {404, 410}
        assert (await nobody.http.get(path)).status_code == 429
        assert (await at(org, "203.0.113.2").http.get(path)).status_code in {404, 410}


def test_an_unknown_account_evicts_no_remembered_one() -> None:
    clock = TestClock(stopped_at=1_800_000_000)
    tries = rate_limits.SignInLimits(Limiters(clock))
    for number in range(rate_limits.TRIES_FROM_ANYWHERE):
        tries.require(f"192.0.2.{number}", "ann@example.com")
    for number in range(2 * limiters.MAX_KNOWN):
        tries.require(f"198.51.{number}", f"{number}@example.com")
    with pytest.raises(TooManyTries):
        tries.require("203.0.113.1", "ann@example.com")


def test_remembered_sign_in_addresses_are_limited() -> None:
    tries = rate_limits.SignInLimits(Limiters(TestClock(stopped_at=1_800_000_000)))
    for number in range(limiters.MAX_KNOWN + 5):
        tries.succeeded(f"{number}", "ann@example.com")
    assert not tries.knows("0", "ann@example.com")
    assert tries.knows(f"{limiters.MAX_KNOWN}", "ANN@example.com")


# Log lines


def failregexes() -> list[re.Pattern[str]]:
    """The documented filter as fail2ban reads it, with the time cut from the line."""
    (block,) = re.findall(r"failregex = (.*?)\n(?:\w|```)", DOCUMENT.read_text(), re.DOTALL)
    address = r"(?P<address>[0-9a-fA-F.:]+)"
    return [re.compile(one.strip().replace("<ADDR>", address)) for one in block.splitlines()]


@pytest.mark.parametrize("form", [logs.TextLines(), logs.JsonLines()], ids=["text", "json"])
@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
async def test_a_failed_sign_in_is_logged_in_the_documented_form(
    config: Config,
    caplog: pytest.LogCaptureFixture,
    form: logging.Formatter,
    address: str,
) -> None:
    caplog.set_level(logging.INFO)
    async with stopped(config) as org:
        computer = at(org, address)
        (await computer.post("/fetch_api_key", **WRONG)).refused("AUTHENTICATION_FAILED", 401)
        sent = {"username": "hunter2", "password": "x"}
        (await computer.post("/sessions", **sent)).refused("AUTHENTICATION_FAILED", 401)
        await computer.http.post("/login", data=sent)
        evil = f'event="sign-in failed" from=192.0.2.9 "from":"192.0.2.9" {"x" * 5}'
        await computer.http.get(f"/{evil}")
    found = []
    for record in caplog.records:
        line = form.format(record)
        assert "hunter2" not in line
        assert "something else" not in line
        bare = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "", line)
        matches = [
            m for regex in failregexes() for text in {line, bare} if (m := regex.match(text))
        ]
        if matches:
            found.append({m["address"] for m in matches})
    assert found == [{address}] * 3


async def test_a_sign_in_is_logged_with_its_address(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stopped(config) as org:
        computer = at(org, "192.0.2.7")
        (await computer.post("/fetch_api_key", **RIGHT)).ok
        (await computer.post("/sessions", **RIGHT)).ok
        assert (await computer.http.post("/login", data=RIGHT)).status_code == 303
        (await computer.post("/sessions", **WRONG)).refused("AUTHENTICATION_FAILED", 401)
    told = [record for record in caplog.records if record.getMessage() == "signed in"]
    assert [(record.name, record.levelname) for record in told] == [
        ("tertulia.sign_in", "INFO")
    ] * 3
    fields = {"from": "192.0.2.7", "way": "password", "user": org["ann"].user_id}
    assert [record.__dict__["fields"] for record in told] == [fields] * 3


async def test_no_secret_is_logged(org: Organization, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = await org["ann"].upload()
    url = (await org["ann"].get(f"/user_uploads/{path}")).ok["url"]
    ticket = url.split("/")[3]
    assert len(ticket) > 40
    assert (await org.http.get(url)).content == b"hello"
    assert (await org.http.get(f"/user_uploads/{path}?api_key={org['ann'].api_key}")).is_success
    own = [record for record in caplog.records if record.name.startswith("tertulia")]
    lines = "\n".join(logs.TextLines().format(record) for record in own)
    assert "/user_uploads/temporary/…" in lines
    for secret in (ticket, org["ann"].api_key):
        assert secret not in lines
