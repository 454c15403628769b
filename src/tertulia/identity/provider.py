"""The interface of identity providers, and requests to them."""

from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tertulia.model.errors import Unavailable
from tertulia.model.identities import ProvenIdentity
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, WebResponse

SECONDS: Final = 10.0
"""Timeout of one request to a provider."""
LOGOUT_TOKEN_SECONDS: Final = 3600
"""How long a logout token is accepted, and remembered so that it counts once."""
MAX_RESPONSE: Final = 1024 * 1024
"""Largest response of a provider, in bytes."""
Claims = Mapping[str, Any]
"""A provider's statements about a person, a token, or itself."""


class NotProven(Exception):
    """The provider's response doesn't prove who the person is. `str(error)` is only for the log,
    because it may help an attacker."""


class ProviderDown(Unavailable):
    """The provider doesn't respond, or responds with an error."""

    def __init__(self, title: str, reason: str) -> None:
        """`reason` is for the log."""
        super().__init__(
            f"{title} isn't responding. Try again in a few minutes, or sign in another way."
        )
        self.reason = reason


class AuthorizationRequest(Struct, frozen=True, kw_only=True):
    """One attempt to sign in. Its secrets are known only to this server and the browser."""

    state: str
    nonce: str
    verifier: str
    """The code verifier of PKCE (RFC 7636)."""
    redirect_url: str


class ProviderSignIn(Struct, frozen=True, kw_only=True):
    """The result of a sign-in at a provider."""

    identity: ProvenIdentity
    session: str = ""
    """The provider's ID of the session, which its logout tokens contain; may be empty."""


class ProviderLogout(Struct, frozen=True, kw_only=True):
    """A provider's message that someone signed out at the provider."""

    token_id: str
    """Unique. Each token counts once."""
    subject: str = ""
    session: str = ""
    """The provider's ID of the session. At least one of the two fields is set."""


class Provider(Protocol):
    """An identity provider. All methods raise ProviderDown."""

    async def url(self, request: AuthorizationRequest) -> str:
        """Return the URL to redirect the browser to."""

    async def signed_in(
        self, request: AuthorizationRequest, answer: Mapping[str, str]
    ) -> ProviderSignIn:
        """Return the person who signed in. `answer` are the parameters of the redirect back, whose
        `state` has been checked. Raises NotProven."""

    async def logout_url(self, back: str) -> str:
        """Return the URL that signs the browser out at the provider and then leads to `back`; empty
        if the provider doesn't support this."""

    async def logged_out(self, token: str) -> ProviderLogout:
        """Return the content of a logout token. Raises NotProven."""

    async def check(self) -> str:
        """Query the provider, and return a short summary of the result."""


class ProviderWeb:
    """Requests to one provider."""

    def __init__(self, title: str, web: Web) -> None:
        self.title = title
        self._web = web

    def down(self, reason: str) -> ProviderDown:
        return ProviderDown(self.title, reason)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        """Return the JSON at the URL. Raises ProviderDown."""
        return await self._json("GET", url, b"", headers or {})

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the JSON response to a form. Raises ProviderDown; or NotProven for an error for
        which the provider gives a reason."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._json("POST", url, urlencode(form).encode(), kind | dict(headers or {}))

    async def document(self, url: str) -> bytes:
        """Return the content at the URL. Raises ProviderDown."""
        response = await self._send("GET", url, b"", {"Accept": "*/*"})
        if response.status != 200:
            raise self.down(f"{url}: status {response.status}")
        return response.body

    async def _json(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Any:
        response = await self._send(method, url, body, headers)
        try:
            decoded = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and isinstance(reason := decoded.get("error"), str):
            about = decoded.get("error_description", "")
            raise NotProven(f"{reason[:100]}: {str(about)[:300]}")
        if response.status != 200 or decoded is None:
            raise self.down(f"{url}: status {response.status}, or not JSON")
        return decoded

    async def _send(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> WebResponse:
        try:
            return await self._web.send(
                url, body, headers, seconds=SECONDS, limit=MAX_RESPONSE, method=method
            )
        except NotFetched as error:
            raise self.down(f"{url}: {error}") from None
        except Unavailable as error:
            raise self.down(str(error)) from None
