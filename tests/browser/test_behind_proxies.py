"""The proxy configurations in `deploy/`, run with the real proxies: browser sign-in, waiting polls,
and large files. Proxies that aren't installed are skipped."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Site
from tests.e2e.server import PASSWORD, START_SECONDS, Account, Server, basic, ended, free_port
from tests.tls import unverified, write_certificate

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UPLOAD = 30 * 1024 * 1024
"""The size of a large file in bytes."""
Place = tuple[Path, int, int, Server]
"""The proxy's directory, its ports for HTTPS and HTTP, and the server behind it."""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The configuration with an operator's changes. Each must apply."""
    for pattern, now in pairs:
        text, times = re.subn(pattern, lambda _, now=now: now, text)  # type: ignore[misc]
        assert times, pattern
    return text


def nginx(place: Place) -> list[str]:
    directory, secure, plain, server = place
    cert, key = write_certificate(directory)
    site = changed(
        (DEPLOY / "nginx.conf").read_text(),
        (r"127\.0\.0\.1:9991", f"127.0.0.1:{server.port}"),
        ("listen 443", f"listen 127.0.0.1:{secure}"),
        ("listen 80", f"listen 127.0.0.1:{plain}"),
        (r"ssl_certificate /\S+;", f"ssl_certificate {cert};"),
        (r"ssl_certificate_key /\S+;", f"ssl_certificate_key {key};"),
    )
    (directory / "site.conf").write_text(site)
    return _nginx_with(directory)


def smallest_nginx(place: Place) -> list[str]:
    """The shortest configuration in the documentation."""
    directory, _, plain, server = place
    (directory / "site.conf").write_text(
        f"server {{ listen 127.0.0.1:{plain}; location / {{"
        f" proxy_pass http://127.0.0.1:{server.port}; }} }}"
    )
    return _nginx_with(directory)


def _nginx_with(directory: Path) -> list[str]:
    places = "".join(
        f"{kind}_temp_path {directory}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (directory / "nginx.conf").write_text(
        f"daemon off; pid {directory}/pid; error_log {directory}/error.log;"
        f"events {{}} http {{ access_log off; {places} include {directory}/site.conf; }}"
    )
    return ["nginx", "-p", str(directory), "-c", str(directory / "nginx.conf")]


def caddy(place: Place) -> list[str]:
    directory, secure, plain, server = place
    cert, key = write_certificate(directory)
    site = changed(
        (DEPLOY / "Caddyfile").read_text(),
        (r"chat\.example\.com \{", f"https://127.0.0.1:{secure} {{\n\ttls {cert} {key}"),
        (r"127\.0\.0\.1:9991", f"127.0.0.1:{server.port}"),
    )
    (directory / "Caddyfile").write_text(f"{{\n\tadmin off\n\thttp_port {plain}\n}}\n{site}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(directory / "Caddyfile")]


def apache(place: Place) -> list[str]:
    directory, secure, plain, server = place
    cert, key = write_certificate(directory)
    site = changed(
        (DEPLOY / "apache.conf").read_text(),
        (r"\*:443", f"127.0.0.1:{secure}"),
        (r"\*:80", f"127.0.0.1:{plain}"),
        (r"127\.0\.0\.1:9991", f"127.0.0.1:{server.port}"),
        (r"SSLCertificateFile /\S+", f"SSLCertificateFile {cert}"),
        (r"SSLCertificateKeyFile /\S+", f"SSLCertificateKeyFile {key}"),
    )
    found = Path("/usr/lib/apache2/modules")
    wanted = ("mpm_event", "authz_core", "ssl", "proxy", "proxy_http", "headers", "alias")
    modules = "".join(f"LoadModule {one}_module {found}/mod_{one}.so\n" for one in wanted)
    (directory / "httpd.conf").write_text(
        f"ServerName localhost\nServerRoot {directory}\nPidFile {directory}/pid\n"
        f"ErrorLog {directory}/error.log\n{modules}User www-data\nGroup www-data\n"
        f"Listen 127.0.0.1:{secure}\nListen 127.0.0.1:{plain}\n{site}"
    )
    return ["apache2", "-f", str(directory / "httpd.conf"), "-DFOREGROUND"]


def traefik(place: Place) -> list[str]:
    directory, secure, _, server = place
    cert, key = write_certificate(directory)
    site = changed(
        (DEPLOY / "traefik.yaml").read_text(),
        (r"Host\(`chat\.example\.com`\)", "Host(`127.0.0.1`)"),
        (r"tls:\n +certResolver: letsencrypt", "tls: {}"),
        (r"127\.0\.0\.1:9991", f"127.0.0.1:{server.port}"),
    )
    certificate = f"tls:\n  certificates:\n    - certFile: {cert}\n      keyFile: {key}\n"
    (directory / "dynamic.yaml").write_text(f"{site}{certificate}")
    return [
        "traefik",
        f"--entryPoints.websecure.address=127.0.0.1:{secure}",
        "--entryPoints.websecure.transport.respondingTimeouts.readTimeout=1h",
        f"--providers.file.filename={directory / 'dynamic.yaml'}",
        "--global.checkNewVersion=false",
        "--global.sendAnonymousUsage=false",
    ]


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[None]:
    """A listening proxy."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert process.poll() is None, log.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)  # A separate process can only be polled.
        yield
    finally:
        # Not as a daemon: stopping one takes seconds.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(START_SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server without external_url: it knows about the proxy only from the headers."""
    server = Server(tmp_path_factory.mktemp("town"))
    ann, ben = server.create_organization(), server.add("ben")
    with ended(server):
        server.start()
        yield Site(server, ann, ben)


