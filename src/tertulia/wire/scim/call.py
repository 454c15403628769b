"""A request of a SCIM client, and its response."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from tertulia.model.errors import Refused
from tertulia.service.node import Caller


class ScimRefused(Refused):
    """A request that SCIM refuses with a status and, in some cases, a `scimType`."""

    def __init__(self, status: int, sentence: str, kind: str = "") -> None:
        self.status = status
        self.kind = kind
        super().__init__(sentence)


class ScimCall(Caller, frozen=True, kw_only=True):
    """A request of the company's directory. It acts as the organization's first owner."""

    base: str
    """The URL of `/scim/v2`."""
    query: Mapping[str, str]
    body: Mapping[str, Any]


class ScimAnswer(Struct, frozen=True):
    content: Any = None
    """The content; None for a response without a body."""
    status: int = 200


Handler = Callable[[ScimCall, str], Awaitable[ScimAnswer]]
"""Handles a request for a resource. Its ID is empty in requests for all resources."""
