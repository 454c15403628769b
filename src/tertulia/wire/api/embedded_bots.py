"""The API operations of embedded bots, as requests from this node to itself."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from starlette.types import ASGIApp

from tertulia.model.users import User
from tertulia.service.webhooks.embedded import BotCallResult, Interface
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import PREFIX

if TYPE_CHECKING:
    import httpx

_OPERATIONS: Final = {
    "get_message": ("GET", "/messages/{message_id}"),
    "send_message": ("POST", "/messages"),
    "update_message": ("PATCH", "/messages/{message_id}"),
    "react": ("POST", "/messages/{message_id}/reactions"),
    "get_storage": ("GET", "/bot_storage"),
    "put_storage": ("PUT", "/bot_storage"),
}
"""Method and path of each operation that embedded bots can use."""


def bot_interface(node: HttpNode, application: Callable[[HttpNode], ASGIApp]) -> Interface:
    """Return the function that embedded bots call the API with.

    The ASGI application is created on first use.
    """
    clients: list[httpx.AsyncClient] = []

    def client() -> "httpx.AsyncClient":
        import httpx  # Loaded with the first request.

        if not clients:
            transport = httpx.ASGITransport(app=application(node), raise_app_exceptions=False)
            base = node.config.external_url or "http://localhost"
            clients.append(httpx.AsyncClient(transport=transport, base_url=base))
        return clients[0]

    async def request(
        bot: User, operation: str, fields: Mapping[str, Any], mark: str
    ) -> BotCallResult:
        if operation not in _OPERATIONS:
            return BotCallResult(
                400, {"result": "error", "msg": "Embedded bots can't use this endpoint."}
            )
        method, path = _OPERATIONS[operation]
        rest = {name: value for name, value in fields.items() if value is not None}
        if "{message_id}" in path:
            path = path.replace("{message_id}", quote(str(rest.pop("message_id", 0)), safe=""))
        if operation == "get_message":
            rest = {"apply_markdown": False, "allow_empty_topic_name": False}
        if operation == "send_message":
            # A retry after a lost node must not send the message twice.
            rest |= {"queue_id": "service", "local_id": mark}
        values = {name: _text(value) for name, value in rest.items()}
        response = await client().request(
            method,
            f"{PREFIX}{path}",
            **{"params" if method == "GET" else "data": values},  # type: ignore[arg-type]  # mypy checks the unpacked dict against every parameter
            auth=(bot.address, node.vault.api_key(node.state.credentials[bot.id])),
            headers={"User-Agent": "Embedded bot"},
        )
        try:
            content = msgspec.json.decode(response.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            content = {
                "result": "error",
                "msg": f"The server responded with status {response.status_code}.",
            }
        return BotCallResult(response.status_code, content)

    return request


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
