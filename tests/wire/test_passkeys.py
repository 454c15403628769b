"""Passkeys: adding them, and signing in and confirming with them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tertulia.service.config import Config
from tertulia.wire.http import rate_limits
from tests import postgres
from tests.authenticator import Authenticator
from tests.browsers import (
    page_text,
    send_csrf_token,
    session_cookie,
    set_password,
    signed_out_browser,
)
from tests.emails import due_emails, no_email_job
from tests.nodes import cluster
from tests.support import PASSWORD, Newcomer, Organization, Person, TestClock, new_organization

pytestmark = pytest.mark.usefixtures("no_logged_errors", no_email_job.__name__)

FACTORS = "/users/me/second_factors"
BEN = {"username": "ben@example.com", "password": PASSWORD}


@pytest.fixture
def clock() -> TestClock:
    return TestClock(stopped_at=1_800_000_000)


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    others = (Newcomer("ben"), Newcomer("robo", owner="ben"))
    async with new_organization(config, clock=clock, others=others) as org:
        await set_password(org, "ben")
        yield org


async def add(person: Person, device: Authenticator, name: str = "") -> dict[str, Any]:
    """Add the device's passkey to the person's account."""
    begun = (await person.post(f"{FACTORS}/passkeys/challenge")).ok
    sent = {"ticket": begun["ticket"], "credential": device.created(begun["options"])}
    return (await person.post(f"{FACTORS}/passkeys", name=name, **sent)).ok


def asked(page: httpx.Response) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options that the page passes to the browser, and its form's hidden fields."""
    form = page.text.partition('<form id="passkey"')[2].partition("</form>")[0]
    found = re.search(r'data-options="([^"]*)"', form)
    assert found, page.text
    hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    return json.loads(unescape(found[1])), hidden


def answer(page: httpx.Response, device: Authenticator) -> dict[str, str]:
    """Return the form that the page's script submits."""
    options, hidden = asked(page)
    return {**hidden, "passkey": json.dumps(device.answered(options))}


async def login(org: Organization, device: Authenticator) -> tuple[Person, dict[str, str]]:
    """Return a browser on the sign-in page, and its device's response."""
    browser = signed_out_browser(org)
    return browser, answer(await browser.http.get("/login"), device)


async def test_a_passkey_replaces_the_password(org: Organization, clock: TestClock) -> None:
    before = await org.http.get("/login")
    assert "passkey" not in before.text
    assert "script" not in before.headers["content-security-policy"]
    device = Authenticator()
    assert len((await add(org["ben"], device, "Laptop"))["recovery_codes"]) == 10
    (factor,) = (await org["ben"].get(FACTORS)).ok["second_factors"]
    assert (factor["kind"], factor["name"], factor["last_used_at"]) == ("passkey", "Laptop", None)
    browser, sent = await login(org, device)
    page = await browser.http.post("/login?next=/%23narrow", data=sent)
    assert (page.status_code, page.headers["location"]) == (303, "/#narrow")
    assert session_cookie(browser)
    assert (await browser.get("/users/me")).ok["user_id"] == org["ben"].user_id
    (factor,) = (await org["ben"].get(FACTORS)).ok["second_factors"]
    assert factor["last_used_at"] == int(clock())
    (email,) = await due_emails(org)
    assert "second factor was added" in email.text


async def test_it_is_a_second_factor(org: Organization) -> None:
    device = Authenticator(verifies=False)
    codes = (await add(org["ben"], device))["recovery_codes"]
    (await org.nobody.post("/fetch_api_key", **BEN)).refused("SECOND_FACTOR_REQUIRED", 403)
    (await org.nobody.post("/fetch_api_key", **BEN, code=codes[0])).ok
    browser = signed_out_browser(org)
    page = await browser.http.post("/login", data=BEN)
    options, _ = asked(page)
    assert [one["id"] for one in options["allowCredentials"]] == [
        device.created({**options, "user": {"id": device.handle}})["id"]
    ]
    page = await browser.http.post("/login/second-factor", data=answer(page, device))
    assert (page.status_code, bool(session_cookie(browser))) == (303, True)


async def test_without_verifying_the_person_it_does_not_replace_the_password(
    org: Organization,
) -> None:
    device = Authenticator(verifies=False)
    await add(org["ben"], device)
    browser, sent = await login(org, device)
    page = await browser.http.post("/login", data=sent)
    assert (page.status_code, "isn't valid" in page_text(page)) == (403, True)
    assert session_cookie(browser) is None


async def test_an_answer_works_once(org: Organization) -> None:
    device = Authenticator(counts=False)
    await add(org["ben"], device)
    browser, sent = await login(org, device)
    assert (await browser.http.post("/login", data=sent)).status_code == 303
    other = signed_out_browser(org)
    assert (await other.http.post("/login", data=sent)).status_code == 403
    assert session_cookie(other) is None


async def test_a_copied_passkey_is_refused(org: Organization) -> None:
    device = Authenticator()
    await add(org["ben"], device)
    browser, sent = await login(org, device)
    assert (await browser.http.post("/login", data=sent)).status_code == 303
    device.count -= 1
    browser, sent = await login(org, device)
    assert (await browser.http.post("/login", data=sent)).status_code == 403


