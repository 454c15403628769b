"""Checking the signatures of services."""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final

from tertulia.integrations.incoming import SignatureCheck, WebhookRequest

TOLERANCE: Final = 300.0
"""The largest age of a signature with a time, in seconds."""


def same(text: str, other: str) -> bool:
    """Compare texts in constant time."""
    return hmac.compare_digest(text.encode(), other.encode())


def hex_of(secret: str, signed: bytes, algorithm: str = "sha256") -> str:
    """Return the HMAC in hexadecimal."""
    return hmac.new(secret.encode(), signed, algorithm).hexdigest()


def hmac_hex(header: str, prefix: str = "", algorithm: str = "sha256") -> SignatureCheck:
    """Check the body's HMAC in hexadecimal, with a prefix."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        expected = prefix + hex_of(secret, request.body, algorithm)
        return same(expected, request.header(header).strip())

    return check


def hmac_base64(
    header: str, algorithm: str = "sha256", *, with_url: bool = False
) -> SignatureCheck:
    """Check the HMAC of the body, and optionally the URL, in Base64."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        signed = request.body + (request.url.encode() if with_url else b"")
        digest = hmac.new(secret.encode(), signed, algorithm).digest()
        return same(base64.b64encode(digest).decode(), request.header(header).strip())

    return check


def any_of(*checks: SignatureCheck) -> SignatureCheck:
    """Accept any of several signatures."""

    def check(secret: str, request: WebhookRequest, now: float) -> bool:
        return any(check(secret, request, now) for check in checks)

    return check


def token(header: str) -> SignatureCheck:
    """Check that a header has the secret as a token."""
    return lambda secret, request, _: same(secret, request.header(header).strip())


def versions(header: str) -> SignatureCheck:
    """Check a header with `v1=…`, separated by commas. One of them must match."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        expected = f"v1={hex_of(secret, request.body)}"
        sent = request.header(header).split(",")[:20]
        return any(same(expected, text.strip()) for text in sent)

    return check


def timed(header: str) -> SignatureCheck:
    """Check a header with `t=…,v1=…`: the HMAC of the time and the body, at most `TOLERANCE`
    old."""

    def check(secret: str, request: WebhookRequest, now: float) -> bool:
        pairs = [text.strip().partition("=") for text in request.header(header).split(",")[:20]]
        sent_at = next((value for name, _, value in pairs if name == "t"), "")
        if not sent_at.isdecimal() or len(sent_at) > 15 or abs(now - int(sent_at)) > TOLERANCE:
            return False
        expected = hex_of(secret, sent_at.encode() + b"." + request.body)
        return any(same(expected, value) for name, _, value in pairs if name == "v1")

    return check


def web_token(header: str) -> SignatureCheck:
    """Check a JSON web token with the body's SHA-256."""

    def check(secret: str, request: WebhookRequest, _: float) -> bool:
        signed, _dot, signature = request.header(header).strip().rpartition(".")
        digest = hmac.new(secret.encode(), signed.encode(), "sha256").digest()
        expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if not same(expected, signature.rstrip("=")):
            return False
        body = hashlib.sha256(request.body).hexdigest()
        return same(body, str(_claims(signed).get("sha256", "")))

    return check


def _claims(signed: str) -> dict[str, object]:
    try:
        kind, _, encoded = signed.partition(".")
        head = json.loads(base64.urlsafe_b64decode(kind + "=" * (-len(kind) % 4)))
        claims = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    is_usual = isinstance(head, dict) and head.get("alg") == "HS256"
    return claims if is_usual and isinstance(claims, dict) else {}
