"""A local web server that plays many sites, for tests of outgoing requests."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tertulia.outbound.addresses import Address, is_public
from tertulia.outbound.http_client import MAX_CONCURRENT, Web

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
Say = Callable[[asyncio.StreamWriter], object]
"""Writes a special response. If it returns an awaitable, that is awaited."""


@dataclass(frozen=True)
class Page:
    """The response at a path."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def redirect(to: str, status: int = 302) -> Page:
    """A redirect."""
    return Page(status=status, headers={"Location": to})


OWN_HOST = "chat.example"
"""The name of the server that sends the requests."""


@dataclass
class ExternalWeb:
    """The server. Every name ending in `.test` resolves to it. `others` are more names and what
    they resolve to, a list for each lookup."""

    port: int = 0
    scheme: str = "http"
    pages: dict[str, Page | Say] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The requested paths."""
    heads: list[str] = field(default_factory=list)
    """The requests' headers with their first lines."""
    requests: list[bytes] = field(default_factory=list)
    """The same with their bodies."""
    others: dict[str, list[list[str]]] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    """The resolved addresses of the requesting server, by its name."""
    resolved: list[str] = field(default_factory=list)
    """The names that were resolved."""
    answers_on_each: int = 1
    """Requests per connection before it's closed."""
    connections: int = 0
    """The number of connections."""
    open: int = 0
    """The number of open connections."""

    def url(self, path: str, host: str = "pages.test") -> str:
        """The URL of a path."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    def web(self, *ports: int, max_concurrent: int = MAX_CONCURRENT, keeps: bool = False) -> Web:
        """The web as a node sees it: this machine counts as public, and other private addresses
        don't. `ports` are allowed in addition; `max_concurrent` and `keeps` are passed on."""
        return Web(
            f"http://{OWN_HOST}",
            resolve=self._resolve,
            may_ask=_is_here_or_public,
            ports=(80, 443, self.port, *ports),
            max_concurrent=max_concurrent,
            keeps=keeps,
        )

    async def _resolve(self, host: str, port: int) -> Sequence[Address]:
        if host == OWN_HOST:
            return [ip_address(text) for text in self.own]
        self.resolved.append(host)
        if host in self.others:
            found = self.others[host]
            texts = found.pop(0) if len(found) > 1 else found[0]
            return [ip_address(text) for text in texts]
        if host.endswith(".test"):
            return [ip_address("127.0.0.1")]
        raise OSError("no such host")

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        self.open += 1
        try:
            for _ in range(self.answers_on_each):
                await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client has closed it.
        except RuntimeError:  # uvloop's error for a closed connection.
            if not writer.is_closing():
                raise
        finally:
            self.open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        self.asked.append(path)
        self.heads.append(head)
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        self.requests.append(head.encode() + await reader.readexactly(int(length or 0)))
        page = self.pages.get(path, Page(b"<p>none</p>", status=404))
        if not isinstance(page, Page):
            done = page(writer)
            if asyncio.iscoroutine(done):
                await done
        else:
            headers = {
                "Content-Type": page.kind,
                "Content-Length": str(len(page.body)),
                **page.headers,
            }
            lines = [f"HTTP/1.1 {page.status} X", *(f"{n}: {v}" for n, v in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode() + page.body)
        await writer.drain()


def _is_here_or_public(address: Address) -> bool:
    return address == ip_address("127.0.0.1") or is_public(address)


@asynccontextmanager
async def external_web(context: ssl.SSLContext | None = None) -> AsyncIterator[ExternalWeb]:
    """The server, running within the context."""
    served = ExternalWeb(scheme="http" if context is None else "https")
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0, ssl=context)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()


def unvouched(directory: Path) -> ssl.SSLContext:
    """The certificate authority of a server whose certificate for `pages.test` is self-signed:
    `server.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pages.test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("pages.test")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    place = directory / "server.pem"
    place.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    return context
