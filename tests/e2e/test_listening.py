"""Where a server listens: on a Unix socket, on a socket from systemd, with TLS; alone and with
workers."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.e2e.raw_http import Connection
from tests.e2e.server import START_SECONDS, Account, Server, basic, ended
from tests.programs import HeardProgram
from tests.tls import name_in, unverified, write_certificate

FORM = "application/x-www-form-urlencoded"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


@contextmanager
def told_by(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The messages that the server has sent to systemd."""
    path = str(server.data_dir / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as plug:
        plug.bind(path)
        plug.settimeout(START_SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield plug


@contextmanager
def at_path(path: Path) -> Iterator[Connection]:
    """Connect to the Unix socket at this path."""
    with socket.socket(socket.AF_UNIX) as plug:
        plug.settimeout(START_SECONDS)
        plug.connect(str(path))
        with closing(Connection(plug)) as connection:
            yield connection


def wrong_password(account: Account, *headers: bytes) -> bytes:
    """A request that is logged with its client's address."""
    form = b"username=%b&password=wrong" % account.email.encode()
    lines = [b"POST /api/v1/fetch_api_key HTTP/1.1", b"Host: chat.test", *headers]
    lines += [b"Content-Type: " + FORM.encode(), b"Content-Length: %d" % len(form)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + form


@WORKERS
def test_a_server_on_a_unix_socket_trusts_its_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    server, path = Server(tmp_path / "data"), tmp_path / "s"
    ann = server.create_organization()
    flags = ("--workers", workers, "--unix-socket", str(path))
    with told_by(server, monkeypatch) as told, ended(server):
        (server.data_dir / "tertulia.toml").write_text('unix_socket_mode = "600"\n')
        # The socket of a killed server is still there.
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        server.launch(*flags)
        assert told.recv(4096) == f"READY=1\nSTATUS=Tertulia is ready at unix:{path}".encode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with at_path(path) as line:
            for said, came in (
                ((b"X-Forwarded-For: 198.51.100.1, 192.0.2.7",), "192.0.2.7"),
                ((b"X-Forwarded-For: 192.0.2.8", b"X-Forwarded-Proto: https"), "192.0.2.8"),
                ((), "-"),
            ):
                assert line.ask(wrong_password(ann, *said)).status == 401
                server.wait_for_log(f'"sign-in failed" from={came} ')
            assert line.ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").status == 200
        # A second server is refused and removes nothing.
        second = HeardProgram(
            ["serve", *server._place(), "--unix-socket", str(path)], server._environment()
        )
        with closing(second):
            _, errors = second.communicate(START_SECONDS)
        assert (second.returncode, "is in use by another program" in errors) == (1, True)
        assert path.exists()
        assert server.stop() == 0
        assert told.recv(4096) == b"STOPPING=1"
    assert not path.exists()


@WORKERS
def test_a_server_uses_the_socket_from_systemd(tmp_path: Path, workers: str) -> None:
    server, path = Server(tmp_path / "data"), tmp_path / "s"
    server.create_organization()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        os.set_inheritable(listener.fileno(), True)
        # The launcher becomes the server, so it has the process ID that systemd expects.
        script = (
            f"import os, sys; os.dup2({listener.fileno()}, 3);"
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()));"
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        program = [
            *server._command_line("serve", *server._place()),
            "--workers",
            workers,
            "--unix-socket",
            str(path),
        ]
        with server.log_path.open("ab") as log:
            server.process = subprocess.Popen(
                [sys.executable, "-c", script, *program],
                env=server._environment(),
                pass_fds=[listener.fileno()],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
    with ended(server):
        # Clients that connect before it's ready wait.
        with at_path(path) as line:
            assert line.ask(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n").status == 200
        server.wait_for_log(f"ready at unix:{path}")
        assert server.stop() == 0
    assert path.exists(), "it is systemd's"


def secured(server: Server) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=unverified(), timeout=START_SECONDS
    )


def served_certificate_name(server: Server) -> str:
    """The name in the certificate that a new connection gets."""
    with (
        socket.create_connection(("127.0.0.1", server.port), START_SECONDS) as plug,
        unverified().wrap_socket(plug) as secure,
    ):
        found = secure.getpeercert(binary_form=True)
        assert found is not None
        return name_in(found)


@WORKERS
def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path, workers: str) -> None:
    server = Server(tmp_path / "data")
    ann = server.create_organization()
    cert, key = write_certificate(tmp_path)
    flags = ("--workers", workers, "--tls-cert", str(cert), "--tls-key", str(key))
    with ended(server):
        server.launch(*flags)
        server.wait_for_log(f"ready at https://127.0.0.1:{server.port}")
        line = secured(server)
        with closing(line):
            head = {"Authorization": basic(ann)}
            line.request("POST", "/api/v1/register?event_types=[%22message%22]", headers=head)
            queue = json.loads(line.getresponse().read())
            cursor = {name: queue[name] for name in ("queue_id", "last_event_id")}
            poll = f"/api/v1/events?{urlencode(cursor)}"
            line.request("GET", poll, headers=head)
            with closing(secured(server)) as other:
                body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
                body += os.urandom(3_000_000) + b"\r\n--b--\r\n"
                kind = {"Content-Type": "multipart/form-data; boundary=b"}
                other.request("POST", "/api/v1/user_uploads", body, {**head, **kind})
                url = json.loads(other.getresponse().read())["url"]
                other.request("GET", url, headers=head)
                other.getresponse().read()
                message = f"type=stream&to=general&topic=t&content={url}"
                form = {**head, "Content-Type": FORM}
                other.request("POST", "/api/v1/messages", message, form)
                assert other.getresponse().status == 200
            (event, *_) = json.loads(line.getresponse().read())["events"]
            assert url in event["message"]["content"]
            # The sign-in page's cookies are limited to HTTPS.
            line.request("GET", "/login")
            answer = line.getresponse()
            answer.read()
            cookies = answer.headers.get_all("Set-Cookie") or []
            assert all("secure" in cookie.lower() for cookie in cookies)
            assert served_certificate_name(server) == "chat.test"
            write_certificate(tmp_path, "other.test")
            assert server.process is not None
            server.process.send_signal(signal.SIGHUP)
            server.wait(
                lambda: served_certificate_name(server) == "other.test",
                "the other certificate is shown",
            )
            if workers == "1":  # Otherwise the connection's worker has been replaced.
                line.request("GET", "/health")
                assert line.getresponse().status == 200
        assert server.stop() == 0
