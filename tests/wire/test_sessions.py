"""Browser sessions: cookies, CSRF, and how sessions end."""

import asyncio
import re
import time
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.domain.accounts import sessions
from tertulia.model.changes import RealmChanged, RealmDeactivated
from tertulia.model.sessions import LIFETIME
from tertulia.service.config import Config
from tertulia.service.credentials import key_digest
from tertulia.wire.http import rate_limits
from tertulia.wire.http.request_head import (
    CSRF_COOKIE,
    DEVICE_COOKIE,
    POSITION_COOKIE,
    SESSION_COOKIE,
)
from tests.browsers import (
    FIREFOX,
    cookies_of,
    send_csrf_token,
    session_cookie,
    set_password,
    signed_in_browser,
    signed_out_browser,
)
from tests.support import (
    PASSWORD,
    Organization,
    Person,
    TestClock,
    new_organization,
    open_organization,
    row,
    until,
)

pytestmark = pytest.mark.usefixtures("no_logged_errors")

WRONG = {"username": "ann@example.com", "password": "something else"}
RIGHT = {"username": "ann@example.com", "password": PASSWORD}


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.get("/sessions")).ok["sessions"]
    return found


async def change_password(person: Person, old: str, new: str) -> None:
    (await person.patch("/settings", old_password=old, new_password=new)).ok


# Signing in


async def test_signing_in_sets_two_cookies_and_creates_a_session(org: Organization) -> None:
    browser = signed_out_browser(org)
    reply = await browser.post("/sessions", **RIGHT)
    assert (reply.ok["user_id"], reply.ok["email"]) == (org["ann"].user_id, "ann@example.com")
    cookies = {c.partition("=")[0]: c for c in reply.headers.get_list("set-cookie")}
    cookies.pop(POSITION_COOKIE, None)
    assert set(cookies) == {SESSION_COOKIE, CSRF_COOKIE, DEVICE_COOKIE}
    assert "HttpOnly" in cookies.pop(DEVICE_COOKIE)
    for cookie in cookies.values():
        assert "Path=/" in cookie
        assert "SameSite=Lax" in cookie
        assert f"Max-Age={LIFETIME}" in cookie
        assert "Secure" not in cookie
        assert "Domain" not in cookie
    assert "HttpOnly" in cookies[SESSION_COOKIE]
    assert "HttpOnly" not in cookies[CSRF_COOKIE]
    assert (await browser.get("/users/me")).ok["user_id"] == org["ann"].user_id


async def test_the_cookies_are_secure_on_https(config: Config) -> None:
    secure = msgspec.structs.replace(config, external_url="https://chat.example.com")
    async with new_organization(secure) as org:
        reply = await signed_out_browser(org).post("/sessions", **RIGHT)
        cookies = reply.headers.get_list("set-cookie")
        assert len(cookies) == 3 + org.node.positions.is_on
        assert all("Secure" in cookie for cookie in cookies)


async def test_no_stored_data_of_a_session_can_be_used_to_sign_in(org: Organization) -> None:
    browser = await signed_in_browser(org)
    token = session_cookie(browser)
    assert token is not None
    (session,) = org.node.state.sessions
    assert session.digest == key_digest(token)
    assert token not in repr(session)


NOT_RIGHT: list[Any] = [
    WRONG,
    {"username": "nobody@example.com", "password": PASSWORD},
    {"username": "no address", "password": PASSWORD},
    {"username": "", "password": ""},
    {"username": "a" * 3000, "password": "b" * 3000},
    {"username": "robo-bot@example.com", "password": ""},
    {"username": "ben@example.com", "password": PASSWORD},
]


async def test_wrong_credentials_get_the_same_error(org: Organization) -> None:
    for sent in NOT_RIGHT:
        with row(sent):
            browser = signed_out_browser(org)
            told = (await browser.post("/sessions", **sent)).refused("AUTHENTICATION_FAILED", 401)
            assert told["msg"] == "Incorrect email address or password."
            assert not browser.http.cookies
            assert len(org.node.state.sessions) == 0


async def test_required_parameters_are_named(shared_org: Organization) -> None:
    for sent in ({"username": "ann@example.com"}, {"password": PASSWORD}):
        (await signed_out_browser(shared_org).post("/sessions", **sent)).refused(
            "REQUEST_VARIABLE_MISSING"
        )


