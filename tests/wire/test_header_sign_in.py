"""Signing in by headers of a reverse proxy, and headers from elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import Receive, Scope, Send

from tertulia.app.composition import asgi
from tertulia.app.config import ConfigError, load
from tertulia.app.sign_in_tables import methods_from
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.wire.http.peers import PEER
from tertulia.wire.http.request_head import SESSION_COOKIE
from tests.emails import no_email_job
from tests.support import Newcomer, Organization, new_organization
from tests.wire.loopback import serving
from tests.wire.test_app_sign_in import OTP, decoded_key, mobile_result

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

METHOD = {
    "name": "company",
    "kind": "header",
    "roles": {"administrator": "chat-admins"},
    "groups": {"baristas": "staff-bar"},
}
JUNE = {
    "Remote-User": "june",
    "Remote-Email": "june@example.com",
    "Remote-Name": "June Pärk",
    "Remote-Groups": "staff-bar, everyone",
}


def settings(config: Config, **more: Any) -> Config:
    methods = methods_from([{**METHOD, **more}])
    return msgspec.structs.replace(config, sign_in=methods, proxy_trusted="127.0.0.1,10.1.0.0/16")


@pytest.fixture
async def org(config: Config) -> AsyncIterator[Organization]:
    async with new_organization(settings(config), others=(Newcomer("ben"),)) as made:
        ann = made["ann"]
        await ann.post("/user_groups/create", name="baristas", description="", members=[])
        yield made


@asynccontextmanager
async def browser(
    org: Organization, peer: Any = ("127.0.0.1", 1)
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a browser whose requests arrive from this peer; None for a Unix socket."""
    app = asgi(org.node)

    async def arriving(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {} if peer == "unknown" else {PEER: peer}
        await app(scope, receive, send)

    transport = httpx.ASGITransport(app=arriving, client=("203.0.113.7", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://chat.test") as client:
        yield client


def sent(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("::ffff:10.1.2.3", 1), None])
async def test_the_proxy_signs_people_in(org: Organization, peer: Any) -> None:
    async with browser(org, peer) as client:
        response = await client.get("/sign-in/company?next=/%23recent", headers=sent(JUNE))
        assert (response.status_code, response.headers["location"]) == (303, "/#recent")
        assert SESSION_COOKIE in client.cookies
    user = org.node.state.user_with_address("june@example.com")
    assert user is not None
    assert (user.full_name, user.role) == ("June Pärk", Role.MEMBER)
    (group,) = [one for one in org.node.state.groups if one.name == "baristas"]
    assert group.members == (user.id,)
    # Later, the ID counts, and the groups in the headers then.
    changed = {**JUNE, "Remote-Email": "other@example.com", "Remote-Groups": "chat-admins"}
    async with browser(org, peer) as client:
        assert (await client.get("/sign-in/company", headers=sent(changed))).status_code == 303
    user = org.node.state.users[user.id]
    assert (user.address, user.role) == ("june@example.com", Role.ADMINISTRATOR)
    assert org.node.state.groups[group.id].members == ()
    async with browser(org, peer) as client:
        del changed["Remote-Groups"]
        assert (await client.get("/sign-in/company", headers=sent(changed))).status_code == 303
    assert org.node.state.users[user.id].role is Role.MEMBER


async def test_the_mobile_app_gets_its_key(org: Organization) -> None:
    async with browser(org) as client:
        path = f"/sign-in/company?mobile_flow_otp={OTP}"
        result = mobile_result(
            await client.get(path, headers=sent({**JUNE, "Remote-Email": "ben@example.com"}))
        )
    assert decoded_key(result["otp_encrypted_api_key"]) == org["ben"].api_key


@pytest.mark.parametrize(
    "peer", [("203.0.113.7", 1), ("10.2.0.1", 1), ("::1", 1), ("not an address", 1), "unknown"]
)
async def test_headers_from_elsewhere_are_ignored_and_logged(
    org: Organization, peer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    forged = {**JUNE, "Remote-Email": "ann@example.com", "X-Forwarded-For": "127.0.0.1"}
    async with browser(org, peer) as client:
        response = await client.get("/sign-in/company", headers=sent(forged))
        assert response.status_code == 403
        assert SESSION_COOKIE not in client.cookies
        (line,) = [one for one in caplog.records if one.msg == "refused a sign-in"]
        assert "proxy_trusted" in line.fields["reason"]  # type: ignore[attr-defined]
        # They don't sign in anywhere else either.
        assert (await client.get("/api/v1/users/me", headers=sent(forged))).status_code == 401
    assert not org.node.state.identities


async def test_a_header_that_a_client_adds_is_not_chosen(org: Organization) -> None:
    """The proxy must replace the client's headers. If it adds its own to them, nobody is signed
    in."""
    async with browser(org) as client:
        twice = [*sent(JUNE), (b"remote-user", b"ann")]
        assert (await client.get("/sign-in/company", headers=twice)).status_code == 403
        unnamed = {name: value for name, value in JUNE.items() if name != "Remote-User"}
        response = await client.get("/sign-in/company", headers=sent(unnamed))
        assert response.status_code == 403
    assert not org.node.state.identities


@pytest.mark.parametrize(("trusted", "status"), [("127.0.0.1", 303), ("10.0.0.1", 403)])
async def test_the_peer_of_a_real_connection_counts(
    config: Config, trusted: str, status: int
) -> None:
    """The client in X-Forwarded-For doesn't count."""
    own = msgspec.structs.replace(settings(config), proxy_trusted=trusted)
    lines = "".join(f"{name}: {JUNE[name]}\r\n" for name in ("Remote-User", "Remote-Email"))
    async with new_organization(own) as org, serving(org, "below") as server:
        line = await server.connect()
        for client in ("203.0.113.7", "10.0.0.1"):
            head = "GET /sign-in/company HTTP/1.1\r\nHost: chat.test\r\n"
            head += f"X-Forwarded-For: {client}\r\n{lines}\r\n"
            assert (await line.ask(head.encode())).status == status


@pytest.mark.parametrize("trusted", ["*", "127.0.0.1,*", "0.0.0.0/0", ""])
def test_a_server_that_trusts_everyone_does_not_start(trusted: str) -> None:
    variables = {
        "TERTULIA_SIGN_IN": msgspec.json.encode([METHOD]).decode(),
        "TERTULIA_PROXY_TRUSTED": trusted,
    }
    with pytest.raises(ConfigError, match="proxy_trusted: for a sign-in method of kind header"):
        load({}, environment=variables)


def test_mistakes_are_said_with_the_key() -> None:
    with pytest.raises(ValueError, match=r"sign_in \(company\): user_header must be the name of a"):
        methods_from([{**METHOD, "user_header": "Remote User"}])
