"""A node with the state of the HTTP layer: its request log, counters, and health checks."""

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia import tracing
from tertulia.log.health import SECONDS, Histogram
from tertulia.model.errors import Unavailable
from tertulia.service import links
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.service.tasks import SingleFlight
from tertulia.store.nodes import SlowRequest
from tertulia.tracing import Waits, count_waits_in, stop_counting
from tertulia.wire.http.positions import Positions
from tertulia.wire.http.rate_limits import RateLimits, RequestLimits, SignInLimits, rate_headers
from tertulia.wire.http.request_head import HEALTH, METRICS, POLLS, READY, client_address, header
from tertulia.wire.http.responses import (
    HEADERS_API,
    HEADERS_PAGES,
    MESSAGE_BYTES,
    Fragments,
    encoded,
    failure,
)

if TYPE_CHECKING:
    from tertulia.identity.ldap import Directories
    from tertulia.identity.providers import Providers

OTHERS: Final = "other"
"""The group of unknown paths."""


class RequestMeasures:
    """Counts requests by group and status. A group is the beginning of a known path, so clients
    can't make up new ones."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        """By group and status; status 0 if the response never began."""
        self.seconds: dict[str, Histogram] = {}
        """Histograms of response times by group, without polls."""
        self.slow = 0
        """The number of requests that took longer than `slow_request_ms`."""
        self._groups: Set[str] = frozenset()
        self._api = "/"

    def set_paths(self, api: str, endpoints: Iterable[str], pages: Iterable[str]) -> None:
        """Set the known paths. Those of endpoints are relative to `api`."""
        self._api = f"{api}/"
        self._groups = groups(self._api, (*(api + path for path in endpoints), *pages))

    def group_of(self, path: str) -> str:
        begin = _begin_of(path, self._api)
        return begin if begin in self._groups else OTHERS

    def count(self, group: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._count(group, status)
        histogram = self.seconds.get(group)
        if histogram is None:
            histogram = self.seconds[group] = Histogram(SECONDS)
        histogram.observe(seconds)

    def polled(self, group: str, status: int) -> None:
        self._count(group, status)

    def _count(self, group: str, status: int) -> None:
        key = (group, status)
        self.counts[key] = self.counts.get(key, 0) + 1


def groups(api: str, paths: Iterable[str]) -> frozenset[str]:
    """Return the first part of each path, or the part after `api`."""
    return frozenset(begin for path in paths if "{" not in (begin := _begin_of(path, api)))


def _begin_of(path: str, api: str) -> str:
    end = path.find("/", len(api) if path.startswith(api) else 1)
    return path if end < 0 else path[:end]


logger = logging.getLogger("tertulia.http")


class SlowRequests:
    """Logs and counts a node's slow requests."""

    def __init__(
        self,
        after_ms: int,
        kept: deque[SlowRequest],
        loop_lag: Histogram,
        measures: RequestMeasures,
        clock: Callable[[], float],
    ) -> None:
        """Requests that take at least `after_ms` milliseconds (0 for none) are appended to
        `kept`."""
        self._after = after_ms / 1000
        self._kept = kept
        self._loop_lag = loop_lag
        self._measures = measures
        self._clock = clock

    @property
    def lag(self) -> float:
        """The total lag of the event loop, in seconds."""
        return self._loop_lag.total

    def log_if_slow(
        self,
        method: str,
        route: str,
        user_id: int | None,
        status: int,
        seconds: float,
        on_database: float,
        lag: float,
    ) -> None:
        """Log the request if it was slow: it took `seconds` without waiting for the client,
        including `on_database` seconds for the database. `lag` is the value of `self.lag` when it
        began."""
        if not self._after or seconds < self._after:
            return
        self._measures.slow += 1
        slow = SlowRequest(
            at=int(self._clock()),
            method=method,
            route=route,
            user_id=user_id,
            status=status,
            ms=round(seconds * 1000),
            database_ms=round(min(on_database, seconds) * 1000),
            loop_ms=round(min(self.lag - lag, seconds) * 1000),
        )
        self._kept.append(slow)
        fields = msgspec.structs.asdict(slow)
        del fields["at"]
        fields["user"] = fields.pop("user_id") or "-"
        logger.warning("slow request", extra={"fields": fields})


