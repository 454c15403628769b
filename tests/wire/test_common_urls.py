"""Addresses that people, programs, and browsers commonly try."""

import io
import re
from pathlib import Path

import httpx
import msgspec
import pytest
from PIL import Image

from tertulia.markup.addresses import extra_address
from tertulia.service.config import Config
from tertulia.wire.pages import help
from tertulia.wire.pages.web_client import BuiltFiles
from tests.browsers import session_cookie, signed_out_browser
from tests.emails import due_emails, no_email_job
from tests.support import PASSWORD, Organization, new_organization

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/apps/", "/help/apps"),
        ("/desktop_home/", "/"),
        ("/integrations/", "/help/integrations"),
        ("/policies/", "/help/privacy"),
        ("/accounts/login/", "/login"),
        ("/accounts/login/?next=%2F%23inbox", "/login?next=%2F%23inbox"),
        ("/accounts/login", "/login"),
        ("/accounts/logout/", "/logout"),
        ("/register/", "/join"),
        ("/register", "/join"),
        ("/accounts/register/", "/join"),
        ("/accounts/home/", "/join"),
        ("/accounts/password/reset/", "/reset"),
        ("/reset/", "/reset"),
        ("/join/", "/join"),
        ("/api/", "/api"),
        ("/api/send-message", "/api"),
    ],
)
async def test_common_addresses_redirect_to_ours(
    sqlite_org: Organization, path: str, to: str
) -> None:
    response = await sqlite_org.http.get(path)
    assert (response.status_code, response.headers["location"]) == (302, to)
    there = await sqlite_org.http.get(to, headers=BROWSER)
    assert there.status_code in {200, 302, 303, 403}, there.text  # 403: an invitation is required.


async def test_pages_without_an_account_are_html(org: Organization) -> None:
    deactivated = await org.http.get("/accounts/deactivated/")
    assert (deactivated.status_code, deactivated.headers["location"]) == (303, "/")
    icon = await org.http.get("/static/images/favicon/favicon-pms.png")
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/png")
    await org.change_realm(deactivated=True)
    deactivated = await org.http.get("/accounts/deactivated/")
    assert deactivated.headers["content-type"].startswith("text/html")
    assert "deactivated" in deactivated.text


@pytest.mark.usefixtures(no_email_job.__name__)
async def test_people_find_their_organization_by_email(org: Organization) -> None:
    page = await org.http.get("/accounts/find/")
    assert page.status_code == 200
    texts = set()
    for address in ("ben@example.com", "nobody@example.com", org["robo"].email):
        response = await org.http.post("/accounts/find", data={"email": address})
        assert response.status_code == 200
        texts.add(response.text.replace(address, ""))
    assert len(texts) == 1
    await org.node.log.catch_up()
    (mail,) = await due_emails(org)
    assert mail.to == "ben@example.com"
    assert "http://chat.test" in mail.text
    assert (await org.http.post("/accounts/find", data={"email": "x"})).status_code == 400


