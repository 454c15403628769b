"""Endpoints, and the requests that their handlers receive."""

import importlib
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
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

EVENT_STREAM: Final = "text/event-stream"


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
    """Parameters that the handler ignored. They're reported together with the unknown ones."""
    file: ArrivedFile | None = None
    """The file, for endpoints that take one."""
    body: bytes = b""
    """The raw body, for endpoints with a `payload`."""
    answer_headers: dict[str, str] = {}
    """Additional headers for the response."""

    @property
    def url(self) -> str:
        """Return the organization's URL: the configured one, or the one that the client used.
        Raises Refused if that is malformed."""
        return site_of(self.node.config, self.request)


Handler = Callable[..., Awaitable[Any]]


class _WhenCalled:
    """An endpoint, or a module of endpoints, that is loaded when it's first called."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> "_WhenCalled":
        return _WhenCalled(f"{self._path}:{name}")

    def loaded(self) -> Handler:
        """The endpoint's handler."""
        module, _, name = self._path.partition(":")
        handler: Handler = getattr(importlib.import_module(f"tertulia.wire.api.{module}"), name)
        return handler


def when_called(module: str) -> Any:
    """Return a stand-in for a module in `wire.api` whose endpoints are rarely called. The module is
    imported when one of them is."""
    return _WhenCalled(module)


class ApiResponse(Struct, kw_only=True):
    """The base of every endpoint's success response, with its fields except `result` and `msg`."""


class CreatedResponse(ApiResponse, kw_only=True):
    """The ID of the new record."""

    id: int


class OpenApiResponse(ApiResponse, kw_only=True):
    """The base of success responses with more fields than are declared."""


class EventStream(ApiResponse, kw_only=True):
    """Server-sent events in place of a JSON response, for clients that accept them."""

    events: AsyncIterator[str]
    """Encoded events, each with its field names and the empty line at its end."""


class Redirect(ApiResponse, kw_only=True):
    """A redirect to another address in place of a response."""

    address: str


class Access(Enum):
    """The callers that an endpoint allows."""

    ANYONE = "anyone"
    """Anyone; credentials are ignored."""
    USER = "user"
    """Users, by HTTP Basic authentication or a browser session."""
    SPECTATOR = "spectator"
    """Users, and anyone if the organization has public access."""


class KeyUse(Enum):
    """The rights that an access key needs to call an endpoint."""

    READ = "read"
    """Every key is allowed."""
    SEND = "send"
    FULL = "full"
    NEVER = "never"
    """No key is allowed. The endpoint manages keys, sessions, or other ways into an account, or it
    shows the secrets of others."""


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
    endpoint: Handler | _WhenCalled
    access: Access = Access.USER
    webhooks: bool = False
    """Whether incoming webhook bots may call it."""
    dev: bool = False
    """Whether it exists only with `--dev`."""
    file: bool = False
    """Whether it receives one file, which may be large, as `Call.file`. The file is read after the
    request was authenticated."""
    payload: bool = False
    """Whether its body is the payload of another service (`Call.body`). Its parameters, including
    `api_key`, are then in the URL."""
    body_bytes: int | None = FORM_BYTES
    """The body's size limit. None means `max_body_mib`, for multipart forms with images."""
    forbids: bool = False
    """Whether it returns 403 for existing objects that the caller may not open."""
    creates_once: bool = False
    """Whether it returns 409 if the object to create already exists."""
    asks_bouncer: bool = False
    """Whether it returns 502 if the push bouncer doesn't respond."""
    limits_guesses: bool = False
    """Whether wrong passwords or codes are rate limited with 429."""
    compresses: bool = False
    """Whether the response is compressed. Must be false for responses that contain secrets: see
    decision 0016."""
    polls: bool = False
    """Whether clients poll it, which has a separate rate limit."""
    keys: KeyUse | None = None
    """The rights that an access key needs. By default, every key may read (GET), and everything
    else requires a key with full access."""
    reached: bool = False
    """Whether limited keys (for some channels only, or without direct messages) may call it: it
    shows and changes only what the caller's reach includes."""

    @cached_property
    def handler(self) -> Handler:
        """The function that handles requests."""
        return self.endpoint.loaded() if isinstance(self.endpoint, _WhenCalled) else self.endpoint

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that the handler declares. They're computed late, because inspecting all
        handlers would slow down startup."""
        return declared(self.handler)

    @cached_property
    def answer(self) -> Any:
        """The type of the response."""
        answer = typing.get_type_hints(self.handler, include_extras=True)["return"]
        if kinds := [kind for kind in typing.get_args(answer) if kind is not EventStream]:
            (answer,) = kinds
        return ApiResponse if answer is type(None) else answer

    @property
    def key_use(self) -> KeyUse:
        """The rights that an access key needs to call it."""
        usual = KeyUse.READ if self.method == "GET" else KeyUse.FULL
        return self.keys or usual

    @cached_property
    def needs(self) -> Needs:
        """The capabilities that an access key needs to call it."""
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
