"""What the tests do in less time than a program would: as the program does it."""

import contextlib
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

from tertulia.cli import application
from tertulia.service.vault import Vault, VaultError
from tertulia.store.database import ConnectionLost, Row
from tertulia.store.postgres import PostgresDatabase
from tertulia.store.postgres_connection import PostgresConnection
from tests import postgres, shortcuts
from tests.calling import called
from tests.cli.support import run

pytestmark = pytest.mark.usefixtures("anyio_backend")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("values", [{}, {"a": "b c", "list": '["é", 1]', "empty": ""}])
async def test_an_application_is_asked_what_a_client_would_ask(
    method: str, values: dict[str, str]
) -> None:
    heard = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        request = httpx.QueryParams(scope.pop("query_string")), httpx.QueryParams(body)
        length = len(body)
        scope["headers"] = sorted(
            (name, value if name != b"content-length" else int(value) == length)
            for name, value in scope["headers"]
        )
        heard.append((scope, request))
        cookies = [b"a=b; Max-Age=60; Path=/; HttpOnly; SameSite=Lax", b'c="d e"; Path=/']
        headers = [*((b"set-cookie", c) for c in cookies), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b"said"})

    auth = ("ann@example.com", "key")
    answers: list[Any] = []
    async with client(app) as http:
        for _ in range(2):
            answers.append(await called(http, method, "/a/b", values, auth))
            assert http.cookies["a"] == "b"
        for other in ({"path": "/a"}, {"domain": ".test"}, {"domain": "elsewhere.test"}):
            http.cookies.set("of its own", "e", **other)
            assert await called(http, method, "/a/b", values, auth) is None, other
            http.cookies.delete("of its own")
    async with client(app) as http:
        assert await called(http, method, "/a b", values, auth) is None
        sent: dict[str, Any] = {"params" if method in {"GET", "HEAD"} else "data": values}
        answers += [await http.request(method, "/a/b", auth=auth, **sent) for _ in range(2)]
    assert any(name == b"cookie" for name, _ in heard[1][0]["headers"])
    assert heard[:2] == heard[2:]
    said = [(a.status_code, a.headers, a.content) for a in answers]
    assert said[:2] == said[2:]


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://chat.test")


def test_a_connection_that_is_taken_over_is_as_a_new_one(postgres_url: str) -> None:
    with postgres.schema(postgres_url) as one, postgres.schema(postgres_url) as other:
        with contextlib.closing(connection_to(other)) as connection:
            new = said_of(connection)
        for url in (one, other):
            postgres.share_connections(url)
        connection = connection_to(one)
        process = connection.process
        connection.run("CREATE TABLE mine (n INT)")
        connection.run("LISTEN there")
        connection.run("SET statement_timeout = 1234")
        connection.query("SELECT pg_advisory_lock(7)")
        connection.close()
        with pytest.raises(ConnectionLost, match="closed"):
            connection.query("SELECT 1")
        connection = connection_to(other)
        assert (connection.process, said_of(connection)) == (process, new)
        # What ends a transaction for reading may not have been heard yet.
        connection.begin_read(60)
        connection.query("SELECT 1")
        connection.commit()
        connection.close()
        connection = connection_to(other)
        assert (connection.process, said_of(connection)) == (process, new)
        # One that is in the middle of something is not.
        connection.run("BEGIN")
        connection.close()
        connection = connection_to(other)
        assert connection.process != process
        assert said_of(connection) == new
        # Nor is one that the server ends meanwhile.
        process = connection.process
        connection.driver.pgconn.send_query(b"SELECT pg_sleep(60)")
        with contextlib.closing(connection_to(one)) as killing:
            killing.query("SELECT pg_terminate_backend(?, 10000)", (process,))
        connection.close()
        with contextlib.closing(connection_to(other)) as connection:
            assert connection.process != process


def test_what_was_opened_before_is_opened_with_its_own_secret_alone() -> None:
    vault, other = Vault("one"), Vault("other")
    sealed, theirs = vault.sealed("text"), other.sealed("text")
    for _ in range(2):
        assert vault.unsealed(sealed) == other.unsealed(theirs) == "text"
        for opening, strange in ((vault, theirs), (other, sealed)):
            with pytest.raises(VaultError):
                opening.unsealed(strange)
    for one in (vault, other):
        one.close()


@pytest.mark.parametrize(
    "line", ["--version", "users change --help", "users change 4 --role king", "no-such-command"]
)
def test_commands_that_were_put_together_once_say_what_new_ones_say(line: str) -> None:
    words = line.split()
    new = CliRunner().invoke(application(), words)
    for _ in range(2):
        again = run(*words)
        assert (again.exit_code, again.output) == (new.exit_code, new.output)


def said_of(connection: PostgresConnection) -> list[Row]:
    return connection.query(
        "SELECT current_schema(), to_regclass('mine'), current_setting('statement_timeout'),"
        " current_setting('application_name'),"
        " (SELECT COUNT(*) FROM pg_listening_channels()),"
        " (SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
    )


def connection_to(url: str) -> PostgresConnection:
    connection = PostgresDatabase(url).connect(readonly=False)
    assert isinstance(connection, PostgresConnection)
    return connection


def test_the_same_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = httpx.create_ssl_context()
    assert httpx.create_ssl_context() is usual
    made = shortcuts._create_any_ssl_context()
    for each in ("verify_mode", "check_hostname", "minimum_version", "options"):
        assert getattr(usual, each) == getattr(made, each)
    assert usual.cert_store_stats() == made.cert_store_stats() != {}
    assert httpx.create_ssl_context(verify=False) is not usual
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", certifi.where())
        assert httpx.create_ssl_context() is not usual
    # Others in another file, for a test alone.
    copy = tmp_path / "trusted.pem"
    copy.write_bytes(Path(certifi.where()).read_bytes())
    monkeypatch.setattr("certifi.where", lambda: str(copy))
    assert httpx.create_ssl_context() is not usual
