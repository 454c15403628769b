"""Outgoing requests: which hosts are contacted, and how much is read."""

import asyncio
import contextlib
import gc
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpcore
import pytest

from tertulia.model.errors import Unavailable
from tertulia.outbound import addresses, http_client
from tertulia.outbound.addresses import is_public, parsed
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_connection import HttpConnection
from tertulia.outbound.http_responses import NotFetched, StreamedResponse
from tests.external_web import ExternalWeb, Page, external_web, redirect, unvouched
from tests.support import row
from tests.tls import Authority, trust_anew


@pytest.fixture
async def there() -> AsyncIterator[ExternalWeb]:
    async with external_web() as served:
        yield served


async def fetched(web: Web, url: str, *, limit: int = 1000, seconds: float = 5) -> StreamedResponse:
    """Return the response after reading its content, which must be within the limit."""
    try:
        async with web.opened(url, accept="*/*", seconds=seconds) as answer:
            await answer.content(limit)
            return answer
    finally:
        await web.close()


async def content(web: Web, url: str, *, limit: int = 1000) -> bytes:
    try:
        async with web.opened(url, accept="*/*", seconds=5) as answer:
            return await answer.content(limit)
    finally:
        await web.close()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("1.1.1.1", True),
        ("93.184.216.34", True),
        ("2606:4700:4700::1111", True),
        ("64:ff9b::101:101", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("100.100.100.200", False),
        ("169.254.169.254", False),
        ("192.0.0.192", False),
        ("192.0.2.1", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("239.255.255.250", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:1.1.1.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::101:101", False),
        ("2002:7f00:1::", False),
        ("2002:c0a8:101::1", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("fc00::1", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
    ],
)
def test_only_public_addresses_are_contacted(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_a_zone_does_not_hide_an_address() -> None:
    assert parsed("fe80::1%eth0") == ip_address("fe80::1")
    assert parsed("example.com") is None


async def test_a_page_is_fetched_by_its_host_name(there: ExternalWeb) -> None:
    there.pages["/a?b=c"] = Page(b"hello", "text/plain; charset=latin-1")
    answer = await fetched(there.web(), there.url("/a?b=c"))
    assert (answer.url, answer.media_type) == (there.url("/a?b=c"), "text/plain")
    (head,) = there.heads
    lines = head.lower().split("\r\n")
    assert lines[0] == "get /a?b=c http/1.1"
    assert f"host: pages.test:{there.port}" in lines
    assert "accept-encoding: identity" in lines
    assert any(line.startswith("user-agent: ") and "tertulia/" in line for line in lines)
    assert not [line for line in lines if line.startswith(("cookie", "authorization", "referer"))]


async def test_an_international_name_is_requested_in_its_dns_form(there: ExternalWeb) -> None:
    there.pages["/%C3%A9"] = Page(b"hello")
    assert await content(there.web(), there.url("/é", "münchen.test")) == b"hello"
    assert there.resolved == ["xn--mnchen-3ya.test"]
    assert f"host: xn--mnchen-3ya.test:{there.port}" in there.heads[0].lower()


async def test_cookies_are_not_sent_back(there: ExternalWeb) -> None:
    there.pages["/a"] = Page(status=302, headers={"Location": "/b", "Set-Cookie": "x=y"})
    there.pages["/b"] = Page(b"b")
    assert await content(there.web(), there.url("/a")) == b"b"
    assert "cookie" not in "".join(there.heads).lower()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.2/",
        "http://2130706434/",
        "http://0x7f.0.0.2/",
        "http://[::1]:8080/",
        "http://[::ffff:127.0.0.1]:8080/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://10.0.0.1:8080/",
        "http://0/",
        "ftp://pages.test/",
        "file:///etc/passwd",
        "gopher://pages.test/",
        "data:text/html,x",
        "//pages.test/",
        "pages.test",
        "",
        "http://",
        "http:///x",
        "http://user:password@pages.test/",
        "http://user@pages.test/",
        "http://pages.test:22/",
        "http://pages.test:25/",
        "http://pages.test:0/",
        "http://pages.test:99999/",
        "http://pages.test:8080/",
        "http://pages.test:9991/",
        "https://pages.test:8443/",
        "http://chat.example/",
        "http://CHAT.example./",
        "http://pa ges.test/",
        "http://pages.test/\x00",
        "http://pages.test\n.evil/",
        "http://nowhere.invalid/",
        "http://[::1/",
        "http://" + "a" * 300 + ".test/",
        "http://pages.test/" + "a" * 2000,
    ],
)
async def test_an_invalid_url_is_not_requested(there: ExternalWeb, url: str) -> None:
    there.pages["/"] = Page(b"secret")
    with pytest.raises(NotFetched):
        await fetched(there.web(), url)
    assert there.asked == []


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["::1"], [], ["169.254.169.254"]]
)
async def test_a_name_that_resolves_to_the_network_is_not_contacted(
    there: ExternalWeb, addresses: list[str]
) -> None:
    there.others["inside.example"] = [addresses]
    with pytest.raises(NotFetched):
        await fetched(there.web(), there.url("/", "inside.example"))
    assert there.asked == []


