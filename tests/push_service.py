"""A push service for tests, and a browser that subscribes there."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand


def text(data: bytes) -> str:
    """Encode as base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def data(encoded: str) -> bytes:
    """Decode base64url."""
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public key."""
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


@dataclass
class Browser:
    """A browser's side of a subscription."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    auth: bytes = b"0123456789abcdef"

    @property
    def keys(self) -> dict[str, str]:
        """The keys that are sent to the server."""
        return {"p256dh": text(point(self.key)), "auth": text(self.auth)}

    def decrypted(self, body: bytes) -> bytes:
        """The decrypted payload (RFC 8291 and RFC 8188)."""
        salt, size, sender = body[:16], body[20], body[21 : 21 + body[20]]
        assert int.from_bytes(body[16:20], "big") >= len(body) - 21 - size
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        info = b"WebPush: info\0" + point(self.key) + sender
        shared = self.key.exchange(ec.ECDH(), theirs)
        material = HKDF(hashes.SHA256(), 32, self.auth, info).derive(shared)
        pseudo = HKDF.extract(hashes.SHA256(), salt, material)
        key = HKDFExpand(hashes.SHA256(), 16, b"Content-Encoding: aes128gcm\0").derive(pseudo)
        nonce = HKDFExpand(hashes.SHA256(), 12, b"Content-Encoding: nonce\0").derive(pseudo)
        return AESGCM(key).decrypt(nonce, body[21 + size :], None).rstrip(b"\0")[:-1]


@dataclass
class Pushed:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    def verified(self, public_key: str) -> dict[str, Any]:
        """The claims of its signature, which must match this key (RFC 8292)."""
        scheme, _, rest = self.headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert (scheme, parts["k"]) == ("vapid", public_key)
        head, claims, signature = parts["t"].split(".")
        assert json.loads(data(head)) == {"typ": "JWT", "alg": "ES256"}
        r, s = data(signature)[:32], data(signature)[32:]
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data(public_key)).verify(
            encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big")),
            f"{head}.{claims}".encode(),
            ec.ECDSA(hashes.SHA256()),
        )
        found: dict[str, Any] = json.loads(data(claims))
        return found


@dataclass
class PushService:
    """The service: the received requests, and its responses."""

    url: str = ""
    statuses: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and additional headers by path. The default is 201."""
    pushed: list[Pushed] = field(default_factory=list)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """Paths whose responses wait for these events."""

    answers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released once per response."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode().split("\r\n")
        headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines)}
        path = first.split(" ")[1]
        body = await reader.readexactly(int(headers["content-length"]))
        self.pushed.append(Pushed(path, headers, body))
        if path in self.held:
            await self.held[path].wait()
        status, more = self.statuses.get(path, (201, ""))
        writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        self.answers.release()


@asynccontextmanager
async def push_service() -> AsyncIterator[PushService]:
    """The service, running within the context."""
    service = PushService()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()
