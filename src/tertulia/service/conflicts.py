"""Optimistic retry: a command that read something first is made again where that has changed."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tertulia.model.errors import Conflict

T = TypeVar("T")
_ATTEMPTS = 10


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """What the attempt answers: it reads something and then submits what follows from it. It is
    made again where somebody else changed that in between. Conflict if that never ends."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