_LONGEST_AGENT: Final = 200
"""The length, in characters, that user agents are cut to."""
_NOWHERE: Final[Mapping[str, str]] = {}


class RequestLog:
    """Middleware that logs each request and adds the headers that all responses have."""

    def __init__(
        self,
        app: ASGIApp,
        config: Config,
        measures: RequestMeasures | None = None,
        slow: SlowRequests | None = None,
    ) -> None:
        """`measures` counts requests, and `slow` logs the slow ones."""
        self._app = app
        self._says_origin = config.access_log
        self._measures = RequestMeasures() if measures is None else measures
        self._slow = slow
        secure = []
        if config.is_https and config.hsts_seconds:
            secure = encoded({"Strict-Transport-Security": f"max-age={config.hsts_seconds}"})
        self._of_api, self._of_others = HEADERS_API + secure, HEADERS_PAGES + secure
        self._names = frozenset(name for name, _ in self._of_api)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        lag = self._slow.lag if self._slow is not None else 0.0
        waits = Waits()
        scope.setdefault("state", {})
        status = 0
        # The time until the response began. The rest depends on its size and its client.
        server_seconds: float | None = None
        extra = self._of_api if scope["path"].startswith("/api/") else self._of_others

        async def sending(message: Message) -> None:
            nonlocal status, server_seconds
            if message["type"] == "http.response.start":
                server_seconds = time.perf_counter() - began - waits.client
                status = message["status"]
                there = [name for name, _ in message["headers"]]
                more = extra
                if not self._names.isdisjoint(there):
                    more = [header for header in extra if header[0] not in there]
                message["headers"] = [*message["headers"], *more, *rate_headers(scope["state"])]
            asked = time.perf_counter()
            await send(message)
            waits.client += time.perf_counter() - asked

        async def receiving() -> Message:
            asked = time.perf_counter()
            message = await receive()
            waits.client += time.perf_counter() - asked
            return message

        group = self._measures.group_of(scope["path"])
        token = count_waits_in(waits)
        try:
            with tracing.request_span(scope["method"], group, scope["headers"]) as span:
                await self._app(scope, receiving, sending)
                if span is not None:
                    span.set_attribute("http.response.status_code", status)
        except ClientDisconnect:
            status = 499
        except asyncio.CancelledError:
            # The server is shutting down, and its grace period has ended.
            if status:
                raise
            await failure(Unavailable("The server is shutting down. Try again."))(
                scope, receive, sending
            )
        finally:
            stop_counting(token)
            path = scope["path"]
            user, code = scope["state"].get("user"), scope["state"].get("code", "")
            user_id = user.id if user else None
            route = scope["state"].get("route", group)
            if route == POLLS:
                self._measures.polled(group, status)
            else:
                seconds = time.perf_counter() - began
                self._measures.count(group, status, seconds)
                if self._slow is not None:
                    server_seconds = (
                        seconds - waits.client if server_seconds is None else server_seconds
                    )
                    self._slow.log_if_slow(
                        scope["method"], route, user_id, status, server_seconds, waits.database, lag
                    )
            origin = _origin(scope) if self._says_origin else {}
            log_request(scope["method"], path, user_id, status, began, code, origin)


def _origin(scope: Scope) -> dict[str, str]:
    agent = header(scope["headers"], b"user-agent") or "-"
    return {"from": client_address(Request(scope)), "agent": agent[:_LONGEST_AGENT]}


def logs_polls() -> bool:
    """Return whether `log_request` logs successful polls."""
    return logger.isEnabledFor(logging.DEBUG)


