"""An attempt to sign in at a provider. The browser keeps it until it comes back."""

import hmac
import secrets
from typing import Final, Self, TypeVar

import msgspec
from msgspec import Struct
from starlette.responses import Response

from tertulia.service.credentials import VaultError
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.wire.http import cookies
from tertulia.wire.http.request_head import cookie_name
from tertulia.wire.pages.form_flow import Link, PageRequest
from tertulia.wire.pages.sign_in_flow import SignInFlow

ATTEMPT_SECONDS: Final = 600
"""How long people may take at the provider."""
_COOKIE: Final = "tertulia_sign_in_"

T = TypeVar("T", bound=Struct)


class SignInAttempt(Struct, frozen=True, array_like=True):
    """Stored in a cookie, encrypted."""

    method: str
    state: str
    """The value that the provider's response must repeat. For SAML, the request's ID."""
    nonce: str
    verifier: str
    flow: SignInFlow
    at: int
    """When the attempt began, in UNIX seconds."""

    @classmethod
    def begin(cls, page: PageRequest, method: SignInMethod, flow: SignInFlow, state: str) -> Self:
        """Begin an attempt, and store it in the browser."""
        nonce, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        attempt = cls(method.name, state, nonce, verifier, flow, int(page.node.clock()))
        _set_cookie(page, method, sealed(page, attempt), ATTEMPT_SECONDS)
        return attempt

    @classmethod
    def end(cls, page: PageRequest, method: SignInMethod, state: str) -> Self | None:
        """Return the attempt with this state that the browser began with the method, or None if
        there is no recent one. The browser forgets it."""
        name = cookie_name(page.node.config, _COOKIE + method.name)
        attempt = unsealed(page, page.request.cookies.get(name, ""), cls)
        if attempt is None or attempt.method != method.name:
            return None
        if page.node.clock() - attempt.at > ATTEMPT_SECONDS:
            return None
        if not hmac.compare_digest(attempt.state.encode(), state.encode()):
            return None
        _set_cookie(page, method, "", 0)
        return attempt


def _set_cookie(page: PageRequest, method: SignInMethod, value: str, seconds: int) -> None:
    name = _COOKIE + method.name
    cookies.add_cookie(page.node.config, page.request, name, value, seconds)


def sealed(page: PageRequest, record: Struct) -> str:
    """Encrypt a record for a cookie or a URL."""
    return page.node.vault.sealed(msgspec.json.encode(record).decode())


def unsealed(page: PageRequest, text: str, kind: type[T]) -> T | None:
    """Return the encrypted record; None if this server didn't encrypt it, or it's of another
    kind."""
    try:
        return msgspec.json.decode(page.node.vault.unsealed(text) or b"", type=kind)
    except (VaultError, msgspec.DecodeError):
        return None


def expired(page: PageRequest, method: SignInMethod) -> Response:
    """Return the page that offers to try again."""
    return page.note(
        page.say("sign_in_over"),
        page.say("sign_in_over_text"),
        status=400,
        back=Link(path=method.path, words=page.say("try_again")),
    )
