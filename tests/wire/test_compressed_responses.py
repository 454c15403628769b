"""Large responses: compressed for clients that accept it, and joined from cached fragments."""

import gzip
import json
from typing import Any

import httpx
import pytest

from tertulia.model.changes import UserCreated
from tertulia.model.users import Credential, PersonalSettings, User
from tertulia.wire.http.responses import MIN_COMPRESSED, Fragments
from tests.support import Organization


async def answered(
    org: Organization, method: str, path: str, accepted: str, name: str = "ann", **sent: str
) -> tuple[httpx.Headers, bytes]:
    """The headers and the body as received."""
    who = org[name]
    request = org.http.build_request(
        method,
        f"/api/v1{path}",
        headers={"Accept-Encoding": accepted},
        data=sent if method == "POST" else None,
        params=None if method == "POST" else sent,
    )
    auth = httpx.BasicAuth(who.email, who.api_key)
    response = await org.http.send(request, auth=auth, stream=True)
    body = b"".join([part async for part in response.aiter_raw()])
    await response.aclose()
    assert response.status_code == 200, body
    return response.headers, body


async def many_people(org: Organization, people: int) -> None:
    for number in range(people):
        await org.add(f"p{number}")


@pytest.mark.parametrize(("method", "path"), [("POST", "/register"), ("GET", "/users")])
async def test_a_large_response_is_compressed_for_clients_that_accept_it(
    org: Organization, method: str, path: str
) -> None:
    await many_people(org, 6)
    headers, body = await answered(org, method, path, "gzip, deflate")
    assert headers["content-encoding"] == "gzip"
    assert headers["vary"] == "Accept-Encoding"
    assert int(headers["content-length"]) == len(body)
    plain_headers, plain = await answered(org, method, path, "identity")
    assert "content-encoding" not in plain_headers
    assert plain_headers["vary"] == "Accept-Encoding"
    assert len(body) < len(plain) / 2
    told, known = json.loads(gzip.decompress(body)), json.loads(plain)
    for own in ("queue_id", "last_event_id", "server_timestamp"):
        assert (own in told) is (own in known) is (path == "/register")
        told.pop(own, None), known.pop(own, None)
    assert told == known


async def test_a_small_response_is_not_compressed(readonly_org: Organization) -> None:
    ann = str(readonly_org["ann"].user_id)
    headers, body = await answered(readonly_org, "GET", "/users", "gzip", user_ids=f"[{ann}]")
    assert len(body) < MIN_COMPRESSED
    assert "content-encoding" not in headers
    assert json.loads(body)["members"][0]["full_name"] == "Ann"


@pytest.mark.parametrize(
    ("path", "sent"),
    [("/bots", {}), ("/messages", {"anchor": "newest", "num_before": "9", "num_after": "0"})],
)
async def test_responses_with_keys_or_other_people_s_text_are_not_compressed(
    org: Organization, path: str, sent: dict[str, str]
) -> None:
    """Otherwise an attacker who chooses one part could learn the other."""
    await org.channel("lounge", "ann", "ben")
    for _ in range(9):
        await org["ben"].send("lounge", "t", "once more " * 60)
    for number in range(20):
        await org["ann"].post("/bots", full_name=f"Bot {number}", short_name=f"bot{number}")
    headers, body = await answered(org, "GET", path, "gzip", **sent)
    assert len(body) > MIN_COMPRESSED
    assert "content-encoding" not in headers
    assert "vary" not in headers


async def test_ignored_parameters_are_reported_in_a_compressed_response(
    readonly_org: Organization,
) -> None:
    _, body = await answered(
        readonly_org, "POST", "/register", "gzip", colour="red", **{"x" * 300: "1"}
    )
    told = json.loads(gzip.decompress(body))
    assert sorted(told["ignored_parameters_unsupported"]) == ["colour", "x" * 300]


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("name", ["ann", "gus"])
async def test_no_field_of_a_snapshot_appears_twice(org: Organization, name: str) -> None:
    await org.channel("lounge", "ann", "gus")
    _, body = await answered(org, "POST", "/register", "identity", name)
    assert json.loads(body, object_pairs_hook=distinct)["queue_id"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of the fragments that are built."""
    keys: list[Any] = []
    get = Fragments.get

    def watched(self: Fragments, key: Any, stamp: Any, make: Any) -> Any:
        def making() -> bytes:
            keys.append(key)
            content: bytes = make()
            return content

        return get(self, key, stamp, making)

    monkeypatch.setattr(Fragments, "get", watched)
    return keys


async def test_unchanged_fragments_are_not_rebuilt(org: Organization, made: list[Any]) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    await org["ben"].register()
    assert made
    made.clear()
    await org["ben"].send("lounge", "t", "hello")
    await org["ben"].post("/users/me/presence", status="active")
    await org["ben"].register()
    # If the viewer's own records are separate, others' are in other runs; otherwise they are
    # shared.
    await org["cleo"].register()
    kinds = [key[0] for key in made]
    # The channel's first message, which Cleo hasn't read.
    assert set(kinds) <= {"channels begun", "channels", "unread"}
    assert len(kinds) == len(set(kinds))


def newcomer(user_id: int) -> UserCreated:
    user = User(id=user_id, address=f"p{user_id}@example.com", full_name=f"P {user_id}")
    credential = Credential(user_id=user_id, key_digest=str(user_id), key_sealed="")
    return UserCreated(user=user, credential=credential, settings=PersonalSettings(user_id=user_id))


async def test_a_changed_account_is_encoded_only_with_its_neighbors(
    org: Organization, made: list[Any]
) -> None:
    first = org.node.state.users.next_id()
    await org.do(*(newcomer(first + number) for number in range(600)))
    await org["ben"].register()
    await org["ben"].get("/users")
    made.clear()
    await org["ann"].patch(f"/users/{first + 300}", full_name="Somebody Else")
    data = (await org["ben"].register()).data
    members = (await org["ben"].get("/users")).ok["members"]
    for shown in (data["realm_users"], members):
        assert [u["full_name"] for u in shown if u["user_id"] == first + 300] == ["Somebody Else"]
    firsts = {key[-2] for key in made if key[-1] == 128}
    assert len(firsts) == 1, made
    assert len(made) <= 5  # Four lists of accounts, and one of statuses.
