"""What an endpoint is: a line of the table in `tertulia.wire.api.routes`."""

import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msgspec import Struct

from tertulia.wire.http.call import Call
from tertulia.wire.http.forms import FORM_BYTES
from tertulia.wire.http.parameters import Params

PREFIX = "/api/v1"
BROWSER_PREFIX = "/json/"
"""The same interface, where pages in a browser look for it."""
POLLS = f"{PREFIX}/events"
"""Where clients wait for events."""

Handler = Callable[[Call, Any], Awaitable[Any]]


class ApiResponse(Struct, kw_only=True):
    """The base of every endpoint's success response: its fields beside `result` and `msg`."""


class OpenAnswer(ApiResponse, kw_only=True):
    """The base of success responses that have more fields than are declared."""


class Redirect(ApiResponse, kw_only=True):
    """In place of an answer: what was asked for is at another address."""

    address: str


class Access(Enum):
    """Who may call an endpoint at all."""

    ANYONE = "anyone"
    """No credentials are looked at."""
    USER = "user"
    """An account, by HTTP Basic authentication or a browser's session."""
    SPECTATOR = "spectator"
    """An account, or nobody where the organization is open to the public."""


@dataclass(frozen=True)
class Route:
    """One endpoint."""

    method: str
    path: str
    """Relative to `/api/v1`, with `{name}` or `{name:int}` for its parts."""
    handler: Handler
    access: Access = Access.USER
    webhooks: bool = False
    """Whether incoming-webhook bots, which may do nothing else, may call it."""
    dev: bool = False
    """Only with `--dev`."""
    file: bool = False
    """Whether it takes one file, which may be large: `Call.file`. The file is read only when the
    request has been authenticated."""
    payload: bool = False
    """Whether its body is what another service sends: `Call.body`. Then the parameters are those
    of the address, and `api_key`, which says whose it is, may be one of them."""
    body_bytes: int | None = FORM_BYTES
    """The largest body. None, where pictures are sent in multipart forms: as configured
    (`max_body_mib`)."""
    forbids: bool = False
    """Whether it answers 403 for what the caller may not open, apart from 404 for what does not
    exist."""
    limits_guesses: bool = False
    """Whether wrong passwords or codes are counted, and refused with 429 after too many."""
    compresses: bool = False
    """Whether the answer, which can be large, is compressed for clients that read that. Not for
    answers with something in them by which somebody is known: see decision 0016."""
    polls: bool = False
    """Whether clients poll it, which is counted apart from their other requests."""
    params: type[Params] = field(init=False)
    answer: Any = field(init=False)

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(self.handler, include_extras=True)
        object.__setattr__(self, "answer", hints.pop("return"))
        hints.pop("call")
        (params,) = hints.values()
        object.__setattr__(self, "params", params)

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.handler.__name__

    @property
    def summary(self) -> str:
        """The first sentence of the handler's docstring."""
        return " ".join((self.handler.__doc__ or "").split()).partition(". ")[0].rstrip(".")
