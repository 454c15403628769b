"""Video calls on a BigBlueButton server, and sign-in by JSON web token."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tertulia.service import credentials
from tertulia.service.config import Config
from tertulia.service.credentials import BadToken
from tests.browsers import signed_in_browser
from tests.external_web import ExternalWeb, Page, external_web
from tests.support import Organization, TestClock, new_organization, rows

SECRET = "a secret of thirty-two characters"


@pytest.fixture
async def calls() -> AsyncIterator[ExternalWeb]:
    async with external_web() as server:
        yield server


@pytest.fixture
async def org(config: Config, calls: ExternalWeb) -> AsyncIterator[Organization]:
    more = {
        "bigbluebutton_url": f"http://127.0.0.1:{calls.port}/bigbluebutton/",
        "bigbluebutton_secret": "hush",
        "jwt_secret": SECRET,
    }
    async with new_organization(msgspec.structs.replace(config, **more)) as organization:
        await organization.add("ben")
        yield organization


def is_signed(url: str, call: str) -> bool:
    query, _, checksum = urlsplit(url).query.rpartition("&checksum=")
    return hashlib.sha256(f"{call}{query}hush".encode()).hexdigest() == checksum


async def test_a_call_can_be_joined_by_members_of_the_organization(
    org: Organization, calls: ExternalWeb
) -> None:
    assert (await org["ann"].patch("/realm", video_chat_provider=4)).ok
    offered = (await org["ann"].register()).data["realm_available_video_chat_providers"]
    assert offered["big_blue_button"] == {"id": 4, "name": "BigBlueButton"}
    path = "/calls/bigbluebutton/create"
    url = (await org["ben"].get(path, meeting_name="Tea & cake", voice_only=True)).ok["url"]
    other = (await org["ben"].get(path, meeting_name="Tea & cake")).ok["url"]
    assert url != other
    link = url.removeprefix("http://chat.test")
    stranger = await org.http.get(link)
    assert (stranger.status_code, stranger.headers["location"][:12]) == (302, "/login?next=")
    for name, role in (("ben", "MODERATOR"), ("ann", "VIEWER")):
        browser = await signed_in_browser(org, name)
        away = await browser.http.get(link)  # The call server's error isn't useful.
        assert away.status_code == 502
        created = calls.asked[-1]
        assert is_signed(created, "create")
        asked = parse_qs(urlsplit(created).query)
        assert (asked["name"], asked["lockSettingsDisableCam"]) == (["Tea & cake"], ["true"])
        calls.pages[created] = Page(b"<response><returncode>SUCCESS</returncode></response>")
        joined = await browser.http.get(link)
        assert joined.status_code == 302
        address = joined.headers["location"]
        assert address.startswith(f"http://127.0.0.1:{calls.port}/bigbluebutton/api/join?")
        assert is_signed(address, "join")
        found = parse_qs(urlsplit(address).query)
        assert found["meetingID"] == asked["meetingID"]
        assert (found["role"], found["fullName"]) == ([role], [name.title()])
        del calls.pages[created]
        assert (await browser.http.get(f"{link}x")).status_code == 404


async def test_joining_a_call_counts_as_a_request(config: Config, calls: ExternalWeb) -> None:
    """Each sends a request to the call server."""
    more = {
        "bigbluebutton_url": f"http://127.0.0.1:{calls.port}/",
        "bigbluebutton_secret": "hush",
        "rate_limits": True,
        "requests_per_minute": 10,
    }
    clock = TestClock(stopped_at=1_900_000_000.0)
    async with new_organization(msgspec.structs.replace(config, **more), clock=clock) as org:
        path = "/calls/bigbluebutton/create"
        link = (await org["ann"].get(path, meeting_name="Tea")).ok["url"]
        browser = await signed_in_browser(org, "ann")
        found = [
            (await browser.http.get(link.removeprefix("http://chat.test"))).status_code
            for _ in range(12)
        ]
        assert (found[0], found[-1]) == (502, 429)


async def test_without_configuration_there_are_no_calls_and_no_tokens(config: Config) -> None:
    async with new_organization(config) as plain:
        (await plain["ann"].get("/calls/bigbluebutton/create", meeting_name="Tea")).refused()
        (await plain["ann"].patch("/realm", video_chat_provider=4)).refused()
        (await plain.nobody.post("/jwt/fetch_api_key", token="a.b.c")).refused()
        offered = (await plain["ann"].register()).data["realm_available_video_chat_providers"]
        assert set(offered) == {"disabled", "jitsi_meet"}


# Tokens


BROKEN = b'{"alg": "\xff"}'
"""JSON except for its encoding."""


def token(
    claims: Any, secret: str = SECRET, algorithm: str = "HS256", digest: str = "sha256"
) -> str:
    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    header = {"typ": "JWT", "alg": algorithm}
    said = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
    return f"{said}.{part(hmac.digest(secret.encode(), said.encode(), digest))}"


@rows(("algorithm", "digest"), [("HS256", "sha256"), ("HS512", "sha512")])
async def test_a_token_signs_its_person_in(org: Organization, algorithm: str, digest: str) -> None:
    ben, now = org["ben"], org.node.clock()
    claims = {"email": ben.email.upper(), "exp": now + 60, "nbf": now - 60}
    sent = token(claims, algorithm=algorithm, digest=digest)
    found = (await org.nobody.post("/jwt/fetch_api_key", token=sent)).ok
    assert (found["api_key"], found["email"]) == (ben.api_key, ben.email)
    assert "user" not in found
    more = {"token": sent, "include_profile": True}
    found = (await org.nobody.post("/jwt/fetch_api_key", **more)).ok
    assert (found["user"]["user_id"], found["user"]["full_name"]) == (ben.user_id, "Ben")


TIMES: list[tuple[dict[str, Any], str]] = [
    ({}, "needs an expiration time"),
    ({"exp": None}, "time claims"),
    ({"exp": True}, "time claims"),
    ({"exp": "1000"}, "time claims"),
    ({"exp": -1}, "time claims"),
    ({"exp": 969}, "has expired"),
    ({"exp": 971}, ""),
    ({"exp": 1000 + 86_400 + 29}, ""),
    ({"exp": 1000 + 86_400 + 31}, "within 24 hours"),
    ({"exp": 1e300}, "within 24 hours"),
    ({"exp": 1060, "nbf": 1029}, ""),
    ({"exp": 1060, "nbf": 1031}, "isn't valid yet"),
    ({"exp": 1060, "iat": 1029}, ""),
    ({"exp": 1060, "iat": 1031}, "isn't valid yet"),
    ({"exp": 1060, "iat": "now"}, "time claims"),
]
"""Claims at 1000 seconds, and what's wrong with them."""


