"""A push bouncer for tests, and a phone that registers there."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from nacl.public import PrivateKey, SealedBox
from nacl.secret import SecretBox

REGISTER, NOTIFY = (f"/api/v1/remotes/push/e2ee/{name}" for name in ("register", "notify"))
PROOF = "Basic " + base64.b64encode(b"server-1:hush").decode()


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass
class Phone:
    """A phone's side, as Zulip's apps do it."""

    token: str
    kind: str = "fcm"
    key: bytes = b"k" * 32
    key_id: int = 7

    @property
    def token_id(self) -> str:
        return text(hashlib.sha256(self.token.encode()).digest()[:8])

    @property
    def key_parameters(self) -> dict[str, Any]:
        return {"push_key_id": self.key_id, "push_key": text(b"\x31" + self.key)}

    def token_parameters(self, bouncer: "Bouncer") -> dict[str, Any]:
        registration = {"token": self.token, "token_kind": self.kind, "timestamp": 1}
        sealed = SealedBox(bouncer.key.public_key).encrypt(json.dumps(registration).encode())
        return {
            "token_kind": self.kind,
            "token_id": self.token_id,
            "bouncer_public_key": bouncer.public_key,
            "encrypted_push_registration": text(sealed),
        }

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """The decrypted payload of a request to notify the phone."""
        assert request["token_id"] == self.token_id
        payload = request["payload"]
        assert payload["push_key_id"] == self.key_id
        sealed = base64.b64decode(payload["encrypted_data"])
        found: dict[str, Any] = json.loads(SecretBox(self.key).decrypt(sealed))
        return found


@dataclass
class Bouncer:
    """The bouncer: what it was sent, and how it responds."""

    url: str = ""
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    answers: dict[str, tuple[int, dict[str, Any] | bytes]] = field(default_factory=dict)
    """Status and body by path, where the bouncer doesn't just succeed."""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The decrypted registrations by token ID."""
    notified: list[dict[str, Any]] = field(default_factory=list)
    """The push requests."""
    bodies: list[bytes] = field(default_factory=list)

    @property
    def public_key(self) -> str:
        return text(bytes(self.key.public_key))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode()
                first, *lines = head.split("\r\n")
                headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                self.bodies.append(body)
                status, answer = self._answer(first.split(" ")[1], headers, body)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(
        self, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, Any] | bytes]:
        if path in self.answers:
            return self.answers[path]
        if headers["authorization"] != PROOF:
            return 401, {"result": "error", "code": "INVALID_ZULIP_SERVER", "msg": "Who?"}
        return self._registered(body) if path == REGISTER else self._notified(body)

    def _registered(self, body: bytes) -> tuple[int, dict[str, Any]]:
        form = dict(parse_qsl(body.decode()))
        if form["bouncer_public_key"] != self.public_key:
            return 400, {"code": "INVALID_BOUNCER_PUBLIC_KEY", "msg": "Invalid"}
        sealed = base64.b64decode(form["encrypted_push_registration"])
        self.tokens[form["token_id"]] = json.loads(SealedBox(self.key).decrypt(sealed))
        return 200, {"result": "success", "msg": ""}

    def _notified(self, body: bytes) -> tuple[int, dict[str, Any]]:
        requests = json.loads(body)["push_requests"]
        self.notified += requests
        gone = {one["token_id"] for one in requests} - self.tokens.keys()
        return 200, {"result": "success", "msg": "", "delete_token_ids": sorted(gone)}


@asynccontextmanager
async def push_bouncer() -> AsyncIterator[Bouncer]:
    """The bouncer, running within the context."""
    bouncer = Bouncer()
    server = await asyncio.start_server(bouncer.serve, "127.0.0.1", 0)
    bouncer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield bouncer
    finally:
        server.close()
