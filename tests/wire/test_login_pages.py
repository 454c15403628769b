"""The pages for signing in and out, and for resetting a password."""

import asyncio
import re
from html import unescape

import httpx
import msgspec
import pytest

from tertulia.app.composition import asgi, opened_node
from tertulia.model.changes import RealmDeactivated
from tertulia.model.users import Role
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.service.config import Config
from tertulia.wire.http import rate_limits
from tertulia.wire.http.request_head import CSRF_COOKIE, DEVICE_COOKIE, SESSION_COOKIE
from tertulia.wire.pages import password_reset
from tests.browsers import (
    cookies_of,
    page_text,
    send_csrf_token,
    session_cookie,
    set_password,
    signed_in_browser,
    signed_out_browser,
)
from tests.emails import due_emails, link_path, no_email_job
from tests.support import PASSWORD, Organization, Person, TestClock, new_organization, row

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

RIGHT = {"username": "ann@example.com", "password": PASSWORD}
NEW = "a few good words"
PAGES = ("/login", "/reset", "/reset/wrong", "/logout")


# The page


async def test_the_page_shows_the_organization(org: Organization) -> None:
    await org.change_realm(
        name="Tea & <Talk>", rendered_description="<p>We <strong>talk</strong>.</p>"
    )
    page = await org.http.get("/login")
    assert page.status_code == 200
    assert "Tea & <Talk>" in page_text(page)
    assert "<Talk>" not in page.text
    assert "<strong>talk</strong>" in page.text
    assert re.search(r'<img src="/static/icon-192\.png\?version=\d+"', page.text)
    for name, kind, filled in (
        ("username", "email", "username"),
        ("password", "password", "current-password"),
    ):
        assert f'<label for="{name}">' in page.text
        field = re.search(rf'<input id="{name}"[^>]*>', page.text)
        assert field is not None
        assert f'type="{kind}"' in field[0]
        assert f'autocomplete="{filled}"' in field[0]
        assert "required" in field[0]
    assert 'href="/reset"' in page.text
    assert "Explore as" not in page.text
    head = await org.http.head("/login")
    assert (head.status_code, head.content) == (200, b"")


async def test_people_who_can_join_are_told_where_and_others_whom_to_ask(org: Organization) -> None:
    page = await org.http.get("/login")
    assert "Ask a member" in page_text(page)
    assert 'href="/join"' not in page.text
    await org.change_realm(invite_required=False)
    page = await org.http.get("/login")
    assert 'href="/join"' in page.text
    assert "Ask a member" not in page_text(page)


async def test_the_pages_run_no_scripts_and_cannot_be_cached_or_framed(
    shared_org: Organization,
) -> None:
    browser = await signed_in_browser(shared_org)
    for response in (
        *[await shared_org.http.get(path, follow_redirects=True) for path in PAGES],
        await shared_org.http.post("/login", data={**RIGHT, "password": "wrong"}),
        await shared_org.http.post("/reset", data={"email": "ann@example.com"}),
        await browser.http.get("/logout"),
    ):
        policy = response.headers["content-security-policy"]
        for part in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"):
            assert part in policy
        assert "script" not in policy
        assert "<script" not in response.text
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "same-origin"
        for address in re.findall(r'(?:src|href)="([^"]+\.(?:css|svg|png)[^"]*)"', response.text):
            assert (await shared_org.http.get(address)).status_code == 200, address


# Signing in


async def test_the_right_password_signs_in(shared_org: Organization) -> None:
    browser = signed_out_browser(shared_org)
    response = await browser.http.get("/")
    assert (response.status_code, response.headers["location"]) == (302, "/login")
    response = await browser.http.post("/login", data=RIGHT)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert {SESSION_COOKIE, CSRF_COOKIE} <= set(browser.http.cookies)
    response = await browser.http.get("/")
    assert response.status_code != 302
    assert "Cookie" in response.headers.get("vary", "Cookie")
    assert (await browser.get("/users/me")).ok["user_id"] == shared_org["ann"].user_id
    response = await browser.http.get("/login?next=/%23narrow/is/starred")
    assert (response.status_code, response.headers["location"]) == (303, "/#narrow/is/starred")


