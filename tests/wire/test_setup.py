"""First run: a server without an organization, until someone creates it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import msgspec
import pytest

from tertulia.app.bootstrap import Bootstrap
from tertulia.app.founding import Founder, found, is_founded, opened_log, opened_vault
from tertulia.service.config import Config
from tertulia.service.credentials import VaultError
from tertulia.store.store import database_at
from tertulia.wire.http import rate_limits
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import SESSION_COOKIE
from tests.browsers import FIREFOX, page_text
from tests.support import PASSWORD, row, until

pytestmark = pytest.mark.usefixtures("no_logged_errors")

FILLED = {
    "organization": "Café Central",
    "full_name": "Ann",
    "email": "ann@example.com",
    "password": PASSWORD,
}


@dataclass
class Server:
    """A server in setup mode, and browsers that use it."""

    bootstrap: Bootstrap
    on_ready: list[HttpNode] = field(default_factory=list)
    broke: list[bool] = field(default_factory=list)

    def browser(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.bootstrap, raise_app_exceptions=False)
        headers = {"User-Agent": FIREFOX}
        return httpx.AsyncClient(transport=transport, base_url="http://chat.test", headers=headers)

    async def fill(self, http: httpx.AsyncClient | None = None, **fields: str) -> httpx.Response:
        sent = {"code": self.code, **FILLED} | fields
        return await (http or self.browser()).post("/setup", data=sent)

    @property
    def code(self) -> str:
        return self.bootstrap.code


@asynccontextmanager
async def served(config: Config) -> AsyncIterator[Server]:
    """A server as `tertulia serve` creates it."""
    on_ready: list[HttpNode] = []
    server = Server(Bootstrap(on_ready.append), on_ready)
    server.bootstrap.broken = lambda: server.broke.append(True)
    async with server.bootstrap.opened(config, lambda _: None, ()):
        try:
            yield server
        finally:
            await server.bootstrap.close()


async def test_every_address_leads_to_the_setup_page_and_programs_get_an_error(
    config: Config,
) -> None:
    async with served(config) as server:
        http = server.browser()
        for path in ("/", "/login", "/join/i1-x", "/app/assets/x.js", "/nothing"):
            response = await http.get(path)
            assert (response.status_code, response.headers["location"]) == (302, "/setup"), path
        for path in ("/api/v1/server_settings", "/api/v1/messages", "/api/nothing"):
            response = await http.get(path)
            body = response.json()
            assert (response.status_code, body["code"]) == (503, "SERVER_NOT_READY")
            assert "no organization" in body["msg"]
        assert (await http.get("/health")).status_code == 200
        ready = await http.get("/ready")
        assert (ready.status_code, ready.json()) == (
            503,
            {"status": "there is no organization yet"},
        )
        assert server.on_ready == []
        assert not is_founded(config)


async def test_the_page_asks_for_what_is_needed_and_has_the_code(config: Config) -> None:
    async with served(config) as server:
        http = server.browser()
        page = await http.get(f"/setup?code={server.code}")
        assert page.status_code == 200
        assert f'value="{server.code}"' in page.text
        for name in ("code", *FILLED):
            assert f'<label for="{name}">' in page.text
            assert re.search(rf'<input id="{name}"[^>]* required', page.text)
        assert "<script" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"
        for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert (await http.get(address)).status_code == 200, address
        assert server.code not in (await http.get("/setup")).text


async def test_submitting_the_page_starts_the_organization_on_the_same_server(
    config: Config,
) -> None:
    async with served(config) as server:
        http = server.browser()
        response = await server.fill(http)
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert response.headers["cache-control"] == "no-store"
        (node,) = server.on_ready
        assert node.state.realm.name == "Café Central"
        # New users are announced in the channel of everyone.
        board = node.state.realm.signup_announcements_channel_id
        assert node.state.realm.inline_url_embed_preview
        assert node.state.channels[board].name == "general"
        assert (await http.get("/ready")).status_code == 200
        own = (await http.get("/api/v1/users/me")).json()
        assert (own["full_name"], own["role"], own["delivery_email"]) == (
            "Ann",
            100,
            "ann@example.com",
        )
        (session,) = (await http.get("/api/v1/sessions")).json()["sessions"]
        assert (session["current"], session["agent"]) == (True, FIREFOX)
        assert (await http.get("/setup")).headers["location"] == "/"
        reply = await server.browser().post(
            "/api/v1/fetch_api_key", data={"username": "ann@example.com", "password": PASSWORD}
        )
        assert reply.status_code == 200
        assert server.code == ""
    async with served(config) as server:
        assert len(server.on_ready) == 1


CODES = ["", "x", "aaaa-aaaa-aaaa", "ÄÖÜ", "\0", "x" * 5000]


async def test_without_the_code_nothing_is_created(config: Config) -> None:
    async with served(config) as server:
        for code in CODES:
            with row(code):
                page = await server.fill(code=code)
                assert page.status_code == 400
                assert "setup code that the server printed" in page_text(page)
                assert PASSWORD not in page.text
                assert 'value="Café Central"' in page.text
                assert not is_founded(config)


async def test_the_code_may_be_typed_in_any_form(config: Config) -> None:
    async with served(config) as server:
        typed = f" {server.code.replace('-', ' ').upper()} "
        assert (await server.fill(code=typed)).status_code == 303


async def test_guessing_the_code_is_blocked(config: Config) -> None:
    async with served(config) as server:
        for _ in range(rate_limits.TRIES_PER_CODE):
            assert (await server.fill(code="wrong")).status_code == 400
        assert (await server.fill()).status_code == 429
        assert not is_founded(config)


IMPOSSIBLE: list[tuple[dict[str, str], str]] = [
    ({"organization": ""}, "name"),
    ({"organization": "x" * 41}, "name"),
    ({"full_name": "A"}, "Names must have"),
    ({"full_name": "Notification Bot"}, "is reserved"),
    ({"full_name": "A\0nn"}, "can't contain"),
    ({"email": "ann"}, "address"),
    ({"password": "short"}, "Passwords must have"),
    ({"password": "x" * 101}, "Passwords must have"),
]
"""A form and the error for it."""


async def test_an_error_is_shown_and_the_other_fields_are_kept(config: Config) -> None:
    async with served(config) as server:
        for fields, said in IMPOSSIBLE:
            with row(fields):
                page = await server.fill(None, **fields)
                assert page.status_code == 400
                assert said in page_text(page)
                assert 'role="alert"' in page.text
                for name in set(FILLED) - set(fields) - {"password"}:
                    assert f'value="{FILLED[name]}"' in page.text
                assert PASSWORD not in page.text
                assert not is_founded(config)
        assert (await server.fill()).status_code == 303


async def test_a_form_on_another_site_creates_nothing(config: Config) -> None:
    async with served(config) as server:
        sent = {"code": server.code, **FILLED}
        page = await server.browser().post(
            "/setup", data=sent, headers={"Origin": "https://evil.example"}
        )
        assert page.status_code == 403
        assert not is_founded(config)


async def test_a_body_that_is_no_form_is_refused(config: Config) -> None:
    async with served(config) as server:
        headers = {"Content-Type": "application/json"}
        page = await server.browser().post("/setup", content=b"{}", headers=headers)
        assert page.status_code == 400
        assert (await server.browser().delete("/setup")).status_code == 405


async def test_of_concurrent_setups_one_wins(config: Config) -> None:
    async with served(config) as server:
        browsers = [server.browser() for _ in range(4)]
        responses = await asyncio.gather(
            *(
                server.fill(http, email=f"p{number}@example.com", full_name=f"Person {number}")
                for number, http in enumerate(browsers)
            )
        )
        assert all(response.status_code == 303 for response in responses)
        places = [response.headers["location"] for response in responses]
        assert sorted(places) == ["/", "/login", "/login", "/login"]
        first = places.index("/")
        own = (await browsers[first].get("/api/v1/users/me")).json()
        assert own["delivery_email"] == f"p{first}@example.com"
        for number, http in enumerate(browsers):
            assert (SESSION_COOKIE in http.cookies) == (number == first)
        (node,) = server.on_ready
        assert sum(not user.is_bot for user in node.state.users) == 1
        assert len(node.state.sessions) == 1


async def test_the_server_notices_an_organization_created_by_another_process(
    config: Config,
) -> None:
    async with served(config) as server:
        async with opened_log(config, lambda _: None) as log:
            vault = opened_vault(config, create=True)
            founder = Founder(
                organization="Elsewhere",
                address="zoe@example.com",
                full_name="Zoe",
                password=PASSWORD,
            )
            await found(log, vault, founder)
            vault.close()
        await until(lambda: bool(server.on_ready))
        http = server.browser()
        assert (await http.get("/ready")).status_code == 200
        assert (await http.get("/")).headers["location"] == "/login"
        settings = (await http.get("/api/v1/server_settings")).json()
        assert settings["realm_name"] == "Elsewhere"


@pytest.mark.usefixtures("several_nodes")
async def test_of_two_nodes_one_creates_the_organization_and_the_other_serves_it(
    config: Config,
) -> None:
    async with served(config) as here, served(config) as there:
        assert here.code == there.code
        responses = await asyncio.gather(here.fill(), there.fill(email="zoe@example.com"))
        assert sorted(r.headers["location"] for r in responses) == ["/", "/login"]
        await until(lambda: bool(here.on_ready and there.on_ready))
        names = {server.on_ready[0].state.realm.uuid for server in (here, there)}
        assert len(names) == 1


async def test_a_node_with_another_secret_ends_with_an_error(
    config: Config, tmp_path: Path
) -> None:
    if not config.database_url:
        pytest.skip("an SQLite file has one server")
    other = msgspec.structs.replace(config, data_dir=str(tmp_path / "other"))

    async def both() -> None:
        async with served(other) as there:
            async with served(config) as here:
                assert (await here.fill()).status_code == 303
            await until(lambda: bool(there.broke))

    with pytest.raises(VaultError, match="secret is missing"):
        await both()


async def test_the_code_stays_the_same_after_a_restart_and_is_deleted_afterwards(
    config: Config,
) -> None:
    async with served(config) as server:
        code = server.code
        assert re.fullmatch(r"[2-9a-z]{4}-[2-9a-z]{4}-[2-9a-z]{4}", code)
    async with served(config) as server:
        assert server.code == code
        assert (await server.fill()).status_code == 303
    database = database_at(config.data_path, config.database_url)
    connection = database.connect(readonly=True)
    try:
        rows = connection.query("SELECT value FROM installation")
    finally:
        connection.close()
    assert code not in {row[0] for row in rows}


async def test_an_existing_secret_is_kept(config: Config) -> None:
    opened_vault(config, create=True).close()
    before = (config.data_path / "secret").read_text()
    async with served(config) as server:
        assert (await server.fill()).status_code == 303
    assert (config.data_path / "secret").read_text() == before


async def test_code_and_password_are_not_logged(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with served(config) as server:
        code = server.code
        await server.browser().get(f"/setup?code={code}")
        await server.fill()
    told = " ".join(
        f"{r.getMessage()} {getattr(r, 'fields', '')}"
        for r in caplog.records
        if r.name.startswith("tertulia")
    )
    assert "/setup" in told
    assert code not in told
    assert PASSWORD not in told
