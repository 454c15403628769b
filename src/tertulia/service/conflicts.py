"""Optimistic retry: a command that read something first is made again where that has changed."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tertulia.model.errors import Conflict

T = TypeVar("T")
_ATTEMPTS = 10


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of the attempt, which reads rows and then submits a command about them. It is made
    again after each Conflict, ten times in all; then Conflict is raised."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