def log_request(
    method: str,
    path: str,
    user_id: int | None,
    status: int,
    began: float,
    code: str = "",
    origin: Mapping[str, str] = _NOWHERE,
) -> None:
    """Log a request that began at `began` (`time.perf_counter`). `code` is the error's code,
    because the status alone doesn't distinguish a missing permission from a bad parameter. `origin`
    has more fields.

    Successful polls are logged at debug level only: a busy organization has thousands per second.
    """
    level = logging.DEBUG if (method, path, status) == ("GET", POLLS, 200) else logging.INFO
    if logger.isEnabledFor(level):
        fields = {
            "method": method,
            "path": _shown_path(path),
            "user": "-" if user_id is None else user_id,
            "status": status,
            "ms": round((time.perf_counter() - began) * 1000, 1),
        }
        if code:
            fields["code"] = code
        fields |= origin
        logger.log(level, "request", extra={"fields": fields})


def _shown_path(path: str) -> str:
    """Return the path without the secret of a link that grants access."""
    if not path.startswith(links.PATHS):
        return path
    return next(f"{before}…" for before in links.PATHS if path.startswith(before))


class ServerGauges(Protocol):
    """Figures of an HTTP server."""

    @property
    def connections(self) -> int:
        """The number of open connections."""

    @property
    def in_progress(self) -> int:
        """The number of requests that are being answered, without polls."""

    @property
    def refused(self) -> int:
        """The number of requests refused because of overload."""

    @property
    def certificate_expires_at(self) -> float | None:
        """The time when its certificate expires, in UNIX seconds; None without TLS."""


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with the caches and counters of the HTTP layer."""

    limits: RateLimits
    request_measures: RequestMeasures = field(default_factory=RequestMeasures)
    loop_lag: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """The lag of the event loop, measured with timers."""
    gauges: list[ServerGauges] = field(default_factory=list)
    """The HTTP servers that answer for this node."""
    fragments: Fragments = field(default_factory=Fragments)
    encoded_messages: Fragments = field(default_factory=lambda: Fragments(MESSAGE_BYTES))
    """A separate cache, because there are many messages."""

    adoptions: SingleFlight = field(
        default_factory=lambda: SingleFlight("Too many API keys are being checked. Try again.")
    )
    """API keys that the previous server is verifying."""

    @property
    def sign_in_limits(self) -> SignInLimits:
        return self.limits.sign_in

    @property
    def request_limits(self) -> RequestLimits:
        return self.limits.requests

    @cached_property
    def directories(self) -> "Directories":
        """The directories that people sign in with."""
        from tertulia.identity.ldap import Directories  # Only if used.

        return Directories(self.config)

    @cached_property
    def providers(self) -> "Providers":
        """The identity providers that people sign in with."""
        from tertulia.identity.providers import Providers  # Only if used.

        return Providers(self.config, self.clock)

    async def close(self) -> None:
        """Close connections to other servers."""
        await super().close()
        if "providers" in self.__dict__:
            await self.providers.close()

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.log, self.config)


async def problems_of(node: HttpNode) -> list[str]:
    """Return the problems that keep the node from working, one sentence each for the operator.
    Takes up to several seconds."""
    problems = await node.log.probed_problems()
    if node.lifecycle.is_draining:
        problems.append("The node is shutting down.")
    if node.state.is_empty:
        problems.append("No organization has been created yet.")
    return problems


def readiness_pages(node: HttpNode) -> list[BaseRoute]:
    """Return the health check pages."""

    async def health(_: Request) -> Response:
        """Report that the process is running."""
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        """Report whether the node can do all of its work."""
        problems = await problems_of(node)
        # Failing jobs are retried and don't make the node unready. Their reasons may name hosts or
        # quote messages, so they, and items that were set aside, are left to the log and `tertulia
        # check`.
        jobs = {name: re.split("[,:]", why)[0] for name, why in node.failing_jobs().items()}
        if problems:
            content = {"status": "not ready", "problems": problems, "jobs": jobs}
            return JSONResponse(content, status_code=503)
        return JSONResponse({"status": "ready", "jobs": jobs})

    return [Route(HEALTH, health), Route(READY, ready)]


def fresh_only(node: HttpNode, app: ASGIApp) -> ASGIApp:
    """Wrap the application. It then refuses requests while the node can't verify that its state is
    current, because permissions may have been revoked."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in (HEALTH, READY, METRICS):
            try:
                node.log.require_fresh()
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer
