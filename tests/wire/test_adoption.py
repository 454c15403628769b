"""Imported accounts: their passwords and API keys of the previous server work here."""

import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.app.composition import asgi
from tertulia.model.changes import CredentialChanged
from tertulia.service.config import Config
from tertulia.wire.http import adoption, rate_limits
from tests.external_web import ExternalWeb, Page, external_web
from tests.support import Organization, Person, new_organization

BEN = "ben@example.com"
OLD_KEY = "k" * 32
OLD_PASSWORD = "the old horse"
NEVER = {"username": BEN, "password": "never theirs"}
RIGHT = {"username": BEN, "password": OLD_PASSWORD}
BY_PASSWORD = "/api/v1/fetch_api_key"
BY_KEY = "/api/v1/users/me"


@pytest.fixture
async def old() -> AsyncIterator[ExternalWeb]:
    """The previous server, which accepts everything."""
    async with external_web() as server:
        accept(server)
        yield server


@pytest.fixture
async def org(config: Config, old: ExternalWeb) -> AsyncIterator[Organization]:
    """An organization where Ben's and a bot's accounts were imported."""
    moving = msgspec.structs.replace(config, moving_from_url=f"http://127.0.0.1:{old.port}/")
    async with new_organization(moving) as organization:
        await organization.add("ben")
        await organization.add("robot", owner="ben")
        await imported(organization, "ben", "robot")
        yield organization


async def imported(org: Organization, *names: str) -> None:
    for name in names:
        credential = org.node.state.credentials[org[name].user_id]
        imported = msgspec.structs.replace(
            credential, adopts_key=True, adopts_password=name != "robot"
        )
        await org.do(CredentialChanged(credential=imported, same_key=True))


@pytest.fixture(autouse=True)
def quick_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "LEAST_SECONDS", 0.0)


def page(status: int = 200, **fields: Any) -> Page:
    body = {"result": "success" if status == 200 else "error", "msg": "", **fields}
    return Page(json.dumps(body).encode(), "application/json", status)


def accept(old: ExternalWeb, address: str = BEN) -> None:
    old.pages[BY_PASSWORD] = page(api_key=OLD_KEY, email=address, user_id=9)
    old.pages[BY_KEY] = page(email="user9@old.example", delivery_email=address, user_id=9)


def refuse(old: ExternalWeb, status: int = 401) -> None:
    old.pages[BY_PASSWORD] = old.pages[BY_KEY] = page(status, code="AUTHENTICATION_FAILED")


def of_imported(old: ExternalWeb) -> list[str]:
    """Return the paths that were requested about accounts that can exist there."""
    return [
        path
        for path, request in zip(old.asked, old.requests, strict=True)
        if b"nobody.invalid" not in request and b"nobody.invalid" not in decoded(request)
    ]


def decoded(request: bytes) -> bytes:
    """The credentials of the request's Authorization header."""
    found = re.search(rb"authorization: Basic (\S+)", request, re.IGNORECASE)
    return base64.b64decode(found[1]) if found else b""


def client(org: Organization, key: str = OLD_KEY, address: str = BEN) -> Person:
    """Return a program with the key of the previous server."""
    return Person(org.http, org["ben"].user_id, address, key)


async def test_the_password_is_checked_there_once_and_brings_the_key(
    org: Organization, old: ExternalWeb
) -> None:
    assert (await org.nobody.post("/fetch_api_key", **RIGHT)).ok["api_key"] == OLD_KEY
    assert old.asked == [BY_PASSWORD]
    refuse(old)
    assert (await org.nobody.post("/fetch_api_key", **RIGHT)).ok["api_key"] == OLD_KEY
    assert (await client(org).get("/users/me")).ok["user_id"] == org["ben"].user_id
    (await org.nobody.post("/fetch_api_key", **NEVER)).refused("AUTHENTICATION_FAILED", 401)
    assert of_imported(old) == [BY_PASSWORD]


async def test_the_key_is_checked_there_once_and_the_password_can_follow(
    org: Organization, old: ExternalWeb
) -> None:
    assert (await client(org).get("/users/me")).ok["user_id"] == org["ben"].user_id
    assert old.asked == [BY_KEY]
    assert "x-tertulia-verifying" in old.heads[-1].lower()
    # The key that the import created no longer works.
    (await org["ben"].get("/users/me")).refused("INVALID_API_KEY", 401)
    other = client(org, "o" * 32)
    (await other.get("/users/me")).refused("INVALID_API_KEY", 401)
    assert of_imported(old) == [BY_KEY]
    assert (await org.nobody.post("/fetch_api_key", **RIGHT)).ok["api_key"] == OLD_KEY
    assert of_imported(old) == [BY_KEY, BY_PASSWORD]


async def test_a_bot_keeps_its_key_and_has_no_password(org: Organization, old: ExternalWeb) -> None:
    address = org["robot"].email
    accept(old, address)
    robot = client(org, address=address)
    assert (await robot.get("/users/me")).ok["user_id"] == org["robot"].user_id
    login = {"username": address, "password": OLD_PASSWORD}
    (await org.nobody.post("/fetch_api_key", **login)).refused("AUTHENTICATION_FAILED", 401)
    assert of_imported(old) == [BY_KEY]


