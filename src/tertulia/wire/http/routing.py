"""Endpoints, and the calls that their handlers get."""

import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request

from tertulia.domain.accounts.access_keys import NO_KEYS, NOTHING, KeyCapability, Needs
from tertulia.service.node import Caller
from tertulia.store.uploads import ArrivedFile
from tertulia.wire.http.forms import FORM_BYTES, Upload
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import Parameter, declared
from tertulia.wire.http.request_head import site_of


class Call(Caller, frozen=True, kw_only=True):
    """A request to an endpoint: its caller, client, and node."""

    node: HttpNode
    client: str
    """The name of the client."""
    request: Request
    session_id: int | None = None
    """The browser session that authenticated the caller; None for an API key."""
    uploads: tuple[Upload, ...] = ()
    ignored: list[str] = []
    """Parameters that the handler ignored, reported with the unknown ones."""
    file: ArrivedFile | None = None
    """The file, for endpoints that take one."""
    body: bytes = b""
    """The raw body, for endpoints with a `payload`."""
    answer_headers: dict[str, str] = {}
    """Additional headers for the response."""

    @property
    def url(self) -> str:
        """The organization's URL: the configured one, or the one that the client used. Raises
        Refused if that is malformed."""
        return site_of(self.node.config, self.request)


Handler = Callable[..., Awaitable[Any]]


class ApiResponse(Struct, kw_only=True):
    """The base of every endpoint's success response: its fields besides `result` and `msg`."""


class CreatedResponse(ApiResponse, kw_only=True):
    """The ID of the new record."""

    id: int


class OpenApiResponse(ApiResponse, kw_only=True):
    """The base of success responses with more fields than are declared."""


class Redirect(ApiResponse, kw_only=True):
    """A redirect to another address in place of a response."""

    address: str


class Access(Enum):
    """Who may call an endpoint."""

    ANYONE = "anyone"
    """Anyone; credentials are ignored."""
    USER = "user"
    """Users, by HTTP Basic authentication or a browser session."""
    SPECTATOR = "spectator"
    """Users, and anyone if the organization has public access."""


class KeyUse(Enum):
    """What an access key needs to be allowed to call an endpoint."""

    READ = "read"
    """Nothing more than any key."""
    SEND = "send"
    FULL = "full"
    NEVER = "never"
    """No key suffices: it manages keys, sessions, or whatever else opens an account, or it shows
    the secrets of others."""


_NEEDS: Final[Mapping[KeyUse, Needs]] = {
    KeyUse.READ: NOTHING,
    KeyUse.SEND: frozenset({KeyCapability.WRITE}),
    KeyUse.FULL: frozenset({KeyCapability.FULL}),
    KeyUse.NEVER: NO_KEYS,
}


@dataclass(frozen=True)
class Route:
    """An endpoint."""

    method: str
    path: str
    """Relative to `/api/v1`, with `{name}` or `{name:int}` for parameters."""
    handler: Handler
    access: Access = Access.USER
    webhooks: bool = False
    """Whether incoming webhook bots may call it."""
    dev: bool = False
    """Whether it exists with `--dev` only."""
    file: bool = False
    """Whether it takes one file, which may be large: `Call.file`. The file is read after the
    request was authenticated."""
    payload: bool = False
    """Whether its body is the payload of another service: `Call.body`. Its parameters, among them
    `api_key`, are then in the URL."""
    body_bytes: int | None = FORM_BYTES
    """The body's size limit. None means `max_body_mib`, for multipart forms with images."""
    forbids: bool = False
    """Whether it returns 403 for what exists but the caller may not open."""
    limits_guesses: bool = False
    """Whether wrong passwords or codes are rate limited with 429."""
    compresses: bool = False
    """Whether the response is compressed. Must be false for responses that contain secrets: see
    decision 0016."""
    polls: bool = False
    """Whether clients poll it, which has a separate rate limit."""
    keys: KeyUse | None = None
    """What an access key needs. By default, reading (GET) is for every key, and everything else for
    keys with full access."""
    reached: bool = False
    """Whether keys may call it that are limited to some channels, or without direct messages: it
    shows and touches only what the caller's reach includes."""
    parameters: tuple[Parameter, ...] = field(init=False)
    answer: Any = field(init=False)

    def __post_init__(self) -> None:
        answer = typing.get_type_hints(self.handler, include_extras=True)["return"]
        object.__setattr__(self, "answer", ApiResponse if answer is type(None) else answer)
        object.__setattr__(self, "parameters", declared(self.handler))

    @property
    def key_use(self) -> KeyUse:
        """Which access keys may call it."""
        usual = KeyUse.READ if self.method == "GET" else KeyUse.FULL
        return self.keys or usual

    @cached_property
    def needs(self) -> Needs:
        """What an access key needs to call it."""
        needs = _NEEDS[self.key_use]
        return needs if self.reached else needs | {KeyCapability.EVERYTHING}

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.handler.__name__

    @property
    def summary(self) -> str:
        """The first sentence of the handler's docstring."""
        return " ".join((self.handler.__doc__ or "").split()).partition(". ")[0].rstrip(".")