@pytest.mark.parametrize(
    ("own", "address"),
    [
        ("1.1.1.1", "1.1.1.1"),
        ("1.1.1.1", "64:ff9b::101:101"),
        ("1.1.1.1", "2002:101:101::1"),
        ("2606:4700::1111", "2606:4700::1111"),
    ],
)
async def test_this_server_is_not_contacted_by_another_of_its_names(
    there: ExternalWeb, own: str, address: str
) -> None:
    there.own = [own]
    there.others["alias.example"] = [[address]]
    there.pages["/"] = redirect(there.url("/again", "alias.example"))
    with pytest.raises(NotFetched, match="is this server"):
        await fetched(there.web(), there.url("/", "alias.example"))
    with pytest.raises(NotFetched, match="is this server"):
        await fetched(there.web(), there.url("/"))


async def test_a_redirect_to_another_port_is_not_followed(there: ExternalWeb) -> None:
    there.pages["/"] = redirect("http://pages.test:6379/")
    with pytest.raises(NotFetched, match="port 6379"):
        await fetched(there.web(), there.url("/"))


def test_an_address_of_this_machine_is_not_external(monkeypatch: pytest.MonkeyPatch) -> None:
    assert addresses.is_local(ip_address("127.0.0.1"))
    assert not addresses.is_local(ip_address("192.0.2.1"))
    assert addresses.is_elsewhere(ip_address("1.1.1.1"))
    # As on a machine with a public address.
    monkeypatch.setattr(addresses, "is_local", lambda found: found == ip_address("1.1.1.1"))
    assert not addresses.is_elsewhere(ip_address("1.1.1.1"))
    assert not addresses.is_elsewhere(ip_address("64:ff9b::101:101"))
    assert not addresses.is_elsewhere(ip_address("2002:101:101::"))
    assert addresses.is_elsewhere(ip_address("1.0.0.1"))


