"""Fast requests to an application in the same process. Tests send tens of thousands, and an HTTP
client would take most of the time."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlencode

import httpx

_PLAIN = re.compile(r"[\w/.~-]*", re.ASCII)
"""Paths that need no quoting."""
_FORM = (b"content-type", b"application/x-www-form-urlencoded")


@dataclass(frozen=True)
class _Url:
    scheme: str
    host: str
    port: int | None
    path: str
    query: bytes

    @property
    def raw_path(self) -> bytes:
        return self.path.encode()


@dataclass(frozen=True)
class _Headers:
    raw: list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class _Request:
    """The parts of a request that the ASGI transport reads."""

    method: str
    url: _Url
    headers: _Headers
    stream: httpx.ByteStream


async def called(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    values: Mapping[str, str],
    auth: tuple[str, str] | None,
) -> httpx.Response | None:
    """Return the response that the client would get. `values` go into the query of a GET or HEAD,
    otherwise into a form. Return None if the client has to send the request: if it has cookies with
    a path, if the path needs quoting, or if the application isn't in this process."""
    transport = http._transport
    if type(transport) is not httpx.ASGITransport or not _PLAIN.fullmatch(path):
        return None
    cookies = _cookies(http)
    if cookies is None:
        return None
    sent = urlencode(values).encode()
    headers = [*_defaults(http), *cookies]
    if auth is not None:
        headers.append((b"authorization", _basic(*auth)))
    query, body = (sent, b"") if method in {"GET", "HEAD"} else (b"", sent)
    if body:
        headers.append(_FORM)
    if method in {"POST", "PUT", "PATCH"} or body:
        headers.append((b"content-length", str(len(body)).encode()))
    place = http.base_url
    request = _Request(
        method,
        _Url(place.scheme, place.host, place.port, path, query),
        _Headers(headers),
        httpx.ByteStream(body),
    )
    response = await transport.handle_async_request(cast(Any, request))
    await response.aread()
    if "set-cookie" in response.headers:
        response.request = httpx.Request(method, place.join(path))
        http.cookies.extract_cookies(response)
    return response


def _defaults(http: httpx.AsyncClient) -> list[tuple[bytes, bytes]]:
    return [(b"host", http.base_url.netloc), *http.headers.raw]


def _cookies(http: httpx.AsyncClient) -> list[tuple[bytes, bytes]] | None:
    """Return the Cookie header of a client that sends all cookies to the whole site, or None if it
    has other cookies."""
    sent = []
    for cookie in http.cookies.jar:
        is_plain = cookie.path == "/" and cookie.domain == http.base_url.host
        if not is_plain or cookie.domain_specified or cookie.secure or cookie.is_expired():
            return None
        sent.append(f"{cookie.name}={cookie.value}")
    return [(b"cookie", "; ".join(sent).encode())] if sent else []


@lru_cache
def _basic(name: str, secret: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{name}:{secret}".encode())
