"""Web Push: encryption for a device (RFC 8291), and authorization of this server (RFC 8292)."""

import base64
import hashlib
import os
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:  # Imported where it's used, because that is slow.
    from cryptography.hazmat.primitives.asymmetric import ec

MAX_PAYLOAD: Final = 3900
"""Largest payload in bytes: encrypted, it stays below the 4096 that every push service accepts."""
TOKEN_SECONDS: Final = 12 * 3600
"""The lifetime of a token in seconds. Services accept up to a day."""
RENEWED_SECONDS: Final = TOKEN_SECONDS // 2
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve P-256."""
_RECORD: Final = 4096
_ORIGINS: Final = 1000
"""The number of cached tokens."""
_PROGRAMS: Final = 1000
"""The number of cached public keys."""
_PADDED_TO: Final = 256
"""Payloads are padded to multiples of this, to hide their length."""


def encrypted(payload: bytes, p256dh: bytes, auth: bytes) -> bytes:
    """Encrypt the payload for a device's public key and secret, as the body of a request with
    `Content-Encoding: aes128gcm`. Raise ValueError for an invalid key, and for a payload that is
    too long."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError("the payload is too long")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

    theirs = _public_key(p256dh)
    once = ec.generate_private_key(ec.SECP256R1())
    public = _point(once.public_key())
    shared = once.exchange(ec.ECDH(), theirs)
    material = HKDF(
        algorithm=hashes.SHA256(),
        length=32,
        salt=auth,
        info=b"WebPush: info\0" + p256dh + public,
    ).derive(shared)
    salt = os.urandom(16)
    pseudo = HKDF.extract(hashes.SHA256(), salt, material)
    key = HKDFExpand(hashes.SHA256(), 16, b"Content-Encoding: aes128gcm\0").derive(pseudo)
    nonce = HKDFExpand(hashes.SHA256(), 12, b"Content-Encoding: nonce\0").derive(pseudo)
    blank = min(-(len(payload) + 1) % _PADDED_TO, MAX_PAYLOAD - len(payload))
    sealed = AESGCM(key).encrypt(nonce, payload + b"\x02" + bytes(blank), None)
    return salt + _RECORD.to_bytes(4, "big") + bytes([len(public)]) + public + sealed


class PushKey:
    """The server's key for push services. Devices subscribe with its public key, so services accept
    their pushes only from this server."""

    def __init__(self, seed: bytes) -> None:
        self._number = int.from_bytes(hashlib.sha512(seed).digest(), "big") % (_ORDER - 1) + 1
        self._known: dict[str, tuple[float, str]] = {}

    @cached_property
    def _key(self) -> "ec.EllipticCurvePrivateKey":
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.derive_private_key(self._number, ec.SECP256R1())

    @cached_property
    def public(self) -> str:
        """The public key in base64url."""
        return _text(_point(self._key.public_key()))

    def authorization(self, endpoint: str, contact: str, now: float) -> str:
        """Return the `Authorization` header for an endpoint. `contact` is a `mailto:` or `https:`
        address for the service's operators, and `now` is in UNIX seconds."""
        parts = urlsplit(endpoint)
        origin = f"{parts.scheme}://{parts.netloc}"
        until, header = self._known.get(origin, (0.0, ""))
        if until <= now:
            header = f"vapid t={self._token(origin, contact, now)}, k={self.public}"
            if len(self._known) >= _ORIGINS:
                self._known.clear()
            self._known[origin] = now + RENEWED_SECONDS, header
        return header

    def _token(self, origin: str, contact: str, now: float) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        head = {"typ": "JWT", "alg": "ES256"}
        claims = {"aud": origin, "exp": int(now) + TOKEN_SECONDS, "sub": contact}
        said = ".".join(_text(msgspec.json.encode(part)) for part in (head, claims))
        r, s = decode_dss_signature(self._key.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{said}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@lru_cache(_PROGRAMS)
def _public_key(point: bytes) -> "ec.EllipticCurvePublicKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _point(key: "ec.EllipticCurvePublicKey") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
