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
MAX_SECONDS: Final = 24 * 3600
"""How far ahead a token may expire: one that leaks can be used no longer."""


class BadToken(Exception):
    """The token is none, was signed by somebody else, or is not valid now. `str(error)` is a
    sentence for a person."""


def claims_of(token: str, secret: str, now: float) -> Mapping[str, Any]:
    """What the token says. `now` is in UNIX seconds. Raises BadToken, also for a token that does
    not expire within `MAX_SECONDS`."""
    if len(token) > MAX_TOKEN or token.count(".") != 2 or not token.isascii():
        raise BadToken("This isn't a valid JSON web token.")
    said, _, signature = token.rpartition(".")
    header, _, payload = said.partition(".")
    digest = _DIGESTS.get(str(_object(header).get("alg")))
    if digest is None:
        raise BadToken("The token must be signed with HS256, HS384, or HS512.")
    own = hmac.digest(secret.encode(), said.encode(), digest)
    if not hmac.compare_digest(own, _bytes(signature)):
        raise BadToken("The token's signature doesn't match this server's secret.")
    claims = _object(payload)
    expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        raise BadToken("The token needs an expiration time (the exp claim).")
    if now >= expires + LEEWAY:
        raise BadToken("The token has expired.")
    if expires > now + MAX_SECONDS + LEEWAY:
        raise BadToken(f"The token must expire within {MAX_SECONDS // 3600} hours.")
    if any(time is not None and now < time - LEEWAY for time in (begins, issued)):
        raise BadToken("The token isn't valid yet. Compare the clocks of the two servers.")
    return claims


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """The claim's time in UNIX seconds, if the token has it."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise BadToken("The token's time claims aren't valid.")
    return value


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(_bytes(part))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadToken("This isn't a valid JSON web token.") from None
    if not isinstance(found, dict):
        raise BadToken("This isn't a valid JSON web token.")
    return found


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part.encode() + b"=" * (-len(part) % 4), b"-_", validate=True)
    except ValueError:
        raise BadToken("This isn't a valid JSON web token.") from None
