"""JSON web tokens (RFC 7519) that another program has signed with a secret which it shares with
this server: HMAC alone, so there is one kind of key."""

import base64
import hmac
from collections.abc import Mapping
from typing import Any, Final

import msgspec

MAX_TOKEN: Final = 10_000
"""Characters of a token that is looked at."""
_DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
LEEWAY: Final = 30
"""Seconds by which the clocks of two machines may differ."""


class BadToken(Exception):
    """The token is none, was signed by somebody else, or is not valid now. `str(error)` is a
    sentence for a person."""


def claims_of(token: str, secret: str, now: float) -> Mapping[str, Any]:
    """What the token says. `now` is in UNIX seconds. Raises BadToken."""
    if len(token) > MAX_TOKEN or token.count(".") != 2:
        raise BadToken("This is no JSON web token.")
    said, _, signature = token.rpartition(".")
    header, _, payload = said.partition(".")
    digest = _DIGESTS.get(str(_object(header).get("alg")))
    if digest is None:
        raise BadToken("The token must be signed by HS256, HS384 or HS512.")
    own = hmac.digest(secret.encode(), said.encode(), digest)
    if not hmac.compare_digest(own, _bytes(signature)):
        raise BadToken("The token was not signed with the secret of this server.")
    claims = _object(payload)
    if not _is_time(claims, "exp") or not _is_time(claims, "nbf"):
        raise BadToken("The token's times cannot be read.")
    if "exp" in claims and now >= claims["exp"] + LEEWAY:
        raise BadToken("The token has expired.")
    if "nbf" in claims and now < claims["nbf"] - LEEWAY:
        raise BadToken("The token is not valid yet.")
    return claims


def _is_time(claims: Mapping[str, Any], name: str) -> bool:
    value = claims.get(name, 0)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(_bytes(part))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadToken("This is no JSON web token.") from None
    if not isinstance(found, dict):
        raise BadToken("This is no JSON web token.")
    return found


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part.encode() + b"=" * (-len(part) % 4), b"-_", validate=True)
    except ValueError:
        raise BadToken("This is no JSON web token.") from None
