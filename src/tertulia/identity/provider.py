"""What an identity provider does, and requests to one."""

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
"""How long a logout token is accepted, and remembered, so that it counts once."""
MAX_RESPONSE: Final = 1024 * 1024
"""Longest response of a provider, in bytes."""
Claims = Mapping[str, Any]
"""What a provider says about a person, a token, or itself."""


class NotProven(Exception):
    """The provider's answer doesn't prove who the person is. `str(error)` is for the log: it may
    help an attacker."""


class ProviderDown(Unavailable):
    """The provider doesn't respond, or not as it should."""

    def __init__(self, title: str, reason: str) -> None:
        """`reason` is for the log."""
        super().__init__(
            f"{title} isn't responding. Try again in a few minutes, or sign in in another way."
        )
        self.reason = reason


class AuthorizationRequest(Struct, frozen=True, kw_only=True):
    """One attempt to sign in, whose secrets only this server and the browser know."""

    state: str
    nonce: str
    verifier: str
    """Of PKCE (RFC 7636)."""
    redirect_url: str


class SignedInThere(Struct, frozen=True, kw_only=True):
    """The result of a sign-in at a provider."""

    identity: ProvenIdentity
    session: str = ""
    """The provider's ID of the session there, which its logout tokens name; may be empty."""


class LogoutThere(Struct, frozen=True, kw_only=True):
    """A provider's message that someone signed out there."""

    token_id: str
    """Unique; a token counts once."""
    subject: str = ""
    session: str = ""
    """At least one of both is set."""


class Provider(Protocol):
    """An identity provider. All methods raise ProviderDown."""

    async def url(self, request: AuthorizationRequest) -> str:
        """Return where to send the browser."""

    async def signed_in(
        self, request: AuthorizationRequest, answer: Mapping[str, str]
    ) -> SignedInThere:
        """Return who came back. `answer` are the parameters, whose `state` was checked. Raises
        NotProven."""

    async def logout_url(self, back: str) -> str:
        """Return where to send the browser to sign out there, and then to `back`; empty if the
        provider can't."""

    async def logged_out(self, token: str) -> LogoutThere:
        """Return what a logout token says. Raises NotProven."""

    async def check(self) -> str:
        """Ask the provider, and return what it said in a few words."""


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
        """Return the JSON response to a form. Raises ProviderDown; and NotProven for an error that
        the provider gives a reason for."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._json("POST", url, urlencode(form).encode(), kind | dict(headers or {}))

    async def document(self, url: str) -> bytes:
        """Return what is at the URL. Raises ProviderDown."""
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
