"""Reading one's own writes at any node: answers say which position of the log they show, and a node
that is behind what a request has seen waits until it is not."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.model.errors import Unavailable
from tertulia.wire.http.node import HEALTH, READY, HttpNode
from tertulia.wire.http.positions import POSITION_NAME
from tertulia.wire.http.responses import failure
from tertulia.wire.http.routing import PREFIX

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def at_position(node: HttpNode, app: ASGIApp) -> ASGIApp:
    """The application, which does not go back behind what its clients have seen at other nodes. The
    same one where there are none."""
    return AtPosition(node, app) if node.positions.is_on else app


class AtPosition:
    """Middleware: lets requests wait until the node has what they have seen, for
    `BEHIND_SECONDS` at most, and says in answers what they show.

    Every answer of the interface to an account has the header. The cookie comes only with what may
    have changed something: an answer that is kept somewhere must set none. Where nobody is signed
    in, a refusal says nothing: how busy an organization is concerns its people alone.
    """

    def __init__(self, node: HttpNode, app: ASGIApp) -> None:
        self._log = node.log
        self._positions = node.positions
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in (HEALTH, READY):
            await self._app(scope, receive, send)
            return
        positions, log = self._positions, self._log
        log.hear()  # For clients that do not say what they have seen.
        awaited = positions.awaited(scope["headers"])
        if awaited is not None:
            try:
                await log.reached(awaited)
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        before = log.durable
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(scope, message, before)
            await send(message)

        await self._app(scope, receive, sending)

    def _add(self, scope: Scope, message: Message, before: int) -> None:
        positions = self._positions
        is_question = scope["method"] in _SAFE
        is_known = scope["state"].get("user") is not None
        if not is_known and (is_question or message["status"] >= 400):
            return
        headers = [*message["headers"]]
        if scope["path"].startswith(PREFIX):
            headers.append((POSITION_NAME, positions.value))
        if not is_question and self._log.durable > before:
            headers.append((b"set-cookie", positions.cookie(scope["scheme"])))
        message["headers"] = headers
