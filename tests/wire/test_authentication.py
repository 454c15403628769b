"""Authentication, and signing in."""

import base64
from typing import Any

import msgspec
import pytest

from tertulia.model.changes import RealmChanged, UserChanged, UserCreated, UserDeactivated
from tertulia.model.users import Bot, BotKind, Credential, PersonalSettings, User
from tertulia.service.config import Config
from tertulia.wire.http.authentication import KNOWN_HEADERS, USUAL_HEADER, known_header
from tests.support import PASSWORD, Organization, Person, new_organization, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")

PAGE = {"anchor": "newest", "num_before": 1, "num_after": 0}


def _basic(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return "Basic " + base64.b64encode(raw).decode()


async def _with(org: Organization, header: str | bytes) -> Any:
    return await org.nobody.raw("GET", "/messages", params=PAGE, headers={"Authorization": header})


@rows("method", ["GET", "POST"])
async def test_missing_credentials_are_requested(sqlite_org: Organization, method: str) -> None:
    path = "/events" if method == "GET" else "/messages"
    reply = await sqlite_org.nobody.raw(method, path)
    reply.refused("UNAUTHORIZED", 401)
    assert reply.headers["www-authenticate"].startswith('Basic realm="')


@rows(
    "header",
    [
        "Basic",
        "Basic ",
        "Basic !!!",
        "Basic YW5u",
        "Basic YW5uOg",
        "Basic \u00fcber",
        _basic(""),
        _basic("no colon"),
        _basic(b"\xff\xfe:key"),
    ],
)
async def test_unreadable_credentials_count_as_missing(
    sqlite_org: Organization, header: str
) -> None:
    reply = await _with(sqlite_org, header.encode("latin-1"))
    reply.refused("UNAUTHORIZED", 401)
    assert reply.headers["www-authenticate"].startswith("Basic")


@rows("header", ["Bearer abc", "Digest x", "basic64 YTpi", "x"])
async def test_another_authentication_scheme_is_refused(
    sqlite_org: Organization, header: str
) -> None:
    (await _with(sqlite_org, header)).refused("BAD_REQUEST", 400)


async def test_the_right_key_with_its_owner_s_address_is_accepted(sqlite_org: Organization) -> None:
    ann = sqlite_org["ann"]
    for address in ("ann@example.com", "ANN@Example.COM", f"user{ann.user_id}@chat.test"):
        (await _with(sqlite_org, _basic(f"{address}:{ann.api_key}"))).ok
    for scheme in ("basic", "BASIC", "Basic  "):
        header = _basic(f"ann@example.com:{ann.api_key}").replace("Basic", scheme, 1)
        (await _with(sqlite_org, header)).ok


async def test_a_wrong_key_and_another_address_are_refused_alike(
    sqlite_org: Organization,
) -> None:
    ann, ben = sqlite_org["ann"], sqlite_org["ben"]
    pairs = [
        (ann.email, "x" * 32),
        (ann.email, ""),
        (ann.email, ann.api_key.swapcase()),
        (ann.email, ann.api_key + "x"),
        (ann.email, ann.api_key + ":"),
        (ann.email, f"{ann.api_key}\0"),
        (ann.email, "é" * 32),
        (ann.email, "x" * 5000),
        (ben.email, ann.api_key),
        (f"user{ben.user_id}@chat.test", ann.api_key),
        ("", ann.api_key),
        ("nobody@example.com", ann.api_key),
        ("ann@example.com\0", ann.api_key),
    ]
    replies = [await _with(sqlite_org, _basic(f"{email}:{key}")) for email, key in pairs]
    told = [reply.refused("INVALID_API_KEY", 401) for reply in replies]
    assert len({body["msg"] for body in told}) == 1
    assert {reply.headers["www-authenticate"] for reply in replies} == {'Basic realm="tertulia"'}


async def test_cached_authorization_headers_are_limited(sqlite_org: Organization) -> None:
    ann = sqlite_org["ann"]
    (await _with(sqlite_org, _basic(f"{ann.email}:{ann.api_key}"))).ok
    before = known_header.cache_info()
    assert before.maxsize == KNOWN_HEADERS
    (await _with(sqlite_org, _basic(f"{ann.email}:{'x' * USUAL_HEADER}"))).refused(
        "INVALID_API_KEY", 401
    )
    assert known_header.cache_info().currsize == before.currsize


async def test_a_deactivated_account_learns_so_only_with_the_right_key(org: Organization) -> None:
    ben = org["ben"]
    await org.do(UserDeactivated(user_id=ben.user_id), actor="ann")
    (await ben.get("/messages", **PAGE)).refused("USER_DEACTIVATED", 401)
    (await _with(org, _basic(f"{ben.email}:{'x' * 32}"))).refused("INVALID_API_KEY", 401)
    (await _with(org, _basic(f"cleo@example.com:{ben.api_key}"))).refused("INVALID_API_KEY", 401)


async def test_the_current_address_counts(org: Organization) -> None:
    ben = org["ben"]
    change = UserChanged(
        user_id=ben.user_id, values={"address": "benno@example.com"}, was={"address": ben.email}
    )
    await org.do(change, actor="ann")
    (await ben.get("/messages", **PAGE)).refused("INVALID_API_KEY", 401)
    renamed = Person(org.http, ben.user_id, "benno@example.com", ben.api_key)
    (await renamed.get("/messages", **PAGE)).ok


async def _webhook(org: Organization) -> Person:
    new = await org.node.vault.credential(0, None)
    user = User(
        id=org.node.state.users.next_id(),
        address="hook-bot@example.com",
        full_name="Hook",
        bot=Bot(kind=BotKind.INCOMING_WEBHOOK, owner_id=org["ben"].user_id),
    )
    own = Credential(user_id=user.id, key_digest=new.key_digest, key_sealed=new.key_sealed)
    settings = PersonalSettings(user_id=user.id)
    await org.do(UserCreated(user=user, credential=own, settings=settings))
    return org.person_of("hook", user)


async def test_a_webhook_bot_can_only_send_messages(org: Organization) -> None:
    hook = await _webhook(org)
    await org.channel("lounge", "ben")
    assert await hook.send("lounge", "builds", "done") > 0
    (await hook.get("/messages", **PAGE)).refused()
    (await hook.post("/register")).refused()
    (await hook.post("/typing", op="start", to=[org["ben"].user_id])).refused()
    # Endpoints without authentication ignore credentials.
    (await hook.get("/server_settings")).ok


async def test_signing_in_returns_the_key(sqlite_org: Organization) -> None:
    for username in ("ann@example.com", " Ann@EXAMPLE.com "):
        found = (
            await sqlite_org.nobody.post("/fetch_api_key", username=username, password=PASSWORD)
        ).ok
        assert found["api_key"] == sqlite_org["ann"].api_key
        assert found["email"] == "ann@example.com"
        assert found["user_id"] == sqlite_org["ann"].user_id


@rows(
    ("username", "password", "code", "status"),
    [
        ("ann@example.com", "wrong horse", "AUTHENTICATION_FAILED", 401),
        ("ann@example.com", "", "AUTHENTICATION_FAILED", 401),
        ("ann@example.com", PASSWORD + " ", "AUTHENTICATION_FAILED", 401),
        ("ann@example.com", "x" * 100_000, "AUTHENTICATION_FAILED", 401),
        ("ben@example.com", PASSWORD, "AUTHENTICATION_FAILED", 401),
        ("robo-bot@example.com", PASSWORD, "AUTHENTICATION_FAILED", 401),
        ("nobody@example.com", PASSWORD, "AUTHENTICATION_FAILED", 401),
        ("ann", PASSWORD, "BAD_REQUEST", 400),
        ("", PASSWORD, "BAD_REQUEST", 400),
        (None, PASSWORD, "REQUEST_VARIABLE_MISSING", 400),
        ("ann@example.com", None, "REQUEST_VARIABLE_MISSING", 400),
        ("ann\0@example.com", PASSWORD, "REQUEST_VARIABLE_INVALID", 400),
        ("ann@example.com", "\0", "REQUEST_VARIABLE_INVALID", 400),
    ],
)
async def test_a_wrong_sign_in_is_refused(
    sqlite_org: Organization, username: str | None, password: str | None, code: str, status: int
) -> None:
    reply = await sqlite_org.nobody.post("/fetch_api_key", username=username, password=password)
    body = reply.refused(code, status)
    assert "api_key" not in body


async def test_a_deactivated_person_learns_so_only_with_the_right_password(
    org: Organization,
) -> None:
    credential = await org.node.vault.credential(0, "another horse")
    user = User(id=org.node.state.users.next_id(), address="dana@example.com", full_name="Dana")
    own = msgspec.structs.replace(credential, user_id=user.id)
    await org.do(
        UserCreated(user=user, credential=own, settings=PersonalSettings(user_id=user.id)),
        UserDeactivated(user_id=user.id),
    )
    sent = {"username": "dana@example.com"}
    right = await org.nobody.post("/fetch_api_key", **sent, password="another horse")
    right.refused("USER_DEACTIVATED", 401)
    wrong = await org.nobody.post("/fetch_api_key", **sent, password="horse")
    wrong.refused("AUTHENTICATION_FAILED", 401)


async def test_an_organization_can_disable_passwords(org: Organization) -> None:
    await org.do(RealmChanged(values={"password_sign_in": False}), actor="ann")
    reply = await org.nobody.post("/fetch_api_key", username="ann@example.com", password=PASSWORD)
    reply.refused("PASSWORD_AUTH_DISABLED", 401)
    settings = (await org.nobody.get("/server_settings")).ok
    assert settings["authentication_methods"]["password"] is False
    assert settings["email_auth_enabled"] is False


async def test_development_endpoints_are_disabled(sqlite_org: Organization) -> None:
    (await sqlite_org.nobody.post("/dev_fetch_api_key", username="ann@example.com")).refused()
    (await sqlite_org.nobody.get("/dev_list_users")).refused()
    settings = (await sqlite_org.nobody.get("/server_settings")).ok
    assert settings["authentication_methods"]["dev"] is False


async def test_in_development_mode_anyone_can_be_signed_in(config: Config) -> None:
    async with new_organization(msgspec.structs.replace(config, dev=True)) as org:
        await org.add("ben")
        await org.add("robo", owner="ben")
        found = (await org.nobody.post("/dev_fetch_api_key", username="ben@example.com")).ok
        assert found["api_key"] == org["ben"].api_key
        unknown = await org.nobody.post("/dev_fetch_api_key", username="x@example.com")
        unknown.refused("AUTHENTICATION_FAILED", 401)
        people = (await org.nobody.get("/dev_list_users")).ok
        assert [one["email"] for one in people["direct_admins"]] == ["ann@example.com"]
        assert [one["email"] for one in people["direct_users"]] == ["ben@example.com"]
        await org.do(UserDeactivated(user_id=org["ben"].user_id), actor="ann")
        gone = await org.nobody.post("/dev_fetch_api_key", username="ben@example.com")
        gone.refused("USER_DEACTIVATED", 401)


async def test_server_settings_need_no_authentication(sqlite_org: Organization) -> None:
    settings = (await sqlite_org.nobody.get("/server_settings")).ok
    assert settings["realm_uri"] == settings["realm_url"] == "http://chat.test"
    assert settings["zulip_feature_level"] == settings["service_feature_level"] == 496
    # Wrong credentials don't prevent it, either.
    header = {"Authorization": "nonsense"}
    (await sqlite_org.nobody.raw("GET", "/server_settings", headers=header)).ok
