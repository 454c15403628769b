"""What the tests' own process does in less time than a program: what is the same for every node, is
done once for all nodes that it opens, and passwords are hashed as quickly as can be.

The servers that tests start are programs, and do as they always do.
"""

import inspect
from functools import cache
from types import FunctionType
from typing import Any

import argon2
from argon2 import PasswordHasher
from starlette import routing

from tertulia.markup import markdown
from tertulia.outbound import http_client
from tertulia.wire.http import paths, request_measures


def take() -> None:
    """Take these shortcuts, in this process and from now on."""
    # As the server does before its first request to others: tests ask by httpx too.
    http_client.note_what_is_missing()
    # The patterns of all paths: a fifth of what it takes to open a node.
    routing.compile_path = cache(routing.compile_path)
    paths.compile_path = routing.compile_path  # type: ignore[attr-defined]  # who imported it
    # Whether a page is a coroutine, which is asked of each in a roundabout way: a twelfth of it.
    # (It is no overload, and not exported: Starlette's own module has imported it.)
    routing.is_async_callable = _is_async_callable  # type: ignore[attr-defined,assignment]
    # The same paths each time.
    request_measures.groups = cache(request_measures.groups)  # type: ignore[assignment]
    # What it parses, it keeps nothing of.
    markdown._parser = cache(markdown._parser)
    argon2.PasswordHasher = QuickHasher  # type: ignore[misc,assignment]


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
