"""Devices and push tokens of mobile apps."""

import json
from typing import Any

import pytest

from tertulia.domain.accounts import devices as devices_domain
from tests.support import Organization, Person, rows

APNS, FCM = "/users/me/apns_device_token", "/users/me/android_gcm_reg_id"
APP = {"appid": "org.example.Chat-1"}
NULLS = {
    "push_key_id": None,
    "push_token_id": None,
    "pending_push_token_id": None,
    "push_token_last_updated_timestamp": None,
    "push_registration_error_code": None,
}


def tokens(org: Organization, who: str) -> list[str]:
    return [one.token for one in org.node.state.push_tokens.of_user[org[who].user_id]]


async def devices(person: Person) -> dict[str, Any]:
    found: dict[str, Any] = (await person.register(fetch_event_types=["device"])).data["devices"]
    return found


@pytest.mark.parametrize(("path", "more"), [(APNS, APP), (FCM, {})])
async def test_a_token_is_stored_and_never_shown(
    org: Organization, path: str, more: dict[str, str]
) -> None:
    listeners = [await org[who].register() for who in ("ann", "ben")]
    (await org["ann"].post(path, token="c0ffee", **more)).ok
    (await org["ann"].post(path, token="c0ffee", **more)).ok
    assert tokens(org, "ann") == ["c0ffee"]
    for listener in listeners:
        assert await listener.events() == []
        assert "c0ffee" not in json.dumps((await listener.person.register()).data)
    (await org["ben"].delete(path, token="c0ffee")).refused()
    (await org["ann"].delete(path, token="c0ffee")).ok
    assert tokens(org, "ann") == []


@rows("token", ["apple-tokenbb", "aGVsbG8=", "aGVsbG8gd28+/w==", "C0FFEE"])
async def test_tokens_of_apple_are_hexadecimal_or_base64(
    shared_org: Organization, token: str
) -> None:
    ann = shared_org["ann"]
    (await ann.post(APNS, token=token, **APP)).ok
    assert tokens(shared_org, "ann") == [token]
    (await ann.delete(APNS, token=token)).ok
    assert tokens(shared_org, "ann") == []


@rows("method", ["POST", "DELETE"])
@rows(
    ("path", "token", "code"),
    [
        (APNS, "", "BAD_REQUEST"),
        (APNS, "a" * 4097, "BAD_REQUEST"),
        (APNS, "a" * 4098, "BAD_REQUEST"),
        (APNS, "not encoded", "BAD_REQUEST"),
        (APNS, "a=b", "BAD_REQUEST"),
        (APNS, "ab\n", "BAD_REQUEST"),
        (APNS, None, "REQUEST_VARIABLE_MISSING"),
        (APNS, "a\0b", "REQUEST_VARIABLE_INVALID"),
        (FCM, "", "BAD_REQUEST"),
        (FCM, "x" * 4097, "BAD_REQUEST"),
        (FCM, None, "REQUEST_VARIABLE_MISSING"),
    ],
)
async def test_an_invalid_token_is_refused(
    sqlite_org: Organization, method: str, path: str, token: str | None, code: str
) -> None:
    more = APP if path == APNS and method == "POST" else {}
    (await sqlite_org["ann"].request(method, path, token=token, **more)).refused(code)
    assert tokens(sqlite_org, "ann") == []


@pytest.mark.parametrize(("path", "longest"), [(APNS, "AB" * 2048), (FCM, "ü:" * 2048)])
async def test_a_token_may_be_long(org: Organization, path: str, longest: str) -> None:
    more = APP if path == APNS else {}
    (await org["ann"].post(path, token=longest, **more)).ok
    assert tokens(org, "ann") == [longest]


@rows(
    ("appid", "code"),
    [
        (None, "REQUEST_VARIABLE_MISSING"),
        ("", "BAD_REQUEST"),
        ("not an app", "BAD_REQUEST"),
        ("x" * 256, "BAD_REQUEST"),
    ],
)
async def test_the_app_id_is_required(
    sqlite_org: Organization, appid: str | None, code: str
) -> None:
    (await sqlite_org["ann"].post(APNS, token="c0ffee", appid=appid)).refused(code)