async def test_wrong_answers_are_refused(org: Organization, clock: TestClock) -> None:
    device = Authenticator()
    await add(org["ben"], device)
    same_id: dict[str, Any] = {
        "credential_id": device.credential_id,
        "handle": device.handle,
        "count": 5,
    }
    strangers = [
        Authenticator(**same_id),  # Another key.
        Authenticator(**same_id, key=device.key, origin="http://evil.test"),
        Authenticator(**same_id, key=device.key, host="evil.test"),
        Authenticator(**{**same_id, "handle": "x"}, key=device.key),
        Authenticator(handle=device.handle),  # Unknown here.
    ]
    for stranger in strangers:
        browser, sent = await login(org, stranger)
        assert (await browser.http.post("/login", data=sent)).status_code == 403
        assert session_cookie(browser) is None
    browser, sent = await login(org, Authenticator(**same_id, key=device.key))
    assert (await browser.http.post("/login", data=sent)).status_code == 303
    device.count = 10
    browser, sent = await login(org, device)
    for wrong in ({"passkey": "{}"}, {"passkey": "x" * 30_000}, {"ticket": "x.y"}, {"ticket": ""}):
        assert (await browser.http.post("/login", data={**sent, **wrong})).status_code == 403
    # The challenge of a page that was open for too long.
    clock.ahead += 3601
    assert (await browser.http.post("/login", data=sent)).status_code == 403


async def test_answers_of_one_step_do_not_work_in_another(org: Organization) -> None:
    ben, device = org["ben"], Authenticator()
    codes = (await add(ben, device))["recovery_codes"]
    _, sent = await login(org, device)
    browser = signed_out_browser(org)
    page = await browser.http.post("/login", data=BEN)
    step = asked(page)[1]["step"]
    page = await browser.http.post("/login/second-factor", data={**sent, "step": step})
    assert (page.status_code, session_cookie(browser)) == (403, None)
    # Another person's challenge for a new passkey.
    begun = (await org["ann"].post(f"{FACTORS}/passkeys/challenge")).ok
    new = Authenticator()
    sent_new = {"ticket": begun["ticket"], "credential": new.created(begun["options"])}
    (await ben.post(f"{FACTORS}/passkeys", **sent_new)).refused("AUTHENTICATION_FAILED", 401)
    assert len(codes) == 10


async def test_a_passkey_belongs_to_one_account(org: Organization) -> None:
    device = Authenticator()
    await add(org["ben"], device)
    begun = (await org["ann"].post(f"{FACTORS}/passkeys/challenge")).ok
    sent = {"ticket": begun["ticket"], "credential": device.created(begun["options"])}
    (await org["ann"].post(f"{FACTORS}/passkeys", **sent)).refused()
    (await org["robo"].post(f"{FACTORS}/passkeys/challenge")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_guessing_is_blocked(org: Organization) -> None:
    await add(org["ben"], Authenticator())
    browser, sent = await login(org, Authenticator())
    statuses = [
        (await browser.http.post("/login", data=sent)).status_code
        for _ in range(rate_limits.TRIES_PER_CODE + 1)
    ]
    assert statuses[-2:] == [403, 429]


async def test_a_session_is_confirmed_with_a_passkey(org: Organization, clock: TestClock) -> None:
    device = Authenticator()
    await add(org["ben"], device)
    browser, sent = await login(org, device)
    await browser.http.post("/login", data=sent)
    send_csrf_token(browser)
    clock.ahead += 16 * 60
    refused = (await browser.post("/users/me/api_key/regenerate")).refused(
        "PASSWORD_CONFIRMATION_REQUIRED", 403
    )
    assert refused["proofs"] == ["password", "passkey", "code"]
    challenge = (await browser.post("/passkey_challenges")).ok
    confirmed = {"passkey": device.answered(challenge["options"]), "ticket": challenge["ticket"]}
    (await org["ann"].post("/sessions/confirm", **confirmed)).refused("AUTHENTICATION_FAILED", 401)
    (await browser.post("/sessions/confirm", **confirmed)).ok
    (await browser.post("/users/me/api_key/regenerate")).ok


async def test_a_removed_passkey_no_longer_works(org: Organization) -> None:
    device = Authenticator()
    await add(org["ben"], device)
    browser, sent = await login(org, device)
    (factor,) = (await org["ben"].get(FACTORS)).ok["second_factors"]
    (await org["ben"].delete(f"{FACTORS}/{factor['id']}")).ok
    assert (await browser.http.post("/login", data=sent)).status_code == 403


async def test_an_answer_works_once_on_two_nodes(postgres_url: str, tmp_path: Path) -> None:
    with postgres.schema(postgres_url) as url:
        config = Config(
            data_dir=str(tmp_path / "data"), database_url=url, external_url="http://chat.test"
        )
        async with cluster(config, 2) as nodes:
            one, other = nodes.nodes
            device = Authenticator(counts=False)
            await add(one["ben"], device)
            _, sent = await login(one, device)
            browsers = [signed_out_browser(node) for node in (one, other)]
            pages = await asyncio.gather(
                *(browser.http.post("/login", data=sent) for browser in browsers)
            )
            assert sorted(page.status_code for page in pages) == [303, 403]
