"""Checking passwords and API keys on the server that the organization was imported from."""

from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tertulia.model.errors import Unavailable
from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, WebResponse
from tertulia.service.config import Config

VERIFYING: Final = "X-Tertulia-Verifying"
"""A header of the requests, so that a server that is configured as its own previous server doesn't
send requests to itself."""
_SECONDS: Final = 10.0
_MAX_RESPONSE: Final = 65_536
_MAX_KEY: Final = 128
_NETWORKS: Final = "0.0.0.0/0, ::/0"
"""All networks: the operator sets the address, so it can be private, or this machine."""


class _KeyResponse(Struct):
    api_key: str
    email: str


class _OwnUserResponse(Struct):
    email: str
    delivery_email: str | None = None


class PreviousServer:
    """A Zulip server that is asked through its HTTP API, only about imported accounts."""

    def __init__(self, url: str, web: Web) -> None:
        self._api = f"{url.rstrip('/')}/api/v1"
        self._web = web

    async def key_with_password(self, address: str, password: str) -> str | None:
        """Return the account's API key if this is its password; otherwise None. Raise Unavailable
        if the server can't tell now."""
        response = await self._asked(
            "POST",
            "/fetch_api_key",
            _KeyResponse,
            urlencode({"username": address, "password": password}).encode(),
            {"Content-Type": "application/x-www-form-urlencoded"},
        )
        if response is None or response.email.casefold() != address.casefold():
            return None
        return response.api_key if is_key(response.api_key) else None

    async def is_key_of(self, address: str, authorization: str) -> bool:
        """Whether the Authorization header has the API key of the account with this email address.
        Raise Unavailable if the server can't tell now."""
        response = await self._asked(
            "GET", "/users/me", _OwnUserResponse, b"", {"Authorization": authorization}
        )
        bot_email = "" if response is None else str(response.delivery_email or response.email)
        return bot_email.casefold() == address.casefold()

    async def close(self) -> None:
        await self._web.close()

    async def _asked(
        self, method: str, path: str, form: type[Any], body: bytes, headers: dict[str, str]
    ) -> Any:
        """Return the response, or None if the server refuses the credentials."""
        try:
            response = await self._web.send(
                self._api + path,
                body,
                {**headers, VERIFYING: "1"},
                seconds=_SECONDS,
                limit=_MAX_RESPONSE,
                method=method,
            )
        except NotFetched:
            raise _unavailable() from None
        if response.status in {400, 401, 403} and _is_error(response):
            return None
        if response.status != 200:
            raise _unavailable()
        try:
            return msgspec.json.decode(response.body, type=form)
        except (msgspec.DecodeError, UnicodeError):
            raise _unavailable() from None


def is_key(text: str) -> bool:
    """Whether the text has the form of an API key."""
    return 16 <= len(text) <= _MAX_KEY and text.isascii() and text.isalnum()


def _is_error(response: WebResponse) -> bool:
    """Whether the error comes from the API, not from a proxy in front of it."""
    try:
        decoded = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(decoded, dict) and decoded.get("result") == "error"


def _unavailable() -> Unavailable:
    return Unavailable(
        "Your organization's previous server isn't responding, so your password or API key can't be"
        " checked. Try again in a few minutes."
    )


def previous_server(config: Config) -> PreviousServer | None:
    """Return the configured previous server, if any."""
    if not config.moving_from_url:
        return None
    web = Web(config.external_url, ports=None, networks=addresses.networks(_NETWORKS))
    return PreviousServer(config.moving_from_url, web)
