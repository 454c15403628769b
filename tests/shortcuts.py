"""What the tests' own process does in less time than a program: what is the same for every node, is
done once for all nodes that it opens, and passwords are hashed as quickly as can be.

The servers that tests start are programs, and do as they always do.
"""

import inspect
import os
import ssl
from functools import cache
from types import FunctionType
from typing import Any

import argon2
import certifi
import httpx
from argon2 import PasswordHasher
from httpx._transports import default
from starlette import routing

from tertulia.markup import markdown
from tertulia.outbound import http_client
from tertulia.service.credentials import Vault
from tertulia.store import readers
from tertulia.wire.http import request_head, request_measures


def take() -> None:
    """Take these shortcuts, in this process and from now on."""
    # As the server does before its first request to others: tests ask by httpx too.
    http_client.note_what_is_missing()
    # The patterns of all paths: a fifth of what it takes to open a node.
    routing.compile_path = cache(routing.compile_path)
    request_head.compile_path = routing.compile_path  # type: ignore[attr-defined]  # who imported it
    # Whether a page is a coroutine, which is asked of each in a roundabout way: a twelfth of it.
    # (It is no overload, and not exported: Starlette's own module has imported it.)
    routing.is_async_callable = _is_async_callable  # type: ignore[attr-defined,assignment]
    # The same paths each time.
    request_measures.groups = cache(request_measures.groups)  # type: ignore[assignment]
    # Those who are there when an organization is copied have the same keys in each copy.
    Vault._opened = _opened  # type: ignore[assignment,method-assign]
    # What it parses, it keeps nothing of.
    markdown._parser = cache(markdown._parser)
    # Whom the web trusts is read from a file of 200 KiB.
    httpx.create_ssl_context = _create_ssl_context
    default.create_ssl_context = _create_ssl_context  # type: ignore[attr-defined]  # who imported it
    argon2.PasswordHasher = QuickHasher  # type: ignore[misc,assignment]
    # On a busy machine, a search of a few messages may take a second.
    readers.SEARCH_SECONDS = 30.0


_create_any_ssl_context = httpx.create_ssl_context
_TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def _create_ssl_context(
    verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True
) -> ssl.SSLContext:
    """The same one for all who want nothing special: none of them changes what it trusts."""
    if verify is not True or cert:
        return _create_any_ssl_context(verify, cert, trust_env)
    told = (os.environ.get(name) for name in _TRUST)
    return _usual_ssl_context(trust_env, certifi.where(), *told)


@cache
def _usual_ssl_context(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    return _create_any_ssl_context(trust_env=trust_env)


_open_any = Vault._opened
_opened_texts: dict[tuple[bytes, str], str | None] = {}


def _opened(vault: Vault, sealed: str) -> str | None:
    key = vault._sealing, sealed
    if key not in _opened_texts:
        _opened_texts[key] = _open_any(vault, sealed)
    return _opened_texts[key]


_is_any_async_callable = routing.is_async_callable  # type: ignore[attr-defined]  # imported there


def _is_async_callable(called: Any) -> bool:
    if type(called) is FunctionType and called.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return bool(_is_any_async_callable(called))


class QuickHasher(PasswordHasher):
    """Hashes that are easy to guess from, which a real one takes a thousand times as long for."""

    def __init__(self, time_cost: int, memory_cost: int, parallelism: int) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.asked_for = (time_cost, memory_cost, parallelism)
        """What the real one would take: passes, KiB and threads."""