async def test_the_connection_uses_the_checked_address(there: ExternalWeb) -> None:
    """A name that resolves differently the next time gains nothing, because it's resolved once."""
    there.others["turning.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    there.pages["/"] = Page(b"first")
    assert await content(there.web(), there.url("/", "turning.example")) == b"first"
    assert there.resolved == ["turning.example"]


async def test_each_redirect_is_checked(there: ExternalWeb) -> None:
    there.others["turning.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    there.pages["/"] = redirect(there.url("/again", "turning.example"))
    with pytest.raises(NotFetched, match=r"^the host isn't on the public internet$"):
        await fetched(there.web(), there.url("/", "turning.example"))
    assert there.asked == ["/"]


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/",
        "http://localhost/",
        "file:///etc/passwd",
        "http://[::1]/",
        "http://user:x@pages.test/",
        "javascript:x",
        "http://[",
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(there: ExternalWeb, to: str) -> None:
    there.pages["/"] = redirect(to)
    with pytest.raises(NotFetched):
        await fetched(there.web(), there.url("/"))
    assert there.asked == ["/"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(there: ExternalWeb, status: int) -> None:
    there.pages["/a"] = redirect("/b", status)
    there.pages["/b"] = redirect(there.url("/c/d", "other.test"), status)
    there.pages["/c/d"] = redirect("e", status)
    there.pages["/c/e"] = Page(b"end")
    answer = await fetched(there.web(), there.url("/a"))
    assert answer.url == there.url("/c/e", "other.test")


async def test_redirects_are_limited(there: ExternalWeb) -> None:
    there.pages["/"] = redirect("/")
    with pytest.raises(NotFetched, match="too many"):
        await fetched(there.web(), there.url("/"))
    assert len(there.asked) == 6


@pytest.mark.parametrize(
    "page",
    [
        Page(b"x", status=404),
        Page(b"x", status=500),
        Page(b"", status=204),
        Page(status=302),
        Page(b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}),
        Page(b"x" * 1001),
        Page(b"x", headers={"Content-Length": "1001"}),
        Page(b"x", headers={"Content-Length": "9" * 30}),
        Page(b"x", headers={"X-Long": "y" * 200_000}),
    ],
    ids=lambda page: f"{page.status}-{len(page.body)}-{len(str(page.headers))}",
)
async def test_a_response_of_an_unwanted_kind_is_not_read(there: ExternalWeb, page: Page) -> None:
    there.pages["/"] = page
    with pytest.raises(NotFetched):
        await fetched(there.web(), there.url("/"))


async def test_an_endless_response_is_cut_off(there: ExternalWeb) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    there.pages["/"] = endless
    web = there.web()
    async with web.opened(there.url("/"), accept="*/*", seconds=5) as answer:
        assert await answer.beginning(100_000) == b"x" * 100_000
    with pytest.raises(NotFetched, match="too large"):
        await fetched(web, there.url("/"), limit=100_000)


async def test_a_slow_response_is_given_up(
    there: ExternalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    there.pages["/"] = slow
    with pytest.raises(NotFetched, match="too long"):
        await fetched(there.web(), there.url("/"), seconds=0.2)
    # A response that never starts ends before the total timeout.
    monkeypatch.setattr(http_client, "_SILENT_SECONDS", 0.2)
    with pytest.raises(NotFetched, match=r"^it took too long$"):
        await fetched(there.web(), there.url("/"), seconds=1000)


async def test_a_request_without_a_free_slot_in_time_is_not_sent(there: ExternalWeb) -> None:
    there.pages["/"] = Page(b"hello")
    web = there.web(max_concurrent=1)
    async with web.opened(there.url("/"), accept="*/*", seconds=60):
        with pytest.raises(Unavailable, match="Too many"):
            async with web.opened(there.url("/"), accept="*/*", seconds=0.01):
                pass
        with pytest.raises(Unavailable, match="Too many"):
            await web.send(there.url("/"), b"", {}, seconds=0.01, limit=10)
    assert there.asked == ["/"]
    assert await content(web, there.url("/")) == b"hello"


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nabc"]
)
async def test_a_truncated_response_is_an_error(there: ExternalWeb, said: bytes) -> None:
    there.pages["/"] = lambda writer: writer.write(said)
    with pytest.raises(NotFetched):
        await fetched(there.web(), there.url("/"))


async def test_a_refused_connection_is_an_error(there: ExternalWeb) -> None:
    async with external_web() as gone:
        url = gone.url("/")
    with pytest.raises(NotFetched, match="refused the connection"):
        await fetched(there.web(gone.port), url)


async def test_a_certificate_must_match_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name, although the connection is to an address."""
    authority = Authority(tmp_path)
    trust_anew(monkeypatch, file=authority.file)
    async with external_web(authority.server("pages.test")) as there:
        there.pages["/"] = Page(b"hello")
        assert await content(there.web(), there.url("/")) == b"hello"
        with pytest.raises(NotFetched, match="certificate"):
            await fetched(there.web(), there.url("/", "other.test"))
    assert there.asked == ["/"]


async def test_a_certificate_must_be_trusted(tmp_path: Path) -> None:
    names: list[str | None] = []
    context = unvouched(tmp_path)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    async with external_web(context) as there:
        there.pages["/"] = Page(b"secret")
        with pytest.raises(NotFetched, match="certificate"):
            await fetched(there.web(), there.url("/"))
    assert names == ["pages.test"]
    assert there.asked == []


# Keep-alive connections


@pytest.fixture
def taking(there: ExternalWeb) -> ExternalWeb:
    """Accepts requests on one connection while it's kept."""
    there.pages["/"] = Page(status=201)
    there.answers_on_each = 100
    return there


async def post_status(web: Web, url: str) -> int:
    """The status of the response to a POST."""
    return (await web.send(url, b"x", {}, seconds=5, limit=1000)).status


async def test_a_connection_is_reused_only_for_the_same_host(
    taking: ExternalWeb,
) -> None:
    """Its certificate was checked for that host."""
    web = taking.web(keeps=True)
    for host in ("a.test", "b.test", "a.test", "b.test", "a.test"):
        assert await post_status(web, taking.url("/", host)) == 201
    assert taking.connections == 2
    assert taking.resolved == ["a.test", "b.test"], "once for each connection"
    assert not [head for head in taking.heads if "connection: close" in head.lower()]
    # A connection without TLS doesn't carry requests that require it.
    assert web._taken(web._target(f"HTTPS://a.test:{taking.port}/")) is None
    # Fetching a page uses a separate connection, as before.
    for _ in range(2):
        with pytest.raises(NotFetched):
            async with web.opened(taking.url("/", "a.test"), accept="*/*", seconds=5):
                pass
    assert taking.connections == 4
    await web.close()


async def test_a_request_on_a_closed_connection_is_retried_once(
    taking: ExternalWeb,
) -> None:
    there, web = taking, taking.web(keeps=True)
    there.answers_on_each = 2

    def hung_up(writer: asyncio.StreamWriter) -> None:
        writer.close()

    # The connection is kept, and closes without a response as the next request is sent.
    assert await post_status(web, there.url("/")) == 201
    there.pages["/late"] = hung_up
    with pytest.raises(NotFetched):
        await post_status(web, there.url("/late"))
    assert there.asked == ["/", "/late", "/late"]
    # A connection that the other end closed while idle isn't used.
    there.answers_on_each = 1
    for _ in range(3):
        assert await post_status(web, there.url("/")) == 201
    assert there.asked[3:] == ["/"] * 3
    await web.close()
    # On a new connection, nothing is sent twice.
    there.asked.clear()
    fresh = there.web(keeps=True)
    with pytest.raises(NotFetched):
        await post_status(fresh, there.url("/late"))
    assert there.asked == ["/late"]
    await fresh.close()


async def test_a_canceled_request_holds_no_connection(taking: ExternalWeb) -> None:
    """At whatever point it takes too long."""
    there, web = taking, taking.web(keeps=True)

    async def slowly(writer: asyncio.StreamWriter) -> None:
        for part in (b"HTTP/1.1 201 X\r\n", b"Content-Length: 2\r\n\r\n", b"a", b"b"):
            for _ in range(4):
                await asyncio.sleep(0)
            writer.write(part)

    there.pages["/slow"] = slowly
    once = there.web()
    for turns in range(60):
        host = f"n{turns}.test"
        tasks = [
            asyncio.create_task(post_status(one, there.url("/slow", host))) for one in (web, once)
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        # Otherwise it would wait for the one that was canceled.
        assert await post_status(web, there.url("/", host)) == 201
    await web.close()
    async with asyncio.timeout(60):
        while there.open:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0)
    await once.close()


async def test_a_failed_request_holds_no_connection(
    taking: ExternalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, web = taking, taking.web(keeps=True)
    there.pages["/late"] = lambda writer: writer.close()
    made: list[weakref.ref[HttpConnection]] = []
    new = HttpConnection.__init__

    def noted(connection: HttpConnection, *arguments: Any) -> None:
        new(connection, *arguments)
        made.append(weakref.ref(connection))

    monkeypatch.setattr(HttpConnection, "__init__", noted)
    gc.disable()
    try:
        with pytest.raises(NotFetched):
            await post_status(web, there.url("/late"))
        async with asyncio.timeout(60):
            while made[0]() is not None:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0)
    finally:
        gc.enable()
    await web.close()


async def test_every_framing_of_a_response_is_read(taking: ExternalWeb) -> None:
    there, web = taking, taking.web(keeps=True)
    start = b"HTTP/1.1 200 X\r\nRetry-After: 7\r\n"
    there.pages |= {
        "/early": lambda w: w.write(b"HTTP/1.1 103 X\r\nA: b\r\n\r\n" + start + _long(b"early")),
        "/chunks": lambda w: w.write(
            start + b"Transfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n3\r\nnks\r\n0\r\n\r\n"
        ),
        "/end": lambda w: _last(w, start + b"\r\nend"),
        "/large": lambda w: w.write(start + _long(b"x" * 101)),
        "/larger": lambda w: w.write(start + b"\r\n" + b"x" * 101),
        "/endless": lambda w: w.write(b"HTTP/1.1 103 X\r\n\r\n" * 10_000),
        "/head": lambda w: w.write(start + b"A: b\r\n" * 100_000),
        "/short": lambda w: _last(w, start + _long(b"short")[:-1]),
        "/none": lambda w: w.write(b"none of it\r\n\r\n"),
    }
    for path in ("/early", "/chunks", "/end"):
        with row(path):
            reply = await web.send(there.url(path), b"x", {}, seconds=60, limit=100)
            assert (reply.status, reply.body.decode()) == (200, path[1:])
            assert reply.headers["retry-after"] == "7"
    for path in ("/large", "/larger", "/endless", "/head", "/short", "/none"):
        with row(path), pytest.raises(NotFetched):
            await web.send(there.url(path), b"x", {}, seconds=60, limit=100)
        assert await post_status(web, there.url("/")) == 201
    with pytest.raises(NotFetched, match="header"):
        await web.send(there.url("/"), b"x", {"A": "b\r\nC: d"}, seconds=60, limit=100)
    await web.close()


def _last(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    writer.close()


def _long(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


CREATED, REFUSED = (b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status for status in (201, 400))
BEHIND = {
    "/two": (CREATED + CREATED,),
    "/two-in-parts": (CREATED, CREATED),
    "/half-in-parts": (CREATED + REFUSED[:9], REFUSED[9:]),
    "/more": (b"HTTP/1.1 201 X\r\nContent-Length: 1\r\n\r\nab",),
    "/nonsense": (CREATED + b"nonsense\r\n\r\n",),
    "/chunks": (b"HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + REFUSED,),
    "/without-body": (b"HTTP/1.1 204 X\r\n\r\n" + REFUSED,),
    "/over": (CREATED.replace(b"X\r\n", b"X\r\nConnection: close\r\n") + REFUSED,),
}
"""Pieces that are sent one after the other: a response, and data behind it."""


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_no_response_is_taken_for_another_request_s(secure: bool, tmp_path: Path) -> None:
    context = unvouched(tmp_path) if secure else None
    async with external_web(context) as there:
        there.answers_on_each = 100
        web = there.web(keeps=True)
        web._tls = ssl.create_default_context(cafile=tmp_path / "server.pem") if secure else None
        # Data directly after the response, or before the next request.
        for path, pieces in BEHIND.items():
            written = asyncio.Event()

            async def twice(
                writer: asyncio.StreamWriter,
                pieces: Sequence[bytes] = pieces,
                written: asyncio.Event = written,
            ) -> None:
                for piece in pieces:
                    writer.write(piece)
                    for _ in range(4):  # Until it has been sent.
                        await asyncio.sleep(0)
                written.set()

            there.pages[path] = twice
            for after in (418, 201):
                with row(path, after):
                    there.pages["/"] = Page(status=after)
                    written.clear()
                    assert await post_status(web, there.url(path)) in {201, 204}
                    await written.wait()
                    assert await post_status(web, there.url("/")) == after
        # The next response is trusted only on a new connection, since extra data may arrive too
        # late to notice.
        before = there.connections
        there.pages["/gone"] = Page(status=410)
        assert [await post_status(web, there.url(path)) for path in ("/", "/gone", "/")] == [
            201,
            410,
            201,
        ]
        assert there.connections == before + 1
        await web.close()


async def test_tls_messages_after_the_handshake_are_no_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's session tickets arrive before the first request: here at the last moment."""
    context = unvouched(tmp_path)
    asks, agreed = threading.Event(), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(60)

    def serve() -> None:
        plug = listening.accept()[0]
        plug.settimeout(60)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)

        def done(step: Callable[[], object]) -> bool:
            received = plug.recv(10_000)
            assert received, "the client closed the connection"
            incoming.write(received)
            with contextlib.suppress(ssl.SSLWantReadError):
                step()
                return True
            return False

        with plug:
            while not done(tls.do_handshake):
                plug.sendall(outgoing.read())
                asks.wait(60)
            plug.sendall(outgoing.read())
            agreed.set()
            while not done(lambda: tls.read(1000)):
                pass
            tls.write(CREATED)
            plug.sendall(outgoing.read())

    send = HttpConnection.response

    @contextlib.asynccontextmanager
    async def send_late(
        connection: HttpConnection, request: httpcore.Request
    ) -> AsyncIterator[httpcore.Response]:
        for _ in range(4):  # Until our side of the handshake has been sent.
            await asyncio.sleep(0)
        asks.set()
        agreed.wait(60)
        async with send(connection, request) as response:
            yield response

    monkeypatch.setattr(HttpConnection, "response", send_late)
    there = ExternalWeb(port=listening.getsockname()[1], scheme="https")
    web = there.web(keeps=True)
    web._tls = ssl.create_default_context(cafile=tmp_path / "server.pem")
    with listening:
        server = asyncio.create_task(asyncio.to_thread(serve))
        assert await post_status(web, there.url("/")) == 201
        await server
    await web.close()


async def test_connections_are_limited_and_closed_when_idle(
    taking: ExternalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "KEPT", 2)
    there, web = taking, taking.web(keeps=True)
    for host in ("a.test", "b.test", "c.test", "b.test"):
        assert await post_status(web, there.url("/", host)) == 201
    assert there.connections == 3
    # The least recently used connection made room.
    assert [one.origin.host for one in web._idle] == [b"c.test", b"b.test"]
    # Connections in use are closed with the client, too.
    free = asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await free.wait()
        writer.write(b"HTTP/1.1 201 X\r\nContent-Length: 0\r\n\r\n")

    there.pages["/slow"] = slowly
    other = there.web(keeps=True)
    asked = len(there.asked)
    waiting = asyncio.create_task(post_status(other, there.url("/slow")))
    async with asyncio.timeout(60):
        while len(there.asked) == asked:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0)
        await other.close()
        with pytest.raises(NotFetched):
            await waiting
        free.set()
        while there.open > 2:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0)
    # Nothing uses the client anymore.
    for connection in list(web._idle):
        assert connection.timer is not None
        assert connection.timer.when() - asyncio.get_running_loop().time() <= 30
        web._end(connection)
    monkeypatch.setattr(http_client, "IDLE_SECONDS", 0.0)
    assert await post_status(web, there.url("/")) == 201
    async with asyncio.timeout(60):
        while web._idle or there.open:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0)
    await web.close()
