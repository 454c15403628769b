"""Checking the signatures of services."""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final

from tertulia.integrations.incoming import SignatureCheck, WebhookRequest

TOLERANCE: Final = 300.0
"""Largest age of a signature with a time."""


def same(text: str, other: str) -> bool:
    """Compare texts in constant time."""
    return hmac.compare_digest(text.encode(), other.encode())


def hex_of(secret: str, said: bytes, algorithm: str = "sha256") -> str:
    """The HMAC in hexadecimal."""
    return hmac.new(secret.encode(), said, algorithm).hexdigest()


def hmac_hex(header: str, prefix: str = "", algorithm: str = "sha256") -> SignatureCheck:
    """The body's HMAC in hexadecimal, with a prefix."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        expected = prefix + hex_of(secret, request.body, algorithm)
        return same(expected, request.header(header).strip())

    return check


def hmac_base64(
    header: str, algorithm: str = "sha256", *, with_url: bool = False
) -> SignatureCheck:
    """The HMAC of the body, and optionally the URL, in Base64."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        said = request.body + (request.url.encode() if with_url else b"")
        digest = hmac.new(secret.encode(), said, algorithm).digest()
        return same(base64.b64encode(digest).decode(), request.header(header).strip())

    return check


def any_of(*checks: SignatureCheck) -> SignatureCheck:
    """Any of several signatures."""

    def check(secret: str, request: WebhookRequest, now: float) -> bool:
        return any(check(secret, request, now) for check in checks)

    return check


def token(header: str) -> SignatureCheck:
    """The secret as a token."""
    return lambda secret, request, _: same(secret, request.header(header).strip())


def versions(header: str) -> SignatureCheck:
    """`v1=…`, separated by commas: one of them must match."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        expected = f"v1={hex_of(secret, request.body)}"
        sent = request.header(header).split(",")[:20]
        return any(same(expected, text.strip()) for text in sent)

    return check


def timed(header: str) -> SignatureCheck:
    """`t=…,v1=…`: the HMAC of the time and the body, at most `TOLERANCE` old."""

    def check(secret: str, request: WebhookRequest, now: float) -> bool:
        pairs = [text.strip().partition("=") for text in request.header(header).split(",")[:20]]
        sent_at = next((value for name, _, value in pairs if name == "t"), "")
        if not sent_at.isdecimal() or len(sent_at) > 15 or abs(now - int(sent_at)) > TOLERANCE:
            return False
        expected = hex_of(secret, sent_at.encode() + b"." + request.body)
        return any(same(expected, value) for name, _, value in pairs if name == "v1")

    return check


def web_token(header: str) -> SignatureCheck:
    """A JSON web token with the body's SHA-256."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        said, _dot, signature = request.header(header).strip().rpartition(".")
        digest = hmac.new(secret.encode(), said.encode(), "sha256").digest()
        expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if not same(expected, signature.rstrip("=")):
            return False
        body = hashlib.sha256(request.body).hexdigest()
        return same(body, str(_claims(said).get("sha256", "")))

    return check


def _claims(said: str) -> dict[str, object]:
    try:
        kind, _, encoded = said.partition(".")
        head = json.loads(base64.urlsafe_b64decode(kind + "=" * (-len(kind) % 4)))
        claims = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    is_usual = isinstance(head, dict) and head.get("alg") == "HS256"
    return claims if is_usual and isinstance(claims, dict) else {}