NOT_RIGHT: list[dict[str, str]] = [
    {"password": "wrong words"},
    {"username": "nobody@example.com"},
    {"username": "no address"},
    {"username": "ann@example.com\0"},
    {"username": "ben@example.com"},
    {"username": ""},
    {"password": ""},
    {"username": "'><script>@example.com"},
]
"""Wrong values, typed instead of the right ones."""


async def test_wrong_credentials_get_the_same_error_and_only_the_password_is_cleared(
    org: Organization,
) -> None:
    for fields in NOT_RIGHT:
        with row(fields):
            sent = RIGHT | fields
            browser = signed_out_browser(org)
            page = await browser.http.post("/login?next=/%23inbox", data=sent)
            assert page.status_code == 403
            assert "Incorrect email address or password." in page_text(page)
            assert 'role="alert"' in page.text
            assert "<script>" not in page.text
            field = re.search(r'<input id="username"[^>]*value="([^"]*)"', page.text)
            assert field is not None
            assert unescape(field[1]) == sent["username"]
            assert PASSWORD not in page.text
            assert 'action="/login?next=/%23inbox"' in page.text
            assert not browser.http.cookies


async def test_repeated_attempts_are_blocked(org: Organization) -> None:
    browser = signed_out_browser(org)
    for _ in range(rate_limits.TRIES_PER_ACCOUNT):
        page = await browser.http.post("/login", data={**RIGHT, "password": "wrong"})
        assert page.status_code == 403
    page = await browser.http.post("/login", data=RIGHT)
    assert page.status_code == 429
    assert "Too many attempts" in page_text(page)
    (await browser.post("/sessions", **RIGHT)).refused("RATE_LIMIT_HIT", 429)


WANTED = [
    ("/", "/"),
    ("/#narrow/channel/5-lunch/topic/soup", "/#narrow/channel/5-lunch/topic/soup"),
    ("/user_uploads/1/ab/x.txt", "/user_uploads/1/ab/x.txt"),
    ("/api", "/api"),
    ("", "/"),
    ("inbox", "/"),
    ("//evil.example", "/"),
    ("/\\evil.example", "/"),
    ("/a\\b", "/"),
    ("https://evil.example", "/"),
    ("javascript:alert(1)", "/"),
    ("/\t/evil.example", "/"),
    ("/\r\nSet-Cookie: a=b", "/"),
    ("/" + "x" * 3000, "/"),
    ("/logout", "/"),
]
"""The requested address, and the resulting one."""


async def test_after_sign_in_the_requested_page_is_shown_if_it_is_ours(
    shared_org: Organization,
) -> None:
    for sent, gone in WANTED:
        with row(sent):
            browser = signed_out_browser(shared_org)
            response = await browser.http.post("/login", params={"next": sent}, data=RIGHT)
            assert response.status_code == 303
            assert response.headers["location"] == gone
            assert "a" not in browser.http.cookies


async def test_without_password_sign_in_the_page_says_so(org: Organization) -> None:
    await org.change_realm(password_sign_in=False)
    page = await org.http.get("/login")
    assert "doesn’t use passwords" in page_text(page)
    assert "<input" not in page.text
    assert (await org.http.post("/login", data=RIGHT)).status_code == 403
    assert "No password sign-in" in page_text(await org.http.get("/reset"))
    assert "No password sign-in" in page_text(
        await org.http.post("/reset", data={"email": "ann@example.com"})
    )
    assert await due_emails(org) == []


