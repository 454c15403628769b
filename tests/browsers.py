"""Browsers: people who are known by a cookie."""

import httpx
import msgspec

from tertulia.app.composition import asgi
from tertulia.model.changes import CredentialChanged
from tertulia.wire.http.request_head import CSRF_COOKIE, POSITION_COOKIE, SESSION_COOKIE
from tests.support import PASSWORD, Organization, Person

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def fresh(org: Organization, *, agent: str = FIREFOX, site: str = "http://chat.test") -> Person:
    """A browser in which nobody is signed in."""
    transport = httpx.ASGITransport(app=asgi(org.node), raise_app_exceptions=False)
    http = httpx.AsyncClient(transport=transport, base_url=site, headers={"User-Agent": agent})
    return Person(http)


async def signed_in(org: Organization, name: str = "ann", *, agent: str = FIREFOX) -> Person:
    """A browser in which somebody is signed in. Their password is `PASSWORD` from now on."""
    browser = fresh(org, agent=agent)
    await give_password(org, name)
    sent = {"username": org[name].email, "password": PASSWORD}
    (await browser.post("/sessions", **sent)).ok
    browser.user_id = org[name].user_id
    ready(browser)
    return browser


async def give_password(org: Organization, name: str) -> None:
    """Have somebody sign in with `PASSWORD`; the founder does already."""
    credential = org.node.state.credentials[org[name].user_id]
    if not await org.node.vault.is_password(credential, PASSWORD):
        hashed = await org.node.vault.hash_password(PASSWORD)
        kept = msgspec.structs.replace(credential, password_hash=hashed)
        await org.do(CredentialChanged(credential=kept, same_key=True))


def ready(browser: Person) -> None:
    """Let the browser's page send the token that it was given."""
    browser.http.headers["X-CSRF-Token"] = browser.http.cookies[CSRF_COOKIE]


def cookies_of(browser: Person) -> set[str]:
    """The names of the cookies that it has, without the one that says what it has seen: that comes
    where there may be several nodes, and goes by itself."""
    return set(browser.http.cookies) - {POSITION_COOKIE}


def token_of(browser: Person) -> str | None:
    """The session's own cookie."""
    return browser.http.cookies.get(SESSION_COOKIE)
