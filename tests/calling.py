"""Requests to an application in this process, without what a client does for each of them: most of
the time that the plain ones would take, of which tests send tens of thousands."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlencode

import httpx

_PLAIN = re.compile(r"[\w/.~-]*", re.ASCII)
"""Paths that are sent as they are."""
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
    """What the transport to an application looks at."""

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
    """What is answered to the request that the client would send: with these values in the query
    of a GET or HEAD, and else as a form. None where that is the client's to say: where it has
    cookies that are not for all of the site, where the path has to be quoted, or where the
    application is not in this process."""
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
    """The header of a client whose cookies are sent with every request to the site; None where it
    has others."""
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
