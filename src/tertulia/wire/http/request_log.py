"""One line of the log for each request."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia import tracing
from tertulia.model.errors import Unavailable
from tertulia.service import links
from tertulia.service.config import Config
from tertulia.tracing.waits import Waits, counted_in, counted_no_more
from tertulia.wire.http.rate_limits import rate_headers
from tertulia.wire.http.request_head import client_address, header
from tertulia.wire.http.request_measures import RequestMeasures, SlowRequests
from tertulia.wire.http.responses import HEADERS_API, HEADERS_PAGES, encoded, failure
from tertulia.wire.http.routing import POLLS

logger = logging.getLogger("tertulia.http")

_LONGEST_AGENT: Final = 200
"""Characters that are written down of what calls itself something."""
_NOWHERE: Final[Mapping[str, str]] = {}


class RequestLog:
    """Logs each request, and adds the headers that all responses have."""

    def __init__(
        self,
        app: ASGIApp,
        config: Config,
        measures: RequestMeasures | None = None,
        slow: SlowRequests | None = None,
    ) -> None:
        """With `measures`, requests are counted there, and with `slow` those written down that
        took long."""
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
        # Until the answer began: how long the rest of it takes is up to its size.
        own: float | None = None
        extra = self._of_api if scope["path"].startswith("/api/") else self._of_others

        async def sending(message: Message) -> None:
            nonlocal status, own
            if message["type"] == "http.response.start":
                own = time.perf_counter() - began - waits.client
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
        token = counted_in(waits)
        try:
            with tracing.request_span(scope["method"], group, scope["headers"]) as span:
                await self._app(scope, receiving, sending)
                if span is not None:
                    span.set_attribute("http.response.status_code", status)
        except ClientDisconnect:
            status = 499
        except asyncio.CancelledError:
            # The server is stopping, and its grace period for requests is over.
            if status:
                raise
            await failure(Unavailable("The server is shutting down. Try again."))(
                scope, receive, sending
            )
        finally:
            counted_no_more(token)
            path = scope["path"]
            user, code = scope["state"].get("user"), scope["state"].get("code", "")
            user_id = user.id if user else None
            route = scope["state"].get("route", group)
            if route == POLLS:
                self._measures.polled(group, status)
            else:
                seconds = time.perf_counter() - began
                self._measures.answered(group, status, seconds)
                if self._slow is not None:
                    own = seconds - waits.client if own is None else own
                    self._slow.look(
                        scope["method"], route, user_id, status, own, waits.database, lag
                    )
            origin = _origin(scope) if self._says_origin else {}
            log_request(scope["method"], path, user_id, status, began, code, origin)


def _origin(scope: Scope) -> dict[str, str]:
    """Where the request came from, and what asked."""
    agent = header(scope["headers"], b"user-agent") or "-"
    return {"from": client_address(Request(scope)), "agent": agent[:_LONGEST_AGENT]}


def logs_polls() -> bool:
    """Whether `log_request` writes down polls that were answered."""
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
    """Log a request that was answered. It `began` by `time.perf_counter`. `code` is the error's:
    the status alone does not tell a missing right from a bad parameter. `origin` is what else is to
    be said.

    Successful polls are logged for debugging only: a busy organization has thousands each second.
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
    """The path without its secret: links that open something by themselves."""
    if not path.startswith(links.PATHS):
        return path
    return next(f"{before}…" for before in links.PATHS if path.startswith(before))