async def test_a_deactivated_account_and_a_closed_organization_cannot_sign_in(
    org: Organization,
) -> None:
    browser = await signed_in_browser(org, "ben")
    (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    page = await signed_out_browser(org).http.post(
        "/login", data={**RIGHT, "username": "ben@example.com"}
    )
    assert page.status_code == 403
    assert "deactivated" in page_text(page)
    assert (await browser.http.get("/")).headers["location"] == "/login"
    ann = await signed_in_browser(org)
    await org.do(RealmDeactivated())
    assert (await ann.http.get("/")).headers["location"] == "/login"
    for method in ("GET", "POST"):
        page = await org.http.request(method, "/login", data=RIGHT)
        assert page.status_code == 401
        assert "deactivated" in page_text(page)


@pytest.mark.parametrize("path", ["/login", "/reset", "/logout"])
async def test_a_form_on_another_site_does_nothing(org: Organization, path: str) -> None:
    browser = await signed_in_browser(org)
    fields = {**RIGHT, "email": "ann@example.com", "csrf": browser.http.cookies[CSRF_COOKIE]}
    before = session_cookie(browser)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        page = await browser.http.post(path, data=fields, headers=headers)
        assert page.status_code == 403
    assert session_cookie(browser) == before
    (await browser.get("/users/me")).ok
    assert await due_emails(org) == []


async def test_a_body_that_is_no_form_or_too_large_is_refused(shared_org: Organization) -> None:
    for body, kind, status in (
        (b"{}", "application/json", 400),
        (b"username=%FF", "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
    ):
        page = await shared_org.http.post("/login", content=body, headers={"Content-Type": kind})
        assert page.status_code == status
        assert page.headers["content-type"].startswith("text/html")
    assert (await shared_org.http.delete("/login")).status_code == 405


# Signing out


async def test_signing_out_needs_a_button(org: Organization) -> None:
    browser = await signed_in_browser(org)
    page = await browser.http.get("/logout")
    assert page.status_code == 200
    assert "signed in as Ann" in page_text(page)
    assert len(org.node.state.sessions) == 1
    field = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert field is not None
    response = await browser.http.post(
        "/logout", data={"csrf": unescape(field[1])}, headers={"X-CSRF-Token": ""}
    )
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert cookies_of(browser) == {DEVICE_COOKIE}
    assert len(org.node.state.sessions) == 0


async def test_signing_out_clears_the_browser(org: Organization) -> None:
    browser, other, programs = (
        await signed_in_browser(org),
        await signed_in_browser(org),
        org["ann"],
    )
    own = (await other.get("/sessions")).ok["sessions"]
    current = next(one["id"] for one in own if one["current"])
    for asked in ("GET", "POST"):  # As another site's page can make a browser request it.
        kept = await org.http.request(asked, "/logout")
        assert "clear-site-data" not in kept.headers
    assert "clear-site-data" not in (await browser.http.get("/logout")).headers
    assert "clear-site-data" not in (await programs.get("/users/me")).headers
    left = await browser.http.post("/logout")
    ended = await other.delete(f"/sessions/{current}")
    for response in (left, ended):
        assert response.headers["clear-site-data"] == '"storage"'


async def test_our_own_page_signs_out_with_the_header(shared_org: Organization) -> None:
    browser, other = await signed_in_browser(shared_org), await signed_in_browser(shared_org)
    response = await browser.http.post("/logout")
    assert response.headers["location"] == "/login"
    assert cookies_of(browser) == {DEVICE_COOKIE}
    (await other.get("/users/me")).ok


@pytest.mark.parametrize("token", ["", "x" * 43])
async def test_signing_out_needs_the_token(org: Organization, token: str) -> None:
    browser = await signed_in_browser(org)
    del browser.http.headers["X-CSRF-Token"]
    page = await browser.http.post("/logout", data={"csrf": token})
    assert page.status_code == 403
    assert len(org.node.state.sessions) == 1


async def test_a_signed_out_visitor_is_redirected_to_sign_in(shared_org: Organization) -> None:
    for method in ("GET", "POST"):
        response = await signed_out_browser(shared_org).http.request(method, "/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/login")


# The demonstration


async def test_the_demonstration_needs_one_click(config: Config) -> None:
    async with new_organization(config) as org:
        await org.add("gus", Role.GUEST)
        await org.add("ben")
        (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    residents = ("ann@example.com", "gus@example.com", "ben@example.com", "gone@example.com")
    async with opened_node(config, lambda _: None, residents=residents) as node:
        transport = httpx.ASGITransport(app=asgi(node))
        async with httpx.AsyncClient(transport=transport, base_url="http://chat.test") as http:
            page = await http.get("/login?next=/%23inbox")
            assert "Explore as" in page_text(page)
            assert re.findall(r'name="resident" value="([^"]+)"', page.text) == [
                "ann@example.com",
                "gus@example.com",
            ]
            assert "Ann owner" in page_text(page)
            for picture in re.findall(r'<img src="([^"]+\.png)"', page.text):
                assert (await http.get(picture)).status_code == 200
            sent = {"resident": "gus@example.com"}
            response = await http.post("/login?next=/%23inbox", data=sent)
            assert (response.status_code, response.headers["location"]) == (303, "/#inbox")
            assert (await http.get("/api/v1/users/me")).json()["full_name"] == "Gus"
            for other in ("ben@example.com", "gone@example.com", "welcome-bot@tertulia.invalid"):
                page = await http.post("/login", data={"resident": other})
                assert page.status_code == 403


async def test_outside_of_a_demonstration_sign_in_needs_a_password(
    shared_org: Organization,
) -> None:
    browser = signed_out_browser(shared_org)
    page = await browser.http.post("/login", data={"resident": "ann@example.com"})
    assert page.status_code == 403
    assert not browser.http.cookies


# Password reset


async def pending_emails(org: Organization) -> list[RenderedMail]:
    """The emails that are due, including those stored after a response."""
    await org.node.log.catch_up()
    return await due_emails(org)


async def reset_link(org: Organization, email: str = "ann@example.com") -> str:
    """The path of the password reset link."""
    assert (await org.http.post("/reset", data={"email": email})).status_code == 200
    (letter,) = await pending_emails(org)
    assert letter.to == email
    return link_path(letter)


async def test_a_forgotten_password_is_replaced_and_signs_in(org: Organization) -> None:
    there = await signed_in_browser(org)
    path = await reset_link(org)
    browser = signed_out_browser(org)
    page = await browser.http.get(path)
    assert 'value="ann@example.com"' in page.text
    assert 'autocomplete="new-password"' in page.text
    response = await browser.http.post(path, data={"password": NEW})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert (await browser.get("/users/me")).ok["user_id"] == org["ann"].user_id
    (await there.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await signed_out_browser(org).post("/sessions", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
    (await signed_out_browser(org).post("/sessions", username="ann@example.com", password=NEW)).ok
    (await org["ann"].get("/users/me")).refused("INVALID_API_KEY", 401)
    (letter,) = await pending_emails(org)
    assert letter.to == "ann@example.com"
    assert "was reset" in letter.text
    assert "http" not in letter.text.replace("http://chat.test", "")


async def test_an_account_without_a_password_gets_one(org: Organization) -> None:
    path = await reset_link(org, "ben@example.com")
    assert (
        await signed_out_browser(org).http.post(path, data={"password": NEW})
    ).status_code == 303
    (await signed_out_browser(org).post("/sessions", username="ben@example.com", password=NEW)).ok


async def test_nobody_learns_whether_an_address_has_an_account(org: Organization) -> None:
    (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    told = set()
    for email in (
        "ann@example.com",
        "nobody@example.com",
        "cleo@example.com",
        "robo-bot@example.com",
    ):
        page = await org.http.post("/reset", data={"email": email})
        assert page.status_code == 200
        told.add(page_text(page).replace(email, ""))
    assert len(told) == 1
    assert [letter.to for letter in await pending_emails(org)] == ["ann@example.com"]


NO_ADDRESSES = ["", "x", "a@b\0.example", "a" * 300 + "@example.com"]


async def test_an_invalid_address_is_reported(shared_org: Organization) -> None:
    for email in NO_ADDRESSES:
        with row(email):
            page = await shared_org.http.post("/reset", data={"email": email})
            assert page.status_code == 400
            assert 'role="alert"' in page.text


@pytest.mark.parametrize("password", ["", "short", "x" * 101])
async def test_an_unacceptable_password_is_reported_and_the_link_stays_valid(
    org: Organization, password: str
) -> None:
    path = await reset_link(org)
    page = await org.http.post(path, data={"password": password})
    assert page.status_code == 400
    assert "Passwords must have" in page_text(page)
    assert (await org.http.post(path, data={"password": NEW})).status_code == 303


@pytest.mark.parametrize("by", ["use", "time", "reset your password", "deactivation"])
async def test_the_link_expires(config: Config, by: str) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        await set_password(org, "ben")
        path = await reset_link(org, "ben@example.com")
        again = await reset_link(org, "ben@example.com")
        match by:
            case "use":
                assert (await org.http.post(path, data={"password": NEW})).status_code == 303
            case "time":
                clock.ahead = password_reset.RESET_SECONDS + 2
            case "reset your password":
                (await org["ben"].patch("/settings", old_password=PASSWORD, new_password=NEW)).ok
            case "deactivation":
                (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
        before = org.node.state.credentials[org["ben"].user_id]
        for one in (path, again):
            for page in (
                await org.http.get(one),
                await org.http.post(one, data={"password": "yet other words"}),
            ):
                assert page.status_code == 410
                assert "expired" in page_text(page)
        assert org.node.state.credentials[org["ben"].user_id] == before


TOKENS = ["x", "x.y", "a" * 60 + "." + "b" * 43, "{other}", "%00", "é", "{path}x"]


async def test_a_forged_link_opens_nothing(org: Organization) -> None:
    path = (await reset_link(org)).removeprefix("/reset/")
    said, _, proof = path.partition(".")
    other = f"{said}.{'B' if proof[0] != 'B' else 'C'}{proof[1:]}"
    for token in TOKENS:
        with row(token):
            response = await org.http.post(
                "/reset/" + token.format(path=path, other=other), data={"password": NEW}
            )
            assert response.status_code == 410
            (await signed_out_browser(org).post("/sessions", **RIGHT)).ok


async def test_of_two_concurrent_uses_of_a_link_one_succeeds(org: Organization) -> None:
    path = await reset_link(org)
    responses = await asyncio.gather(
        *(
            signed_out_browser(org).http.post(path, data={"password": f"{NEW} {n}"})
            for n in range(2)
        )
    )
    statuses = sorted(response.status_code for response in responses)
    assert statuses[0] == 303
    assert statuses[1] in {401, 410}
    assert len(org.node.state.sessions) == 1


async def test_a_pending_email_is_not_sent_after_the_password_was_reset(
    org: Organization,
) -> None:
    await org.http.post("/reset", data={"email": "ann@example.com"})
    (await org["ann"].patch("/settings", old_password=PASSWORD, new_password=NEW)).ok
    sent = [letter.subject for letter in await pending_emails(org)]
    assert sent == ["Your password for Example was changed"]


async def test_password_reset_emails_are_limited(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        for _ in range(password_reset.MAILS_PER_ACCOUNT + 3):
            page = await org.http.post("/reset", data={"email": "ann@example.com"})
            assert "a link to reset its password was sent" in page_text(page)
        assert len(await pending_emails(org)) == password_reset.MAILS_PER_ACCOUNT
        clock.ahead = 700
        for number in range(10):
            await org.http.post("/reset", data={"email": f"a{number}@example.com"})
        page = await org.http.post("/reset", data={"email": "ann@example.com"})
        assert page.status_code == 429


async def test_the_link_is_not_logged(org: Organization, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    path = await reset_link(org)
    await org.http.post(path, data={"password": NEW})
    told = " ".join(
        f"{r.getMessage()} {getattr(r, 'fields', '')}"
        for r in caplog.records
        if r.name.startswith("tertulia")
    )
    assert "/reset/…" in told
    assert path.rpartition("/")[2] not in told
    assert NEW not in told


# Joining


async def test_a_new_user_is_signed_in(org: Organization) -> None:
    sent = {"invitee_emails": "zoe@example.com", "stream_ids": []}
    (await org["ann"].post("/invites", **sent)).ok
    (letter,) = await due_emails(org)
    browser = signed_out_browser(org)
    filled = {"full_name": "Zoe Zander", "password": NEW}
    response = await browser.http.post(link_path(letter), data=filled)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    send_csrf_token(browser)
    assert (await browser.get("/users/me")).ok["full_name"] == "Zoe Zander"
    (await browser.patch("/settings", full_name="Zoe")).ok


async def test_setup_is_closed_for_an_existing_organization(shared_org: Organization) -> None:
    for method in ("GET", "POST"):
        response = await shared_org.http.request(method, "/setup?code=x")
        assert (response.status_code, response.headers["location"]) == (302, "/")


async def test_the_cookies_are_secure_on_https(config: Config) -> None:
    secure = msgspec.structs.replace(config, external_url="https://chat.test")
    async with new_organization(secure) as org:
        origin = {"Origin": "https://chat.test"}
        response = await org.http.post("/login", data=RIGHT, headers=origin)
        cookies = response.headers.get_list("set-cookie")
        assert len(cookies) == 3 + org.node.positions.is_on
        assert all("Secure" in cookie for cookie in cookies)


async def test_a_person_with_a_key_needs_no_browser(shared_org: Organization) -> None:
    ann = shared_org["ann"]
    response = await Person(shared_org.http, ann.user_id, ann.email, ann.api_key).open("/")
    assert response.status_code != 302


async def test_the_pages_are_in_the_browser_s_language(org: Organization) -> None:
    """Otherwise in the organization's language. So are common errors."""
    german = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}
    page = await org.http.get("/login", headers=german)
    assert '<html lang="de">' in page.text
    assert "Passwort vergessen?" in page_text(page)
    wrong = await org.http.post("/login", data={**RIGHT, "password": "wrong"}, headers=german)
    assert "Die E-Mail-Adresse oder das Passwort ist falsch." in page_text(wrong)
    (await org["ann"].patch("/realm", default_language="ja")).ok
    assert "パスワードをお忘れですか" in page_text(await org.http.get("/login"))
    away = await org.http.get("/nowhere", headers={"Accept": "text/html"})
    assert "見つかりません" in page_text(away)


@pytest.mark.parametrize(
    ("contact", "shown"),
    [
        ("it@example.com", '<a href="mailto:it@example.com">it@example.com</a>'),
        ("https://help.example.com/chat", '<a href="https://help.example.com/chat">'),
        ("Room 12, extension 345", "Need help? Room 12, extension 345"),
        ("javascript:alert(1)", "Need help? javascript:alert(1)"),
        ('"><script>', "Need help? &#34;&gt;&lt;script&gt;"),
    ],
)
async def test_failed_sign_ins_say_whom_to_ask(config: Config, contact: str, shown: str) -> None:
    configured = msgspec.structs.replace(config, support_contact=contact)
    async with new_organization(configured) as org:
        browser = signed_out_browser(org)
        wrong = {"username": "ann@example.com", "password": "wrong"}
        pages = [
            await browser.http.post("/login", data=wrong),
            await browser.http.get("/reset/wrong"),
            await browser.http.get("/login/link/wrong"),
        ]
        assert all(shown in page.text for page in pages), [page.text for page in pages]
        for path in ("/fetch_api_key", "/sessions"):
            answer = await browser.post(path, **wrong)
            refused = answer.refused("AUTHENTICATION_FAILED", 401)
            assert refused["msg"].endswith(f" For help, contact {contact}.")


async def test_without_a_contact_nobody_is_named(shared_org: Organization) -> None:
    browser = signed_out_browser(shared_org)
    assert "Need help?" not in (await browser.http.get("/login")).text
    answer = await browser.post("/fetch_api_key", username="ann@example.com", password="wrong")
    assert "contact" not in answer.refused("AUTHENTICATION_FAILED", 401)["msg"]
