"""TLS without a proxy: handshakes are limited, and everything works over TLS."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tertulia.app.config import ConfigError, load
from tertulia.app.serving.http_server import Certificates
from tertulia.wire.protocol.connections import ConnectionLimits
from tests.support import Organization, until
from tests.tls import name_in, sealed_key, unverified, write_certificate
from tests.wire.loopback import SERVER_SETTINGS, Loopback, poll, request
from tests.wire.test_connections import HEALTH

REGISTER = "/register?event_types=%5B%22message%22%5D"
QUICK = ConnectionLimits(most=1000, head_seconds=0.3, answer_seconds=0.3, sweep_seconds=0.02)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    files = write_certificate(tmp_path_factory.mktemp("tls"))
    return Certificates(*map(str, files))


@pytest.fixture
def knocks() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def knock(server: Loopback, knocks: ExitStack, *, source: str = "127.0.0.1") -> socket.socket:
    """A connection that sends nothing."""
    plug = knocks.enter_context(socket.socket())
    plug.bind((source, 0))
    plug.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plug, server.address)
    return plug


async def ended(plug: socket.socket) -> bool:
    """Wait for the server to close the connection, and return whether it did."""
    async with asyncio.timeout(60):
        try:
            return await asyncio.get_running_loop().sock_recv(plug, 1) == b""
        except ConnectionResetError:
            return True


@pytest.mark.usefixtures("no_logged_errors")
async def test_polls_pipelining_and_uploads_work_over_tls(
    sqlite_org: Organization, certificates: Certificates
) -> None:
    ann = sqlite_org.people["ann"]
    for way in ("below", "endpoint"):
        async with Loopback(sqlite_org, way, certificates=certificates).open() as server:
            line = await server.connect()
            two = SERVER_SETTINGS * 2
            line.write(two)
            assert [(await line.read()).status for _ in range(2)] == [200, 200]
            queue = (await line.ask(request(REGISTER, ann, method="POST"))).told
            line.write(poll(queue["queue_id"], queue["last_event_id"], ann))
            other = await server.connect()
            body = b"x" * 3_000_000
            form = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
            sent = form + body + b"\r\n--b--\r\n"
            head = (
                "Content-Type: multipart/form-data; boundary=b",
                f"Content-Length: {len(sent)}",
            )
            kept = request("/user_uploads", ann, *head, method="POST")
            url = (await other.ask(kept + sent)).told["url"]
            assert url.startswith("/user_uploads/")
            await ann.write([ann.user_id], "heard")
            (event, *_) = (await line.read()).events
            assert event["type"] == "message"
            await line.close()
            await until(lambda: server.connections.open == 1)


@pytest.mark.usefixtures("no_logged_errors")
async def test_a_handshake_has_a_timeout(
    sqlite_org: Organization, certificates: Certificates, knocks: ExitStack
) -> None:
    server = Loopback(sqlite_org, "below", limits=QUICK, certificates=certificates)
    async with server.open():
        silent = await knock(server, knocks)
        slow = await knock(server, knocks)
        await asyncio.get_running_loop().sock_sendall(slow, b"\x16\x03\x01\x02\x00\x01")
        plain = await knock(server, knocks)
        await asyncio.get_running_loop().sock_sendall(plain, HEALTH)
        for one in (silent, slow, plain):
            while not await ended(one):
                pass
        await until(lambda: server.connections.open == server.connections.watched == 0)
        # After a handshake, a silent client has the same time again.
        line = await server.connect()
        assert await line.ended() == b""
        assert (await (await server.connect()).ask(HEALTH)).status == 200


@pytest.mark.usefixtures("no_logged_errors")
async def test_handshakes_count_towards_an_address_s_connections(
    sqlite_org: Organization,
    certificates: Certificates,
    knocks: ExitStack,
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ConnectionLimits(most=1000, of_one_address=3)
    server = Loopback(sqlite_org, "below", limits=limits, certificates=certificates)
    # The machine's own addresses have no limit.
    server.connections._is_trusted = lambda host: host != "127.0.0.9"
    with caplog.at_level(logging.WARNING):
        async with server.open():
            for _ in range(3):
                await knock(server, knocks, source="127.0.0.9")
            await until(lambda: server.connections.open == 3)
            assert await ended(await knock(server, knocks, source="127.0.0.9"))
            assert (await (await server.connect()).ask(HEALTH)).status == 200
            assert server.connections.open == 4
    assert "too many connections from one address" in caplog.text
    assert server.connections.open == 0
    assert not server.connections._of


@pytest.mark.usefixtures("no_logged_errors")
async def test_silent_handshakes_are_closed_to_make_room(
    sqlite_org: Organization,
    certificates: Certificates,
    knocks: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = ConnectionLimits(most=2, sweep_seconds=0.02)
    server = Loopback(sqlite_org, "below", limits=limits, certificates=certificates)
    async with server.open():
        first, second = [await knock(server, knocks) for _ in range(2)]
        await until(lambda: server.connections.open == 2)
        # Now only the health check is accepted.
        reserved = await server.connect()
        assert (await reserved.ask(SERVER_SETTINGS)).status == 503
        assert (await (await server.connect()).ask(HEALTH)).status == 200
        monkeypatch.setattr("tertulia.wire.protocol.connections.SILENT_SECONDS", 0.05)
        # (Idle connections are among the candidates, after these.)
        await until(lambda: len(server.connections._silent) >= 2)
        line = await server.connect()
        assert (await line.ask(SERVER_SETTINGS)).status == 200
        assert await ended(first)
        second.close()


@pytest.mark.usefixtures("no_logged_errors")
async def test_a_stopping_server_does_not_wait_for_handshakes(
    sqlite_org: Organization,
    certificates: Certificates,
    knocks: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tertulia.app.serving.listening._AGREE_SECONDS", 0.05)
    server = Loopback(sqlite_org, "below", certificates=certificates)
    async with server.open():
        silent = await knock(server, knocks)
        await until(lambda: server.connections.open == 1)
    assert await ended(silent)
    assert server.connections.open == 0


@pytest.mark.usefixtures("no_logged_errors")
async def test_a_client_without_close_notify_is_disconnected(
    sqlite_org: Organization, certificates: Certificates, knocks: ExitStack
) -> None:
    """TLS ends with a message by each side. A silent client would hold the connection."""
    limits = ConnectionLimits(most=1000, answer_seconds=0.3, sweep_seconds=0.02)
    server = Loopback(sqlite_org, "below", limits=limits, certificates=certificates)
    async with server.open():
        plug = await knock(server, knocks)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = unverified().wrap_bio(incoming, outgoing)
        loop = asyncio.get_running_loop()
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(plug, outgoing.read())
                received = await loop.sock_recv(plug, 65536)
                assert received, "the server closed the connection during the handshake"
                incoming.write(received)
        client.write(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await loop.sock_sendall(plug, outgoing.read())
        async with asyncio.timeout(60):
            while await loop.sock_recv(plug, 65536):
                pass
        await until(lambda: server.connections.open == 0)


def test_changed_certificate_files_are_reloaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = write_certificate(tmp_path)
    found = Certificates(str(cert), str(key))
    first = found.context
    found.refresh()
    assert found.context is first
    write_certificate(tmp_path, "other.test")
    found.refresh()
    second = found.context
    assert second is not first
    # Half of a new pair is invalid: the old one is used until the other half arrives.
    (other := tmp_path / "other").mkdir()
    new_cert, new_key = write_certificate(other)
    new_cert.replace(cert)
    found.refresh()
    assert found.context is second
    assert "could not load the new certificate" in caplog.text
    new_key.replace(key)
    found.refresh()
    assert found.context is not second
    # Both in one file work, too.
    cert.write_bytes(cert.read_bytes() + key.read_bytes())
    Certificates(str(cert), "")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("none.pem", "key.pem"), "Setting tls_cert: can't read .*none.pem: No such file"),
        (("cert.pem", "none.pem"), "Setting tls_key: can't read .*none.pem: No such file"),
        (("key.pem", "key.pem"), "Setting tls_cert: .* aren't a certificate and its key"),
        (("cert.pem", ""), "Setting tls_cert: .*the key in it aren't a certificate and its key"),
        (("cert.pem", "sealed.pem"), "Setting tls_key: the key is encrypted with a password"),
    ],
)
def test_an_invalid_certificate_is_reported(
    tmp_path: Path, settings: tuple[str, str], said: str
) -> None:
    write_certificate(tmp_path)
    (tmp_path / "sealed.pem").write_bytes(sealed_key())
    cert, key = (str(tmp_path / one) if one else "" for one in settings)
    with pytest.raises(ConfigError, match=said):
        Certificates(cert, key)


def test_a_key_needs_a_certificate() -> None:
    with pytest.raises(ConfigError, match="tls_key: tls_cert, the certificate"):
        load({"tls_key": "x"}, environment={})


def test_each_connection_keeps_the_certificate_of_its_handshake(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    found = Certificates(str(cert), str(key))
    assert _shown(found) == "chat.test"
    write_certificate(tmp_path, "other.test")
    found.refresh()
    assert _shown(found) == "other.test"


def _shown(certificates: Certificates) -> str:
    """The name in the certificate that a client gets."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = certificates.context.wrap_bio(there, back, server_side=True)
    client = unverified().wrap_bio(back, there)
    for _ in range(4):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return name_in(shown)