@pytest.mark.parametrize("proxy", [nginx, caddy, apache, traefik])
def test_sign_in_polls_and_uploads_work_through_the_proxy(
    browser: Browser, site: Site, tmp_path: Path, proxy: Callable[[Place], list[str]]
) -> None:
    tmp_path.chmod(0o755)
    secure, plain = free_port(), free_port()
    command = proxy((tmp_path, secure, plain, site.server))
    with running(command, secure, tmp_path / "said"):
        context = browser.new_context(
            base_url=f"https://127.0.0.1:{secure}", ignore_https_errors=True
        )
        with closing(context):
            page = context.new_page()
            page.goto("/")
            page.get_by_label("Email").fill(site.ben.email)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
            assert all(cookie["secure"] for cookie in context.cookies())
        _hear_and_upload(secure, site.ann)
        _be_refused(secure, site.ben, "127.0.0.9")
        # The log has the client's address, which the proxy forwards.
        site.server.wait_for_log('"sign-in failed" from=127.0.0.9 ')


def _be_refused(port: int, account: Account, address: str) -> None:
    line = http.client.HTTPSConnection(
        "127.0.0.1", port, context=unverified(), source_address=(address, 0)
    )
    with closing(line):
        form = urlencode({"username": account.email, "password": "wrong"})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        line.request("POST", "/api/v1/fetch_api_key", form, kind)
        assert line.getresponse().status == 401


def _hear_and_upload(port: int, account: Account) -> None:
    def opened() -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", port, context=unverified(), timeout=START_SECONDS
        )

    head = {"Authorization": basic(account)}
    with closing(opened()) as waiting, closing(opened()) as other:
        waiting.request("POST", "/api/v1/register?event_types=%5B%22message%22%5D", "", head)
        queue = json.loads(waiting.getresponse().read())
        cursor = {name: queue[name] for name in ("queue_id", "last_event_id")}
        waiting.request("GET", f"/api/v1/events?{urlencode(cursor)}", headers=head)
        before = b'--b\r\nContent-Disposition: form-data; name="f"; filename="big"\r\n\r\n'
        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        body = before + bytes(UPLOAD) + b"\r\n--b--\r\n"
        other.request("POST", "/api/v1/user_uploads", body, {**head, **kind})
        url = json.loads(other.getresponse().read())["url"]
        form = urlencode({"type": "direct", "to": f"[{account.user_id}]", "content": f"[f]({url})"})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        other.request("POST", "/api/v1/messages", form, {**head, **kind})
        assert other.getresponse().read()
        (event, *_) = json.loads(waiting.getresponse().read())["events"]
        assert url in event["message"]["content"]
        other.request("GET", f"/api/v1{url}", headers=head)
        opening = json.loads(other.getresponse().read())["url"]
        other.request("GET", opening)
        assert len(other.getresponse().read()) == UPLOAD


def test_a_proxy_without_forwarded_host_is_reported(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    port = free_port()
    command = smallest_nginx((tmp_path, 0, port, site.server))
    with running(command, port, tmp_path / "said"):
        context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
        with closing(context):
            page = context.new_page()
            page.goto("/login")
            page.get_by_label("Email").fill(site.ben.email)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            said = page.locator("body")
            expect(said).to_contain_text(f"the page is at http://127.0.0.1:{port}")
            expect(said).to_contain_text(f"reached as 127.0.0.1:{site.server.port}")
    site.server.wait_for_log(
        "refused a page of another server; check that the proxy passes on the Host header"
    )