async def test_a_deactivated_account_learns_so_only_with_the_right_password(
    org: Organization,
) -> None:
    await set_password(org, "ben")
    (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    ben = {"username": "ben@example.com"}
    reply = await signed_out_browser(org).post("/sessions", **ben, password=PASSWORD)
    reply.refused("USER_DEACTIVATED", 401)
    reply = await signed_out_browser(org).post("/sessions", **ben, password="wrong words")
    reply.refused("AUTHENTICATION_FAILED", 401)


async def test_sign_in_is_refused_if_passwords_are_disabled_or_the_organization_is_closed(
    org: Organization,
) -> None:
    browser = await signed_in_browser(org)
    await org.do(RealmChanged(values={"password_sign_in": False}))
    (await signed_out_browser(org).post("/sessions", **RIGHT)).refused(
        "PASSWORD_AUTH_DISABLED", 401
    )
    (await browser.get("/users/me")).ok
    await org.do(RealmChanged(values={"password_sign_in": True}), RealmDeactivated())
    (await signed_out_browser(org).post("/sessions", **RIGHT)).refused("REALM_DEACTIVATED", 401)
    (await browser.get("/users/me")).refused("REALM_DEACTIVATED", 401)


@pytest.mark.parametrize("path", ["/sessions", "/fetch_api_key"])
async def test_guessing_a_password_is_blocked_without_affecting_others(
    config: Config, path: str
) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        await set_password(org, "ben")
        nobody = signed_out_browser(org)
        for _ in range(rate_limits.TRIES_PER_ACCOUNT):
            (await nobody.post(path, **WRONG)).refused("AUTHENTICATION_FAILED", 401)
        for sent in (WRONG, RIGHT, {**RIGHT, "username": " ANN@example.com"}):
            reply = await nobody.post(path, **sent)
            body = reply.refused("RATE_LIMIT_HIT", 429)
            assert 0 < body["retry-after"] <= rate_limits.TRIES_SECONDS
            assert reply.headers["retry-after"] == str(body["retry-after"])
        (await nobody.post(path, username="ben@example.com", password=PASSWORD)).ok
        clock.ahead = rate_limits.TRIES_SECONDS + 1
        (await nobody.post(path, **RIGHT)).ok


async def test_guessing_at_many_accounts_is_blocked(config: Config) -> None:
    async with new_organization(config, clock=TestClock(stopped_at=time.time())) as org:
        nobody = signed_out_browser(org)
        for number in range(rate_limits.TRIES):
            sent = {"username": f"a{number}@example.com", "password": "x"}
            (await nobody.post("/sessions", **sent)).refused("AUTHENTICATION_FAILED", 401)
        (await nobody.post("/sessions", **RIGHT)).refused("RATE_LIMIT_HIT", 429)


async def test_the_right_password_can_be_used_without_limit(org: Organization) -> None:
    browser = signed_out_browser(org)
    for _ in range(rate_limits.TRIES_PER_ACCOUNT + 2):
        (await browser.post("/sessions", **RIGHT)).ok
        browser.http.cookies.clear()


async def test_an_account_created_by_someone_else_joins_with_the_first_sign_in(
    org: Organization,
) -> None:
    sent = {"email": "zoe@example.com", "full_name": "Zoe", "password": PASSWORD}
    made = (await org["ann"].post("/users", **sent)).ok["user_id"]
    assert org.node.state.users[made].awaits_arrival
    reply = await signed_out_browser(org).post(
        "/sessions", username="zoe@example.com", password=PASSWORD
    )
    assert reply.ok["user_id"] == made
    assert not org.node.state.users[made].awaits_arrival


# Cookie authentication


async def test_every_endpoint_accepts_the_cookie(org: Organization) -> None:
    channel = await org.channel("lunch", "ann")
    browser = await signed_in_browser(org)
    message_id = await browser.send(channel, "soup", "hello")
    assert (await browser.get(f"/messages/{message_id}")).ok["message"]["client"] == "website"
    listener = await browser.register()
    await org["ann"].send(channel, "soup", "again")
    assert [e["type"] for e in await listener.events()] == ["message"]
    (await browser.patch("/settings", full_name="Anna")).ok
    (await browser.delete(f"/messages/{message_id}")).ok


async def test_the_client_may_name_itself(org: Organization) -> None:
    channel = await org.channel("lunch", "ann")
    browser = await signed_in_browser(org)
    message_id = await browser.send(channel, "soup", "hello", client="kiosk")
    assert (await browser.get(f"/messages/{message_id}")).ok["message"]["client"] == "kiosk"


async def test_files_avatars_and_resumable_uploads_accept_the_cookie(
    shared_org: Organization,
) -> None:
    browser = await signed_in_browser(shared_org)
    path = await browser.upload()
    nobody = signed_out_browser(shared_org)
    assert (await browser.http.get(f"/user_uploads/{path}")).content == b"hello"
    assert (await nobody.http.get(f"/user_uploads/{path}")).status_code == 403
    shown = await browser.http.get(f"/user_uploads/{path}")
    assert "Cookie" in shown.headers["vary"]
    ben = f"/avatar/{shared_org['ben'].user_id}"
    theirs = (await browser.http.get(ben)).headers["location"]
    assert theirs != (await nobody.http.get(ben)).headers["location"]
    tus = {"Tus-Resumable": "1.0.0", "Upload-Length": "5"}
    begun = await browser.http.post("/api/v1/tus", headers=tus)
    assert begun.status_code == 201
    piece = {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": "0",
        "Content-Type": "application/offset+octet-stream",
    }
    place = begun.headers["location"]
    done = await browser.http.patch(place, headers=piece, content=b"hello")
    assert done.status_code in {200, 204}
    del browser.http.headers["X-CSRF-Token"]
    assert (await browser.http.post("/api/v1/tus", headers=tus)).status_code == 403


async def test_a_forged_cookie_is_ignored(shared_org: Organization) -> None:
    await signed_in_browser(shared_org)
    for token in ("", "x", "x" * 43, "x" * 5000, "%00", "é", "1", '"quoted"'):
        with row(token):
            headers = {"Cookie": f"{SESSION_COOKIE}={token}".encode()}
            reply = await shared_org.nobody.raw("GET", "/users/me", headers=headers)
            reply.refused("UNAUTHORIZED", 401)


async def test_an_authorization_header_takes_precedence_over_the_cookie(
    shared_org: Organization,
) -> None:
    browser = await signed_in_browser(shared_org)
    del browser.http.headers["X-CSRF-Token"]
    ben = Person(
        browser.http, shared_org["ben"].user_id, shared_org["ben"].email, shared_org["ben"].api_key
    )
    assert (await ben.get("/users/me")).ok["user_id"] == ben.user_id
    (await ben.patch("/settings", full_name="Benno")).ok
    wrong = Person(browser.http, 0, "ben@example.com", "x" * 32)
    (await wrong.get("/users/me")).refused("INVALID_API_KEY", 401)


async def test_browsers_are_not_prompted_for_credentials(shared_org: Organization) -> None:
    reply = await signed_out_browser(shared_org).get("/users/me")
    reply.refused("UNAUTHORIZED", 401)
    assert reply.headers["www-authenticate"].startswith("Session ")
    reply = await signed_out_browser(shared_org, agent="curl/8").get("/users/me")
    assert reply.headers["www-authenticate"].startswith("Basic ")


async def test_a_spectator_with_an_expired_cookie_is_a_spectator(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    headers = {"Cookie": f"{SESSION_COOKIE}=over"}
    (await org.nobody.raw("GET", "/users", headers=headers)).ok


# CSRF


TOKENS: list[str | None] = [None, "", "x", "x" * 43, "é", "another's"]


async def test_changes_need_the_session_s_token(org: Organization) -> None:
    for sent in TOKENS:
        with row(sent):
            before = len(org.node.state.sessions)
            browser, other = await signed_in_browser(org), await signed_in_browser(org)
            if sent is None:
                del browser.http.headers["X-CSRF-Token"]
            else:
                value = other.http.headers["X-CSRF-Token"] if sent == "another's" else sent
                browser.http.headers.update({b"X-CSRF-Token": value.encode()})
            for method, path in (
                ("POST", "/messages"),
                ("PATCH", "/settings"),
                ("DELETE", "/sessions"),
                ("POST", "/users/me/subscriptions"),
                ("POST", "/register"),
            ):
                (await browser.raw(method, path)).refused("CSRF_FAILED", 403)
            (await browser.get("/users/me")).ok
            assert len(org.node.state.sessions) == before + 2


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://chat.test.evil.example"},
        {"Origin": "http://other.chat.test"},
        {"Origin": "null"},
        {"Origin": "http://[broken"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
    ids=str,
)
async def test_a_page_of_another_site_changes_nothing(
    shared_org: Organization, headers: dict[str, str]
) -> None:
    name = shared_org.node.state.users[shared_org["ann"].user_id].full_name
    browser = await signed_in_browser(shared_org)
    reply = await browser.raw("PATCH", "/settings", data={"full_name": "Eve"}, headers=headers)
    reply.refused("CSRF_FAILED", 403)
    reply = await signed_out_browser(shared_org).raw(
        "POST", "/sessions", data=RIGHT, headers=headers
    )
    reply.refused("CSRF_FAILED", 403)
    assert shared_org.node.state.users[browser.user_id].full_name == name != "Eve"
    # CSRF protection concerns browsers: a key is always sent on purpose.
    (
        await shared_org["ann"].raw(
            "PATCH", "/settings", data={"full_name": "Anna"}, headers=headers
        )
    ).ok


OUR_OWN: list[dict[str, str]] = [
    {"Origin": "http://chat.test"},
    {"Origin": "http://CHAT.test", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://inner:9991", "Host": "inner:9991"},
    {"Origin": "http://chat.test", "Host": "inner:9991"},
    {"Sec-Fetch-Site": "none"},
]


async def test_our_own_page_works_at_both_of_its_addresses(shared_org: Organization) -> None:
    for headers in OUR_OWN:
        with row(headers):
            browser = await signed_in_browser(shared_org)
            cookie = f"{SESSION_COOKIE}={session_cookie(browser)}"
            reply = await browser.raw(
                "PATCH",
                "/settings",
                data={"full_name": "Anna"},
                headers={**headers, "Cookie": cookie},
            )
            assert reply.status == 200, reply.body


# Listing and ending


async def test_sessions_are_listed_for_their_owner(org: Organization) -> None:
    first = await signed_in_browser(org, agent="Mozilla/5.0 (Phone)")
    second = await signed_in_browser(org, agent=FIREFOX)
    await signed_in_browser(org, "ben")
    found = await listed(second)
    assert [(s["agent"], s["current"]) for s in found] == [
        (FIREFOX, True),
        ("Mozilla/5.0 (Phone)", False),
    ]
    assert [s["current"] for s in await listed(first)] == [False, True]
    assert [s["current"] for s in await listed(org["ann"])] == [False, False]
    assert await listed(org["robo"]) == []
    assert all(s["created_at"] <= s["last_used_at"] for s in found)


async def test_a_forged_browser_name_is_harmless(org: Organization) -> None:
    browser = await signed_in_browser(org, agent="Mozilla/5.0 \t" + "x" * 5000)
    (found,) = await listed(browser)
    assert found["agent"] == ("Mozilla/5.0 " + "x" * 5000)[: sessions.MAX_AGENT]


async def test_an_own_session_can_be_ended(org: Organization) -> None:
    here, there = await signed_in_browser(org), await signed_in_browser(org)
    number = next(s["id"] for s in await listed(here) if not s["current"])
    (await here.delete(f"/sessions/{number}")).ok
    (await there.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await here.get("/users/me")).ok


async def test_ending_the_current_session_signs_out(org: Organization) -> None:
    browser = await signed_in_browser(org)
    (session,) = await listed(browser)
    reply = await browser.delete(f"/sessions/{session['id']}")
    reply.ok
    cookies = {c.partition("=")[0]: c for c in reply.headers.get_list("set-cookie")}
    cookies.pop(POSITION_COOKIE, None)
    assert all("Max-Age=0" in cookie for cookie in cookies.values())
    assert cookies_of(browser) == {DEVICE_COOKIE}
    assert len(org.node.state.sessions) == 0


NOT_ENDED: list[int | str] = [0, 99, 10**15, "another's"]


async def test_other_people_s_sessions_cannot_be_ended(org: Organization) -> None:
    browser = await signed_in_browser(org)
    await signed_in_browser(org, "ben")
    others = org.node.state.sessions.of_user[org["ben"].user_id][0].id
    for number in NOT_ENDED:
        with row(number):
            ended = others if number == "another's" else number
            (await browser.delete(f"/sessions/{ended}")).refused(status=404)
            (await browser.delete("/sessions/x")).refused(status=404)
            assert len(org.node.state.sessions) == 2


async def test_all_but_the_current_session_can_be_ended(org: Organization) -> None:
    here, there, ben = (
        await signed_in_browser(org),
        await signed_in_browser(org),
        await signed_in_browser(org, "ben"),
    )
    (await here.delete("/sessions")).ok
    assert [s["current"] for s in await listed(here)] == [True]
    (await there.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await ben.get("/users/me")).ok
    (await org["ann"].delete("/sessions")).ok
    (await here.get("/users/me")).refused("UNAUTHORIZED", 401)


async def test_a_session_gets_its_account_s_api_key_with_the_password_alone(
    org: Organization,
) -> None:
    browser, path = await signed_in_browser(org), "/fetch_api_key"
    found = await browser.http.post(f"/json{path}", data={"password": PASSWORD})
    assert found.json()["api_key"] == org["ann"].api_key
    (await browser.post(path, password="wrong")).refused("AUTHENTICATION_FAILED", 401)
    (await org.nobody.post(path, password=PASSWORD)).refused("REQUEST_VARIABLE_MISSING")
    del browser.http.headers["X-CSRF-Token"]
    (await browser.post(path, password=PASSWORD)).refused("CSRF_FAILED", 403)


async def test_signing_in_again_replaces_the_browser_s_session(org: Organization) -> None:
    browser = await signed_in_browser(org)
    before = session_cookie(browser)
    (await browser.post("/sessions", **RIGHT)).ok
    send_csrf_token(browser)
    assert session_cookie(browser) != before
    assert len(await listed(browser)) == 1


async def test_the_number_of_sessions_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    browsers = [await signed_in_browser(org) for _ in range(5)]
    assert len(await listed(org["ann"])) == 3
    (await browsers[1].get("/users/me")).refused("UNAUTHORIZED", 401)
    (await browsers[2].get("/users/me")).ok


async def test_a_new_password_ends_the_other_sessions(org: Organization) -> None:
    here, there, ben = (
        await signed_in_browser(org),
        await signed_in_browser(org),
        await signed_in_browser(org, "ben"),
    )
    await change_password(here, PASSWORD, "other good words")
    (await here.get("/users/me")).ok
    (await there.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await ben.get("/users/me")).ok
    await change_password(org["ann"], "other good words", "and yet others")
    (await here.get("/users/me")).refused("UNAUTHORIZED", 401)


async def test_a_password_changed_while_it_is_checked_signs_nobody_in(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_password = org.node.vault.is_password

    async def slow(credential: Any, password: str) -> bool:
        is_right = await is_password(credential, password)
        monkeypatch.undo()
        await change_password(org["ann"], PASSWORD, "other good words")
        return is_right

    monkeypatch.setattr(org.node.vault, "is_password", slow)
    (await signed_out_browser(org).post("/sessions", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
    assert len(org.node.state.sessions) == 0


async def test_deactivation_ends_sessions_for_good(org: Organization) -> None:
    ben = await signed_in_browser(org, "ben")
    path = f"/users/{org['ben'].user_id}"
    (await org["ann"].delete(path)).ok
    (await ben.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await org["ann"].post(f"{path}/reactivate")).ok
    (await ben.get("/users/me")).refused("UNAUTHORIZED", 401)


async def test_a_new_key_ends_no_session(org: Organization) -> None:
    browser = await signed_in_browser(org)
    (await org["ann"].post("/users/me/api_key/regenerate")).ok
    (await browser.get("/users/me")).ok


# Polls


async def _poll(browser: Person) -> "asyncio.Task[Any]":
    listener = await browser.register()
    return asyncio.create_task(
        browser.get("/events", queue_id=listener.queue_id, last_event_id=listener.last_event_id)
    )


async def _waiting(org: Organization, count: int) -> None:
    await until(lambda: org.node.delivery.waiting == count)


@pytest.mark.parametrize("how", ["end", "others", "password", "deactivate"])
async def test_a_waiting_poll_ends_with_its_session(org: Organization, how: str) -> None:
    there = await signed_in_browser(org, "ben")
    here = await signed_in_browser(org, "ben")
    poll = await _poll(there)
    await _waiting(org, 1)
    match how:
        case "end":
            number = next(s["id"] for s in await listed(here) if not s["current"])
            (await here.delete(f"/sessions/{number}")).ok
        case "others":
            (await here.delete("/sessions")).ok
        case "password":
            await change_password(here, PASSWORD, "other good words")
        case "deactivate":
            (await org["ann"].delete(f"/users/{here.user_id}")).ok
    expected = "USER_DEACTIVATED" if how == "deactivate" else "UNAUTHORIZED"
    (await poll).refused(expected, 401)


async def test_a_poll_continues_when_another_session_or_the_key_ends(org: Organization) -> None:
    here, there = await signed_in_browser(org), await signed_in_browser(org)
    channel = await org.channel("lunch", "ann", "ben")
    by_cookie = await _poll(here)
    by_key = await _poll(org["ann"])
    await _waiting(org, 2)
    (await here.delete("/sessions")).ok
    assert not by_key.done()
    (await there.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await here.post("/users/me/api_key/regenerate")).ok
    (await by_key).refused("INVALID_API_KEY", 401)
    assert not by_cookie.done()
    await org["ben"].send(channel, "soup", "hello")
    assert [e["type"] for e in (await by_cookie).ok["events"]] == ["message"]


# Expiry


async def test_a_session_lasts_while_it_is_used(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        used, idle = await signed_in_browser(org), await signed_in_browser(org)
        for _ in range(3):
            clock.ahead += LIFETIME - 60
            reply = await used.get("/users/me")
            reply.ok
            assert len(reply.headers.get_list("set-cookie")) == 3
            await org.tick()
        (await idle.get("/users/me")).refused("UNAUTHORIZED", 401)
        assert len(org.node.state.sessions) == 1
        clock.ahead += LIFETIME + 60
        (await used.get("/users/me")).refused("UNAUTHORIZED", 401)
        await org.tick()
        assert len(org.node.state.sessions) == 0


async def test_using_a_session_is_rarely_written(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        browser = await signed_in_browser(org)
        before = org.node.state.seq
        for _ in range(3):
            reply = await browser.get("/users/me")
            assert "set-cookie" not in reply.headers
        assert org.node.state.seq == before
        clock.ahead += sessions.USE_SECONDS + 1
        first = int(clock())
        await asyncio.gather(*(browser.get("/users/me") for _ in range(4)))
        assert org.node.state.seq == before + 1
        (session,) = org.node.state.sessions
        assert session.used_at >= first
        (shown,) = await listed(org["ann"])
        assert shown["last_used_at"] == session.used_at


async def test_sessions_and_their_end_survive_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        here, there = await signed_in_browser(org), await signed_in_browser(org)
        number = next(s["id"] for s in await listed(here) if not s["current"])
        (await here.delete(f"/sessions/{number}")).ok
    async with open_organization(config) as again:
        for browser, is_in in ((here, True), (there, False)):
            same = signed_out_browser(again)
            same.http.cookies = httpx.Cookies(browser.http.cookies)
            reply = await same.get("/users/me")
            assert reply.status == (200 if is_in else 401)
        new = await signed_in_browser(again)
        assert max(s["id"] for s in await listed(new)) > number


async def test_nothing_about_a_session_is_logged(
    org: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    browser = await signed_in_browser(org)
    await browser.get("/users/me")
    told = " ".join(
        f"{r.getMessage()} {getattr(r, 'fields', '')}"
        for r in caplog.records
        if r.name.startswith("tertulia")
    )
    assert re.search(r"/api/v1/sessions", told)
    token = session_cookie(browser)
    assert token is not None
    assert token not in told
    assert browser.http.headers["X-CSRF-Token"] not in told
    assert PASSWORD not in told