async def test_developers_sign_in_as_anyone(config: Config) -> None:
    async with new_organization(msgspec.structs.replace(config, dev=True)) as org:
        for name in ("ben", "cleo"):
            await org.add(name)
        await org.add("robo", owner="ben")
        (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
        browser = signed_out_browser(org)
        for end in ("", "/"):
            page = await browser.http.get(f"/devlogin{end}?next=/%23inbox", headers=BROWSER)
            assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html")
            offered = re.findall(r'name="resident" value="([^"]+)"', page.text)
            assert offered == ["ann@example.com", "ben@example.com"]
            assert f'action="/devlogin{end}?next=' in page.text
        ben = {"resident": "ben@example.com"}
        for sender in ({"Origin": "https://evil.test"}, {"Sec-Fetch-Site": "cross-site"}):
            forged = await browser.http.post("/devlogin/", data=ben, headers=sender)
            assert forged.status_code == 403
        for other in ("cleo@example.com", org["robo"].email, "nobody@example.com", "\0", "x" * 999):
            refused = await browser.http.post("/devlogin/", data={"resident": other})
            assert (refused.status_code, refused.headers["content-type"][:9]) == (403, "text/html")
        # The usual page still asks for a password.
        assert (await browser.http.post("/login", data=ben)).status_code == 403
        assert session_cookie(browser) is None
        signed_in = await browser.http.post("/devlogin/?next=/%23inbox", data=ben)
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/#inbox")
        assert (await browser.http.get("/json/users/me")).json()["full_name"] == "Ben"
        (session,) = org.node.state.sessions
        assert (session.user_id, session.method) == (org["ben"].user_id, "development")


async def test_otherwise_there_is_no_sign_in_for_developers(org: Organization) -> None:
    for path in ("/devlogin", "/devlogin/"):
        page = await org.http.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html")
        assert "Page not found" in page.text
        sent = await org.http.post(path, data={"resident": "ann@example.com"}, headers=BROWSER)
        assert sent.status_code in {404, 405}
    assert len(org.node.state.sessions) == 0


async def test_the_desktop_app_signs_in_with_a_form(org: Organization) -> None:
    app = signed_out_browser(org).http
    page = await app.get("/login/")
    token = page.cookies["csrftoken"]
    assert f'name="csrfmiddlewaretoken" value="{token}"' in page.text
    form = {"username": "ann@example.com", "password": PASSWORD}
    wrong = await app.post("/login/", data={**form, "csrfmiddlewaretoken": "x"})
    assert wrong.status_code == 403
    signed_in = await app.post("/login/", data={**form, "csrfmiddlewaretoken": token})
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
    assert (await app.get("/json/users/me")).status_code == 200


@pytest.fixture
def no_manual(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a clone, which may or may not contain the built manual."""
    monkeypatch.setattr(help, "_MANUAL", BuiltFiles("nowhere"))


@pytest.mark.usefixtures("no_manual")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "like the subject"),
        ("/", "like the subject"),
        ("/format-your-message-using-markdown", "**bold**"),
        ("/message-formatting", "**bold**"),
        ("/keyboard-shortcuts", "Ctrl K"),
        ("/search-for-messages", "has:link"),
        ("/mobile-notifications", "Turn on notifications on this device"),
        ("/roles-and-permissions", "Guests see"),
        ("/status-and-availability", "set a status"),
        ("/add-a-bot-or-integration", "/api"),
        ("/archive-a-channel", "Archive a channel"),
        ("/something-that-nobody-wrote/of", "like the subject"),
        ("/people", "Guests see"),
        ("/apps", "install Tertulia as an app"),
        ("/privacy", "administrators"),
    ],
)
async def test_help_exists_under_any_name(sqlite_org: Organization, name: str, said: str) -> None:
    response = await sqlite_org.http.get(f"/help{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert said in response.text.replace("&#39;", "'")
    assert 'href="/help/writing"' in response.text or "**bold**" in response.text


async def test_a_package_with_the_manual_serves_it(
    sqlite_org: Organization, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contents = {
        "index.html": "<h1>Manual</h1>",
        "operating.html": "<h1>Operating</h1>" + "long " * 1000,
        "_static/site.css": "body {}",
        "_downloads/1/Caddyfile": "chat.example.com {}",
    }
    for name, content in contents.items():
        file = tmp_path / "manual" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    (tmp_path / "secret").write_text("nobody's business")
    monkeypatch.setattr(help, "_MANUAL", BuiltFiles("manual"))
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)

    first = await sqlite_org.http.get("/help")
    assert (first.status_code, first.headers["location"]) == (302, "/help/")
    for name, (address, media_type) in zip(
        contents,
        [
            ("", "text/html; charset=utf-8"),
            ("operating.html", "text/html; charset=utf-8"),
            ("_static/site.css", "text/css; charset=utf-8"),
            ("_downloads/1/Caddyfile", "text/plain; charset=utf-8"),
        ],
        strict=True,
    ):
        response = await sqlite_org.http.get(f"/help/{address}")
        assert (response.status_code, response.text) == (200, contents[name])
        assert response.headers["content-type"] == media_type
        policy = response.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        tag = response.headers["etag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await sqlite_org.http.get(f"/help/{address}", headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert (again.headers["etag"], again.headers["cache-control"]) == (tag, "no-cache")
            assert "content-encoding" not in again.headers
        # A range request gets the whole page, and the response says so.
        part = {"Range": "bytes=2-3", "If-Range": tag}
        whole = await sqlite_org.http.get(f"/help/{address}", headers=part)
        assert (whole.status_code, whole.text) == (200, contents[name])
        assert "accept-ranges" not in whole.headers
        head = await sqlite_org.http.head(f"/help/{address}")
        for same in ("etag", "content-length", "content-type", "vary", "cache-control"):
            assert head.headers[same] == response.headers[same]
    plain = await sqlite_org.http.get(
        "/help/operating.html", headers={"Accept-Encoding": "identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.text == contents["operating.html"]
    led = await sqlite_org.http.get("/help/operating")
    assert led.headers["location"] == "/help/operating.html"
    # Addresses that clients link to keep working.
    short = await sqlite_org.http.get("/help/message-formatting")
    assert "**bold**" in short.text
    assert 'href="/help/"' in short.text
    for name in ("../secret", "%2e%2e/secret", "_static"):
        assert "nobody" not in (await sqlite_org.http.get(f"/help/{name}")).text
    # Another release is installed: pages stay as they were until the server restarts.
    (tmp_path / "manual" / "index.html").write_text("<h1>New</h1>")
    before = await sqlite_org.http.get("/help/")
    assert before.text == contents["index.html"]
    monkeypatch.setattr(help, "_MANUAL", fresh := BuiltFiles("manual"))
    after = await sqlite_org.http.get("/help/", headers={"If-None-Match": before.headers["etag"]})
    assert (after.status_code, after.text) == (200, "<h1>New</h1>")
    assert "operating.html" in fresh.names
    (tmp_path / "manual" / "operating.html").unlink()
    assert "<h1>Operating" not in (await sqlite_org.http.get("/help/operating.html")).text


async def test_icons_at_common_addresses_are_bitmaps(sqlite_org: Organization) -> None:
    icon = await sqlite_org.http.get("/favicon.ico")
    assert icon.headers["content-type"] == "image/vnd.microsoft.icon"
    assert Image.open(io.BytesIO(icon.content)).size == (192, 192)
    settings = (await sqlite_org.nobody.get("/server_settings")).ok
    for path in (settings["realm_icon"], extra_address("zulip")):
        picture = await sqlite_org.http.get(path)
        assert picture.headers["content-type"] == "image/png"
        assert Image.open(io.BytesIO(picture.content)).format == "PNG"


async def test_search_engines_are_excluded(sqlite_org: Organization) -> None:
    response = await sqlite_org.http.get("/robots.txt")
    assert response.headers["content-type"].startswith("text/plain")
    assert "Disallow: /\n" in response.text


async def test_a_browser_gets_html_pages_for_errors(sqlite_org: Organization) -> None:
    async def get(path: str, **headers: str) -> httpx.Response:
        return await sqlite_org.http.get(path, headers=headers)

    page = await get("/no/such/page", **BROWSER)
    assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html")
    assert "Page not found" in page.text
    program = await get("/no/such/page", Accept="*/*")
    assert (program.status_code, program.json()["code"]) == (404, "BAD_REQUEST")
    for path in ("/api/v1/nothing", "/json/nothing"):
        interface = await get(path, **BROWSER)
        assert (interface.status_code, interface.json()["result"]) == (404, "error")
