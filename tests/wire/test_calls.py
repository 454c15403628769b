"""Calls in Zoom, in Nextcloud Talk, and on the organization's own server."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tertulia.service.config import Config
from tests.browsers import page_text, signed_in_browser, signed_out_browser
from tests.external_web import ExternalWeb, Page, external_web
from tests.support import Organization, TestClock, new_organization, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")

ROOMS = "/ocs/v2.php/apps/spreed/api/v4/room"
MEETINGS = "/v2/users/me/meetings"
CREATE = "/calls/zoom/create"


def answer(body: Any, status: int = 200) -> Page:
    return Page(json.dumps(body).encode(), "application/json", status)


@pytest.fixture
async def service() -> AsyncIterator[ExternalWeb]:
    async with external_web() as server:
        yield server


@asynccontextmanager
async def organization(
    config: Config, clock: TestClock | None = None, **settings: Any
) -> AsyncIterator[Organization]:
    changed = msgspec.structs.replace(config, **settings)
    async with new_organization(changed, clock=clock or TestClock()) as org:
        await org.add("ben")
        yield org


def sent(service: ExternalWeb) -> tuple[str, str]:
    """Return the head and the body of the last request."""
    head, _, body = service.requests[-1].decode().partition("\r\n\r\n")
    return head, body


# Nextcloud


async def test_a_nextcloud_call_is_a_new_public_room(config: Config, service: ExternalWeb) -> None:
    site = f"http://127.0.0.1:{service.port}"
    settings: dict[str, Any] = {"nextcloud_url": f"{site}/", "nextcloud_user": "caller"}
    async with organization(config, **settings, nextcloud_password="hush") as org:
        ben, path = org["ben"], "/calls/nextcloud_talk/create"
        (await org["ann"].patch("/realm", video_chat_provider=7)).ok
        offered = (await ben.register()).data["realm_available_video_chat_providers"]
        assert offered["nextcloud_talk"] == {"id": 7, "name": "Nextcloud Talk"}
        service.pages[ROOMS] = answer({"ocs": {"data": {"token": "tea4two"}}}, 201)
        made = (await ben.post(path, room_name="Tea & cake")).ok
        assert made["url"] == f"{site}/index.php/call/tea4two"
        head, body = sent(service)
        assert json.loads(body) == {"roomType": 3, "roomName": "Tea & cake"}
        login = base64.b64encode(b"caller:hush").decode()
        assert f"authorization: basic {login}".lower() in head.lower()
        assert "ocs-apirequest: true" in head.lower()
        for wrong in (
            answer({"ocs": {"data": {"token": "../../evil"}}}),
            answer({"ocs": []}),
            Page(b"\xff\xfe garbage"),
            Page(b"x" * 200_000),
            answer({}, 401),
            Page(status=302, headers={"Location": "https://evil.example/"}),
        ):
            service.pages[ROOMS] = wrong
            refused = (await ben.post(path, room_name="Tea")).refused()
            assert "hush" not in refused["msg"]


@rows("path", ["/calls/nextcloud_talk/create", CREATE, "/calls/hosted/create"])
async def test_providers_that_are_not_set_up_create_no_calls(
    shared_org: Organization, path: str
) -> None:
    (await shared_org["ann"].post(path, room_name="x")).refused()
    for number in (3, 5, 7, 100):
        (await shared_org["ann"].patch("/realm", video_chat_provider=number)).refused()


# On the organization's own server


def claims_of(token: str, secret: str) -> dict[str, Any]:
    said, _, proof = token.rpartition(".")
    expected = hmac.digest(secret.encode(), said.encode(), hashlib.sha256)
    assert proof == base64.urlsafe_b64encode(expected).rstrip(b"=").decode()
    payload = said.partition(".")[2]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return claims


@pytest.mark.parametrize("kind", ["jitsi", "livekit"])
async def test_each_person_gets_a_token_for_a_call_on_an_own_server(
    config: Config, kind: str
) -> None:
    settings: dict[str, Any] = {
        "calls_url": "https://meet.test/{room}?jwt={token}&who={name}#muted={muted}",
        "calls_token": kind,
        "calls_key": "app",
        "calls_secret": "hush",
    }
    clock = TestClock(stopped_at=1_790_000_000.0)
    async with organization(config, clock, **settings) as org:
        (await org["ann"].patch("/realm", video_chat_provider=100)).ok
        (await org["ben"].patch("/settings", full_name="Ben & {token}")).ok
        url = (await org["ben"].post("/calls/hosted/create", voice_only=True)).ok["url"]
        link = url.removeprefix("http://chat.test")
        stranger = await org.http.get(link)
        assert stranger.headers["location"].startswith("/login?next=")
        rooms = set()
        for name, moderates in (("ben", True), ("ann", False)):
            browser = (await signed_in_browser(org, name)).http
            address = urlsplit((await browser.get(link)).headers["location"])
            assert (address.netloc, address.fragment) == ("meet.test", "muted=true")
            query = parse_qs(address.query)
            claims = claims_of(query["jwt"][0], "hush")
            assert (claims["iss"], claims["exp"]) == ("app", 1_790_000_000 + 4 * 3600)
            rooms.add(address.path.strip("/"))
            full_name = org.node.state.users[org[name].user_id].full_name
            assert query["who"] == [full_name]
            if kind == "jitsi":
                person = claims["context"]["user"]
                assert (person["name"], person["moderator"]) == (full_name, moderates)
                assert (claims["aud"], claims["room"]) == ("jitsi", address.path.strip("/"))
            else:
                assert claims["video"]["room"] == address.path.strip("/")
                assert (claims["name"], claims["video"]["roomAdmin"]) == (full_name, moderates)
            assert (await browser.get(f"{link}x")).status_code == 404
        assert len(rooms) == 1
        clock.ahead += 31 * 86400
        assert (await (await signed_in_browser(org)).http.get(link)).status_code == 404


# Zoom


@pytest.fixture
async def zoom(config: Config, service: ExternalWeb) -> AsyncIterator[Organization]:
    site = f"http://127.0.0.1:{service.port}"
    settings: dict[str, Any] = {
        "external_url": "http://chat.test",
        "zoom_client_id": "app",
        "zoom_client_secret": "hush",
        "zoom_url": site,
        "zoom_api_url": site,
    }
    async with organization(config, **settings) as org:
        yield org


def tokens(number: int, seconds: int = 3600) -> Page:
    found = {"access_token": f"access{number}", "refresh_token": f"refresh{number}"}
    return answer({**found, "expires_in": seconds})


async def test_people_connect_their_account_at_zoom_and_create_meetings(
    zoom: Organization, service: ExternalWeb
) -> None:
    org, ben = zoom, zoom["ben"]
    (await org["ann"].patch("/realm", video_chat_provider=3)).ok
    queue = await ben.register(event_types=["has_zoom_token"], fetch_event_types=["video_calls"])
    assert queue.data["has_zoom_token"] is False
    (await ben.post(CREATE)).refused("INVALID_ZOOM_TOKEN")
    browser = (await signed_in_browser(org, "ben")).http
    away = urlsplit((await browser.get("/calls/zoom/register")).headers["location"])
    asked = parse_qs(away.query)
    assert (away.path, asked["client_id"]) == ("/oauth/authorize", ["app"])
    assert asked["redirect_uri"] == ["http://chat.test/calls/zoom/complete"]
    service.pages["/oauth/token"] = tokens(1)
    answered = {"code": "c0de", "state": asked["state"][0]}
    page = await browser.get("/calls/zoom/complete", params=answered)
    assert "is connected" in page_text(page)
    head, body = sent(service)
    assert "authorization: basic" in head.lower()
    assert parse_qs(body)["code"] == ["c0de"]
    assert [event["value"] for event in await queue.events()] == [True]
    assert (await ben.register(fetch_event_types=["video_calls"])).data["has_zoom_token"] is True
    account = org.node.state.call_accounts[ben.user_id]
    assert "access1" not in account.sealed
    # The response works only once.
    assert (await browser.get("/calls/zoom/complete", params=answered)).status_code == 400

    service.pages[MEETINGS] = answer({"join_url": "https://zoom.test/j/1?pwd=x"}, 201)
    made = (await ben.post(CREATE, is_video_call=False)).ok
    assert made["url"] == "https://zoom.test/j/1?pwd=x"
    head, body = sent(service)
    assert "authorization: bearer access1" in head.lower()
    assert json.loads(body)["settings"] == {"host_video": False, "participant_video": False}
    # When Zoom no longer accepts the account, it must be connected again.
    service.pages[MEETINGS] = answer({"code": 124}, 401)
    (await ben.post(CREATE)).refused("INVALID_ZOOM_TOKEN")
    assert [event["value"] for event in await queue.events()] == [False]
    assert ben.user_id not in org.node.state.call_accounts


async def test_tokens_are_renewed_before_they_expire(
    zoom: Organization, service: ExternalWeb
) -> None:
    ben = zoom["ben"]
    queue = await ben.register(event_types=["has_zoom_token"])
    browser = (await signed_in_browser(zoom, "ben")).http
    away = urlsplit((await browser.get("/calls/zoom/register")).headers["location"])
    service.pages["/oauth/token"] = tokens(1, seconds=60)
    state = parse_qs(away.query)["state"][0]
    await browser.get("/calls/zoom/complete", params={"code": "c", "state": state})
    service.pages["/oauth/token"] = tokens(2)
    service.pages[MEETINGS] = answer({"join_url": "https://zoom.test/j/1"}, 201)
    for _ in range(2):
        (await ben.post(CREATE)).ok
    refreshed = [one for one in service.requests if b"grant_type=refresh_token" in one]
    assert len(refreshed) == 1
    assert b"refresh_token=refresh1" in refreshed[0]
    assert b"Bearer access2" in service.requests[-1]
    assert len(await queue.events()) == 1
    for wrong in (
        answer({"join_url": "javascript:alert(1)"}),
        answer({"join_url": "https://zoom.test/ ](https://evil.test"}),
        Page(b"[" * 100_000),
    ):
        service.pages[MEETINGS] = wrong
        (await ben.post(CREATE)).refused()
    # Tokens of an erased account are deleted.
    (await zoom["ann"].delete(f"/users/{ben.user_id}", actions={"delete_profile": True})).ok


async def test_another_browser_s_answer_connects_nothing(
    zoom: Organization, service: ExternalWeb
) -> None:
    attacker = (await signed_in_browser(zoom, "ann")).http
    victim = (await signed_in_browser(zoom, "ben")).http
    service.pages["/oauth/token"] = tokens(1)
    away = urlsplit((await attacker.get("/calls/zoom/register")).headers["location"])
    answered = {"code": "c", "state": parse_qs(away.query)["state"][0]}
    await victim.get("/calls/zoom/register")
    for browser in (victim, signed_out_browser(zoom).http):
        page = await browser.get("/calls/zoom/complete", params=answered)
        assert page.status_code in {302, 400}
    refused = {"error": "access_denied", "state": answered["state"]}
    assert (await attacker.get("/calls/zoom/complete", params=refused)).status_code == 403
    assert not len(zoom.node.state.call_accounts)


async def test_one_account_at_zoom_can_be_used_for_all(
    config: Config, service: ExternalWeb
) -> None:
    site = f"http://127.0.0.1:{service.port}"
    settings: dict[str, Any] = {
        "zoom_client_id": "app",
        "zoom_client_secret": "hush",
        "zoom_account_id": "all",
        "zoom_url": site,
        "zoom_api_url": site,
    }
    async with organization(config, **settings) as org:
        (await org["ann"].patch("/realm", video_chat_provider=3)).refused()
        (await org["ann"].patch("/realm", video_chat_provider=5)).ok
        service.pages["/oauth/token"] = answer({"access_token": "a", "expires_in": 3600})
        path = "/v2/users/ben@example.com/meetings"
        service.pages[path] = answer({"join_url": "https://zoom.test/j/2"}, 201)
        assert (await org["ben"].post(CREATE)).ok["url"] == "https://zoom.test/j/2"
        service.pages[path] = answer({"code": 1001}, 404)
        refused = (await org["ben"].post(CREATE)).refused()
        assert "email address" in refused["msg"]
        service.pages["/oauth/token"] = answer({"reason": "wrong"}, 400)
        assert "operator" in (await org["ben"].post(CREATE)).refused()["msg"]