@pytest.mark.parametrize("path", [APNS, FCM])
async def test_an_unregistered_token_cannot_be_removed(org: Organization, path: str) -> None:
    other, more = (FCM, {}) if path == APNS else (APNS, APP)
    (await org["ann"].post(other, token="c0ffee", **more)).ok
    (await org["ann"].delete(path, token="c0ffee")).refused()
    assert tokens(org, "ann") == ["c0ffee"]


async def test_a_new_key_removes_tokens_registered_with_the_old_one(org: Organization) -> None:
    for who in ("ann", "ben"):
        (await org[who].post(FCM, token="one")).ok
        (await org[who].post(APNS, token="c0ffee", **APP)).ok
    (await org["ann"].post("/users/me/api_key/regenerate")).ok
    assert tokens(org, "ann") == []
    assert tokens(org, "ben") == ["one", "c0ffee"]


async def test_the_number_of_tokens_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices_domain, "MAX_DEVICES", 1)
    (await org["ann"].post(FCM, token="one")).ok
    (await org["ann"].post(FCM, token="one")).ok
    (await org["ann"].post(FCM, token="two")).refused()
    (await org["ann"].post("/register_client_device")).ok
    (await org["ann"].post("/register_client_device")).refused()


@rows(
    ("token", "code"),
    [
        ("none", "INVALID_PUSH_DEVICE_TOKEN"),
        ("of ben", "INVALID_PUSH_DEVICE_TOKEN"),
        ("mine", "PUSH_NOTIFICATIONS_DISALLOWED"),
        (None, "PUSH_NOTIFICATIONS_DISALLOWED"),
    ],
)
async def test_a_test_notification_says_that_none_are_sent(
    org: Organization, token: str | None, code: str
) -> None:
    (await org["ann"].post(FCM, token="mine")).ok
    (await org["ben"].post(FCM, token="of ben")).ok
    (await org["ann"].post("/mobile_push/test_notification", token=token)).refused(code)


async def test_register_says_that_no_push_notifications_are_sent(org: Organization) -> None:
    assert (await org["ann"].register()).data["realm_push_notifications_enabled"] is False
    settings = (await org.nobody.get("/server_settings")).ok
    assert settings["push_notifications_enabled"] is False


async def test_device_events_are_sent_to_their_account_only(org: Organization) -> None:
    ann, ben = await org["ann"].register(), await org["ben"].register()
    first = (await org["ann"].post("/register_client_device")).ok["device_id"]
    second = (await org["ann"].post("/register_client_device")).ok["device_id"]
    assert await devices(org["ann"]) == {str(first): NULLS, str(second): NULLS}
    assert await devices(org["ben"]) == {}
    (await org["ann"].post("/remove_client_device", device_id=first)).ok
    assert await devices(org["ann"]) == {str(second): NULLS}
    told = [(e["type"], e["op"], e["device_id"]) for e in await ann.events()]
    assert told == [
        ("device", "add", first),
        ("device", "add", second),
        ("device", "remove", first),
    ]
    assert await ben.events() == []
    third = (await org["ann"].post("/register_client_device")).ok["device_id"]
    assert third not in {first, second}


@pytest.mark.parametrize(
    "path",
    ["/remove_client_device", "/mobile_push/register", "/mobile_push/e2ee/test_notification"],
)
async def test_another_account_s_device_is_refused(org: Organization, path: str) -> None:
    of_ben = (await org["ben"].post("/register_client_device")).ok["device_id"]
    for device_id in (of_ben, 999_999, -1):
        (await org["ann"].post(path, device_id=device_id)).refused()
    (await org["ann"].post(path, device_id="mine")).refused("REQUEST_VARIABLE_INVALID")
    if path != "/mobile_push/e2ee/test_notification":
        (await org["ann"].post(path)).refused("REQUEST_VARIABLE_MISSING")
    assert len(await devices(org["ben"])) == 1


@pytest.mark.parametrize("path", ["/mobile_push/register", "/mobile_push/e2ee/test_notification"])
async def test_encrypted_notifications_are_refused_by_a_server_that_sends_none(
    org: Organization, path: str
) -> None:
    device_id = (await org["ann"].post("/register_client_device")).ok["device_id"]
    (await org["ann"].post(path, device_id=device_id)).refused("PUSH_SERVICE_NOT_CONFIGURED")
    assert await devices(org["ann"]) == {str(device_id): NULLS}
