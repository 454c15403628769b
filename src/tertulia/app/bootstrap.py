"""The application that the HTTP server serves: the first-run page until an organization exists,
then a node."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia import tracing
from tertulia.app.composition import asgi, opened_node
from tertulia.app.first_run import FirstRun, forget_code, setup_code
from tertulia.app.founding import is_founded, opened_log
from tertulia.model.changes import Entry
from tertulia.service.config import Config
from tertulia.service.membership import Membership
from tertulia.wire.http.node import HttpNode, ServerGauges
from tertulia.wire.metrics.page import shared_with_siblings, watched
from tertulia.wire.protocol.polling import Polls


class Bootstrap:
    """The ASGI application, which switches from the first run to a node."""

    def __init__(self, on_ready: Callable[[HttpNode], None]) -> None:
        """Create the application. `on_ready` is called when a node serves requests."""
        self.code = ""
        """The setup code; empty once an organization exists."""
        self.broken: Callable[[], None] = lambda: None
        """Called if the switch failed or the node can't continue."""
        self.draining: Callable[[], None] = lambda: None
        """Called when the node begins to drain."""
        self.outdated = ""
        """The reason why the program is too old for the database; empty if it isn't."""
        self.node: HttpNode | None = None
        self.polls: Polls | None = None
        """The polls that wait below ASGI, once a node serves requests."""
        self._gauges: list[ServerGauges] = []
        self._on_ready = on_ready
        self._answers: ASGIApp | None = None
        self._founded = asyncio.Event()
        self._leaving = asyncio.Event()
        self._settled = asyncio.Event()
        """Set when the node serves requests, or never will."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._answers is None:
            raise RuntimeError("not opened")
        await self._answers(scope, receive, send)

    def _outdated(self, reason: str) -> None:
        self.outdated = reason
        self.broken()

    async def close(self) -> None:
        """Respond to the requests that wait."""
        self._settled.set()
        if self.node is not None:
            await self.node.delivery.close()

    @asynccontextmanager
    async def opened(
        self, config: Config, report: Callable[[str], None], residents: Iterable[str]
    ) -> AsyncIterator[None]:
        """Serve within the context. Raise errors that happen in the meantime."""
        tracing.begin(os.environ, Membership(config).name)
        try:
            async with self._opened(config, report, residents):
                yield
        finally:
            await asyncio.to_thread(tracing.end)

    @asynccontextmanager
    async def _opened(
        self, config: Config, report: Callable[[str], None], residents: Iterable[str]
    ) -> AsyncIterator[None]:
        if is_founded(config):
            async with (
                opened_node(config, report, residents=residents) as node,
                self._measured(node),
            ):
                self._enter(node)
                yield
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        life = asyncio.create_task(self._first_run(config, report, ready))
        try:
            await asyncio.wait({life, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not life.done():
                life.add_done_callback(lambda _: self.broken())
                yield
        finally:
            self._leaving.set()
            self._founded.set()
            await life

    async def _first_run(
        self, config: Config, report: Callable[[str], None], ready: "asyncio.Future[None]"
    ) -> None:
        """Serve the first-run page until someone creates an organization, then the node."""
        try:
            membership = Membership(config)
            membership.lifecycle.on_drain(lambda: self.draining())
            async with opened_log(config, report, membership=membership) as log:

                def look(_: Sequence[Entry] = ()) -> None:
                    if not log.state.is_empty:
                        self._founded.set()

                log.subscribers.on_newer.append(self._outdated)
                self.code = await setup_code(log)
                first = FirstRun(config, log, self.code, self._settled.wait)
                self._answers = first.answers()
                log.subscribers.followers.append(look)
                look()
                ready.set_result(None)
                await self._founded.wait()
                async with (
                    first.busy
                ):  # The person who creates it in this process must be signed in, too.
                    if self._leaving.is_set():
                        return
                    await forget_code(log)
            async with opened_node(config, report) as node, self._measured(node):
                self._enter(node)
                await self._leaving.wait()
        finally:
            self._settled.set()

    def observe(self, gauges: ServerGauges) -> None:
        """Include this HTTP server in the metrics."""
        self._gauges.append(gauges)
        if self.node is not None:
            self.node.gauges.append(gauges)

    @asynccontextmanager
    async def _measured(self, node: HttpNode) -> AsyncIterator[None]:
        with watched(node.loop_lag):
            async with shared_with_siblings(node):
                yield

    def _enter(self, node: HttpNode) -> None:
        node.log.subscribers.on_newer.append(self._outdated)
        node.lifecycle.on_drain(lambda: self.draining())
        self.code, self.node, self._answers = "", node, asgi(node)
        self.polls = Polls(node)
        node.gauges.extend(self._gauges)
        self._settled.set()
        self._on_ready(node)
