"""Outgoing connections trust the authorities of the system, and those that the environment adds."""

import asyncio
import logging
import re
import ssl
import subprocess
from pathlib import Path

import httpx
import msgspec
import pytest

import tertulia
from tertulia.imports.zulip.live.server import ZulipServer
from tertulia.model.errors import FilesUnavailable
from tertulia.outbound.http_responses import NotFetched
from tertulia.outbound.transports import Delayed, Smtp, Trouble
from tertulia.service.previous_server import PreviousServer
from tertulia.store import authorities
from tertulia.store.bucket_files import S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_moves import files_at
from tests.external_web import Page, external_web
from tests.tls import Authority, trust_anew
from tests.unit.test_mail_sender import LETTER, Server, listening

SOURCE = Path(tertulia.__file__).parent


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that nothing trusts yet."""
    trust_anew(monkeypatch)
    return Authority(tmp_path)


def trust(authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    if variable == authorities.FILE:
        trust_anew(monkeypatch, file=authority.file)
        return
    directory = authority.file.parent / "trusted"
    directory.mkdir(exist_ok=True)
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(authority.file)]
    try:
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        pytest.skip("needs the program openssl")
    (directory / f"{name}.0").write_bytes(authority.file.read_bytes())
    trust_anew(monkeypatch, directory=directory)


@pytest.mark.parametrize("variable", [authorities.FILE, authorities.DIRECTORY])
async def test_requests_trust_the_company_s_authority(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """This covers webhooks, push, feeds, previews, providers, and the previous server."""
    async with external_web(authority.server("pages.test")) as there:
        there.pages["/"] = Page(b"hello")
        there.pages["/api/v1/users/me"] = Page(b'{"email": "ann@example.com"}')
        web = there.web()
        with pytest.raises(NotFetched, match="certificate"):
            await web.send(there.url("/"), b"", {}, seconds=5, limit=100)
        await web.close()
        trust(authority, monkeypatch, variable)
        web = there.web()
        assert (await web.send(there.url("/"), b"", {}, seconds=5, limit=100)).body == b"hello"
        async with web.opened(there.url("/"), accept="*/*", seconds=5) as response:
            assert await response.content(100) == b"hello"
        assert await PreviousServer(there.url(""), web).is_key_of("ann@example.com", "Basic x")
        await web.close()


async def test_live_imports_trust_the_company_s_authority(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with external_web(authority.server("localhost")) as there:
        there.pages["/api/v1/users/me"] = Page(b'{"result": "success"}', "application/json")
        url = f"https://localhost:{there.port}"

        def ask() -> int:
            server = ZulipServer(url, "ann@example.com", "x" * 32)
            try:
                return server._http.get("/api/v1/users/me").status_code
            finally:
                server.close()

        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await asyncio.to_thread(ask)
        trust(authority, monkeypatch, authorities.FILE)
        assert await asyncio.to_thread(ask) == 200


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_servers_may_have_certificates_of_the_company_s_authority(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    context = authority.server("mail.test")
    options = {"tls_context": context} if security == "starttls" else {}
    listener = context if security == "tls" else None
    async with listening(Server(tls=listener), **options) as server:
        settings = msgspec.structs.replace(server.settings(), security=security)
        with pytest.raises(Delayed) as raised:
            await Smtp(settings).send(LETTER, "abc")
        assert raised.value.trouble is Trouble.NOT_ENCRYPTED
        trust(authority, monkeypatch, authorities.FILE)
        await Smtp(settings).send(LETTER, "abc")
        assert server.got.qsize() == 1


async def test_buckets_may_have_certificates_of_the_company_s_authority(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = S3Keys(key_id="a", secret="b")
    async with external_web(authority.server("localhost")) as there:
        url = f"s3://files?endpoint=https://localhost:{there.port}"
        files = files_at(url, DiskFiles(tmp_path), keys)
        with pytest.raises(FilesUnavailable):
            await files.found("a")
        trust(authority, monkeypatch, authorities.FILE)
        files = files_at(url, DiskFiles(tmp_path), keys)
        there.pages["/files/a"] = Page(b"", status=404)
        assert await files.found("a") is None
        # The system's authorities are trusted as well, although the library would replace them.
        added = authorities.missing_in_environment()
    assert added.count(b"BEGIN CERTIFICATE") > 10


def test_authorities_of_the_environment_are_added_to_those_of_the_system(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with one authority doesn't end connections to other servers."""
    system, there_are = ssl.get_default_verify_paths(), authority.file.parent / "system.pem"
    other = Authority(authority.file.parent / "other")
    there_are.write_bytes(other.file.read_bytes())
    paths = system._replace(openssl_cafile=str(there_are), openssl_capath="/nowhere")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    trust_anew(monkeypatch, file=authority.file)
    assert authorities.client_context().cert_store_stats()["x509_ca"] == 2


def test_a_system_without_authorities_uses_the_bundled_list(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ssl.get_default_verify_paths()._replace(openssl_cafile="/no", openssl_capath="/no")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setattr(authorities, "_BUNDLES", ())
    trust_anew(monkeypatch, file=authority.file)
    assert authorities.client_context().cert_store_stats()["x509_ca"] > 100
    monkeypatch.delenv(authorities.FILE)
    assert authorities.missing_in_environment().count(b"BEGIN CERTIFICATE") > 100


def test_a_file_that_is_missing_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trust_anew(monkeypatch, file=tmp_path / "typo.pem")
    with caplog.at_level(logging.WARNING):
        authorities.client_context()
    (record,) = caplog.records
    assert getattr(record, "fields", None) == {
        "variable": "SSL_CERT_FILE",
        "path": str(tmp_path / "typo.pem"),
    }


def test_no_other_module_decides_what_to_trust() -> None:
    clients = re.compile(
        r"create_ssl_context|create_default_context\((?!ssl\.Purpose)|SSLContext\("
    )
    makers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if clients.search(path.read_text())
    }
    assert makers == {"store/authorities.py"}
    for path in SOURCE.rglob("*.py"):
        for client in re.findall(
            r"httpx\.(?:Async)?Client\(.*?\n {0,12}\)|$", path.read_text(), re.S
        ):
            assert not client or "transport=" in client or "verify=authorities" in client, path