async def test_credentials_of_another_account_there_are_refused(
    org: Organization, old: ExternalWeb
) -> None:
    accept(old, "mallory@example.com")
    (await org.nobody.post("/fetch_api_key", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
    (await client(org).get("/users/me")).refused("INVALID_API_KEY", 401)


async def test_two_accounts_cannot_have_the_same_key(org: Organization, old: ExternalWeb) -> None:
    """The previous server might accept it for both."""
    (await client(org).get("/users/me")).ok
    robot = org["robot"]
    accept(old, robot.email)
    (await client(org, address=robot.email).get("/users/me")).refused("INVALID_API_KEY", 401)
    assert (await client(org).get("/users/me")).ok["user_id"] == org["ben"].user_id


async def test_only_imported_accounts_are_asked_for(org: Organization, old: ExternalWeb) -> None:
    """For others, the server is asked about an account that can't exist, so that they take as
    long."""
    accept(old, "ann@example.com")
    login = {"username": "ann@example.com", "password": OLD_PASSWORD}
    (await org.nobody.post("/fetch_api_key", **login)).refused("AUTHENTICATION_FAILED", 401)
    (await client(org, address="ann@example.com").get("/users/me")).refused("INVALID_API_KEY", 401)
    stranger = {"username": "no@example.com", "password": OLD_PASSWORD}
    (await org.nobody.post("/fetch_api_key", **stranger)).refused("AUTHENTICATION_FAILED", 401)
    (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    (await org.nobody.post("/fetch_api_key", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
    assert of_imported(old) == []
    assert old.asked == [BY_PASSWORD, BY_KEY, BY_PASSWORD, BY_PASSWORD]


async def test_a_key_or_password_set_here_ends_it(org: Organization, old: ExternalWeb) -> None:
    (await org["ben"].post("/users/me/api_key/regenerate")).ok
    (await client(org).get("/users/me")).refused("INVALID_API_KEY", 401)
    assert of_imported(old) == []
    hashed = await org.node.vault.hash_password("set here")
    credential = org.node.state.credentials[org["ben"].user_id]
    with_password = msgspec.structs.replace(credential, password_hash=hashed)
    await org.do(CredentialChanged(credential=with_password, same_key=True))
    (await org.nobody.post("/fetch_api_key", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
    assert of_imported(old) == []


async def test_without_the_setting_nothing_is_asked(config: Config, old: ExternalWeb) -> None:
    async with new_organization(config) as org:
        await org.add("ben")
        await imported(org, "ben")
        (await org.nobody.post("/fetch_api_key", **RIGHT)).refused("AUTHENTICATION_FAILED", 401)
        (await client(org).get("/users/me")).refused("INVALID_API_KEY", 401)
        assert old.asked == []


async def test_a_server_that_names_itself_does_not_ask_itself(
    org: Organization, old: ExternalWeb
) -> None:
    reply = await client(org).raw(
        "GET", "/users/me", headers={"X-Tertulia-Verifying": "1"}, auth=(BEN, OLD_KEY)
    )
    reply.refused("INVALID_API_KEY", 401)
    assert old.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        page(429, code="RATE_LIMIT_HIT"),
        page(500, code="INTERNAL_SERVER_ERROR"),
        Page(b"<html>Forbidden by a proxy</html>", status=403),
        Page(b'{"result": "success"}', "application/json"),
        Page(b"[" * 60_000, "application/json"),
        Page(b"\xff" * 9, "application/json"),
        Page(b"x" * 100_000, "application/json"),
        Page(status=302, headers={"Location": "http://127.0.0.1:9/"}),
        lambda writer: writer.close(),
    ],
)
async def test_while_it_fails_nobody_is_told_that_their_key_is_wrong(
    org: Organization, old: ExternalWeb, answer: Any
) -> None:
    """Clients sign out if the server says that."""
    old.pages[BY_PASSWORD] = old.pages[BY_KEY] = answer
    (await org.nobody.post("/fetch_api_key", **RIGHT)).refused("SERVER_NOT_READY", 503)
    (await client(org).get("/users/me")).refused("SERVER_NOT_READY", 503)
    # Addresses without an imported account get the same response.
    stranger = {"username": "no@example.com", "password": OLD_PASSWORD}
    (await org.nobody.post("/fetch_api_key", **stranger)).refused("SERVER_NOT_READY", 503)
    unknown = client(org, address="no@example.com")
    (await unknown.get("/users/me")).refused("SERVER_NOT_READY", 503)
    accept(old)
    assert (await client(org).get("/users/me")).ok["user_id"] == org["ben"].user_id


async def test_keys_cannot_be_guessed_through_this_server(
    org: Organization, old: ExternalWeb
) -> None:
    refuse(old)
    for number in range(rate_limits.TRIES_PER_ACCOUNT + 5):
        guess = f"{number:032}"
        (await client(org, guess).get("/users/me")).refused("INVALID_API_KEY", 401)
    assert len(old.asked) == rate_limits.TRIES_PER_ACCOUNT
    tried = 0
    for host in range(1, 20):
        transport = httpx.ASGITransport(asgi(org.node), client=(f"203.0.113.{host}", 1))
        http = httpx.AsyncClient(transport=transport, base_url="http://chat.test")
        for number in range(rate_limits.TRIES_PER_ACCOUNT):
            tried += 1
            stranger = Person(http, 0, BEN, f"{host:04}{number:028}")
            (await stranger.get("/users/me")).refused("INVALID_API_KEY", 401)
    assert tried > len(old.asked) == rate_limits.TRIES_FROM_ANYWHERE


async def test_no_secret_is_logged(
    org: Organization, old: ExternalWeb, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    (await client(org).get("/users/me")).ok
    (await org.nobody.post("/fetch_api_key", **RIGHT)).ok
    logged = [str({**record.__dict__, "text": record.getMessage()}) for record in caplog.records]
    assert any("adopted" in line for line in logged)
    assert not any(OLD_KEY in line or OLD_PASSWORD in line for line in logged)
