"""Shortcuts that make the tests' own process faster: values that are equal for all nodes are
computed once, and passwords get a fast hash. Servers that tests start are separate programs and
don't use them.
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
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from httpx._transports import default
from starlette import routing

from tertulia.log import health
from tertulia.markup import markdown
from tertulia.outbound import http_client
from tertulia.service.credentials import Vault
from tertulia.store import database, postgres_connection, store
from tertulia.wire.http import node, request_head
from tests import programs


def take() -> None:
    """Use these shortcuts in this process from now on."""
    # As the server does before its first outgoing request: tests use httpx, too.
    http_client.note_what_is_missing()
    # Path patterns: a fifth of the time to open a node.
    routing.compile_path = cache(routing.compile_path)
    request_head.compile_path = routing.compile_path  # type: ignore[attr-defined]  # who imported it
    # Whether an endpoint is a coroutine function, which is checked in a slow way: a twelfth of the
    # time.
    # (Not an overload, and not exported: Starlette's own module imported it.)
    routing.is_async_callable = _is_async_callable  # type: ignore[attr-defined,assignment]
    # The same paths each time.
    node.groups = cache(node.groups)  # type: ignore[assignment]
    # Users of a copied organization have the same keys in each copy.
    Vault._opened = _opened  # type: ignore[assignment,method-assign]
    # It keeps no references to what it parses.
    markdown._parser = cache(markdown._parser)
    # The web's trusted certificates are read from a file of 200 KiB.
    httpx.create_ssl_context = _create_ssl_context
    default.create_ssl_context = _create_ssl_context  # type: ignore[attr-defined]  # who imported it
    argon2.PasswordHasher = QuickHasher  # type: ignore[misc,assignment]
    programs.be_patient()
    # A node refuses requests if its process gets no turns for ten seconds. It loses a transaction
    # in which it says nothing for five, and gives up reading after five or ten.
    health.STALE_SECONDS = 60.0  # type: ignore[misc]
    writing = database.WRITING._replace(idle=60, transaction=120)
    store.READ_SECONDS = store.LOG_READ_SECONDS = 60
    store.WRITING = postgres_connection.WRITING = writing  # type: ignore[attr-defined]
    # The same for requests of tests to servers, which wait for five seconds otherwise.
    for part in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, part, 60.0)


_create_any_ssl_context = httpx.create_ssl_context
_TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def _create_ssl_context(
    verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True
) -> ssl.SSLContext:
    """Return the shared context if no options are given. No caller changes it."""
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
    """Fast hashes, which a real attacker could guess. Real ones take a thousand times as long."""

    def __init__(self, time_cost: int, memory_cost: int, parallelism: int) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.asked_for = (time_cost, memory_cost, parallelism)
        """The real cost: passes, KiB, and threads."""
