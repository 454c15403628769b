"""Browsers, identified by a session cookie."""

import re
from html import unescape

import httpx
import msgspec

from tertulia.app.composition import asgi
from tertulia.model.changes import CredentialChanged
from tertulia.wire.http.request_head import CSRF_COOKIE, POSITION_COOKIE, SESSION_COOKIE
from tests.support import PASSWORD, Organization, Person

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def signed_out_browser(
    org: Organization, *, agent: str = FIREFOX, site: str = "http://chat.test"
) -> Person:
    """A browser without a session."""
    transport = httpx.ASGITransport(app=asgi(org.node), raise_app_exceptions=False)
    http = httpx.AsyncClient(transport=transport, base_url=site, headers={"User-Agent": agent})
    return Person(http)


async def signed_in_browser(
    org: Organization, name: str = "ann", *, agent: str = FIREFOX
) -> Person:
    """A browser with someone's session. Sets their password to `PASSWORD`."""
    browser = signed_out_browser(org, agent=agent)
    await set_password(org, name)
    sent = {"username": org[name].email, "password": PASSWORD}
    (await browser.post("/sessions", **sent)).ok
    browser.user_id = org[name].user_id
    send_csrf_token(browser)
    return browser


async def set_password(org: Organization, name: str) -> None:
    """Let someone sign in with `PASSWORD`. The founder already can."""
    credential = org.node.state.credentials[org[name].user_id]
    if not await org.node.vault.is_password(credential, PASSWORD):
        hashed = await org.node.vault.hash_password(PASSWORD)
        kept = msgspec.structs.replace(credential, password_hash=hashed)
        await org.do(CredentialChanged(credential=kept, same_key=True))


def send_csrf_token(browser: Person) -> None:
    """Let the browser send its CSRF token."""
    browser.http.headers["X-CSRF-Token"] = browser.http.cookies[CSRF_COOKIE]


def page_text(response: httpx.Response) -> str:
    """The text of a page."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.text)))


def cookies_of(browser: Person) -> set[str]:
    """The names of the browser's cookies, except for the one with the last seen log position, which
    only exists with several nodes and expires by itself."""
    return set(browser.http.cookies) - {POSITION_COOKIE}


def session_cookie(browser: Person) -> str | None:
    """The session cookie."""
    return browser.http.cookies.get(SESSION_COOKIE)