@rows(("times", "said"), TIMES)
def test_a_token_expires(times: dict[str, Any], said: str) -> None:
    sent = token({"email": "ben@example.com"} | times)
    if not said:
        assert credentials.claims_of(sent, SECRET, 1000)["email"] == "ben@example.com"
        return
    with pytest.raises(BadToken, match=said):
        credentials.claims_of(sent, SECRET, 1000)


async def test_an_invalid_token_signs_nobody_in(org: Organization) -> None:
    now, email = org.node.clock(), org["ben"].email
    soon = {"exp": now + 60}
    good = {"email": email} | soon
    for wrong in (
        "",
        "a.b.c",
        "é.é.é",
        *(f"{base64.urlsafe_b64encode(head).decode()}.e30.e30" for head in (b"[" * 6000, b"\xff")),
        "x" * 20_000,
        f"{base64.b64encode(b'[' * 7000).decode()}.b.c",
        f"{base64.b64encode(BROKEN).decode()}.b.c",
        token(good, secret="another secret"),
        token(good, algorithm="none"),
        token(good, algorithm="HS512"),
        token(good).rpartition(".")[0] + ".",
        token({"email": email, "exp": now - 120}),
        token({"email": email, "exp": "later"}),
        token(good | {"nbf": now + 120}),
        token([email]),
        token({"email": email}),
        token({"email": "no address"} | soon),
    ):
        (await org.nobody.post("/jwt/fetch_api_key", token=wrong)).refused()
    for claims in ({}, {"email": 5}, {"email": "nobody@example.com"}):
        reply = await org.nobody.post("/jwt/fetch_api_key", token=token(claims | soon))
        reply.refused("AUTHENTICATION_FAILED", 401)
    assert (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    reply = await org.nobody.post("/jwt/fetch_api_key", token=token(good))
    reply.refused("USER_DEACTIVATED", 401)
