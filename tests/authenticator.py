"""An authenticator with passkeys that behaves like a browser's."""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, WITH_KEY = 1, 4, 64


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """A device with one passkey."""

    origin: str = "http://chat.test"
    host: str = "chat.test"
    verifies: bool = True
    """Whether it verifies the person who uses it."""
    count: int = 0
    """The number of times that it was used."""
    counts: bool = True
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    handle: str = ""
    """The server's ID of the account that the passkey is for."""

    def created(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the response to `navigator.credentials.create`."""
        self.handle = options["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        public = {
            1: 2,
            3: -7,
            -1: 1,
            -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }
        length = len(self.credential_id).to_bytes(2, "big")
        known = bytes(16) + length + self.credential_id + cbor2.dumps(public)
        statement = {"fmt": "none", "attStmt": {}, "authData": self._data(WITH_KEY) + known}
        return self._credential(
            {
                "clientDataJSON": encoded(self._client("webauthn.create", options)),
                "attestationObject": encoded(cbor2.dumps(statement)),
                "transports": ["internal", "new-one"],
            }
        )

    def answered(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the response to `navigator.credentials.get`."""
        self.count += self.counts
        client, data = self._client("webauthn.get", options), self._data()
        signed = data + hashlib.sha256(client).digest()
        return self._credential(
            {
                "clientDataJSON": encoded(client),
                "authenticatorData": encoded(data),
                "signature": encoded(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
                "userHandle": self.handle,
            }
        )

    def _credential(self, response: dict[str, Any]) -> dict[str, Any]:
        name = encoded(self.credential_id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}

    def _client(self, kind: str, options: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(said).encode()

    def _data(self, flags: int = 0) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies else 0)
        host = hashlib.sha256(self.host.encode()).digest()
        return host + bytes([flags]) + self.count.to_bytes(4, "big")
