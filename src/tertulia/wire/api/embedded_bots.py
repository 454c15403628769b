"""What embedded bots do by the interface: requests of this node to itself, in the bot's name."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from starlette.types import ASGIApp

from tertulia.model.users import User
from tertulia.service.webhooks.embedded import ApiResponse, Interface
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
"""What embedded bots may do."""


def bot_interface(node: HttpNode, application: Callable[[HttpNode], ASGIApp]) -> Interface:
    """How embedded bots reach the node. `application` is asked for when the first one does."""
    clients: list[httpx.AsyncClient] = []

    def client() -> "httpx.AsyncClient":
        import httpx  # When a bot first asks.

        if not clients:
            transport = httpx.ASGITransport(app=application(node), raise_app_exceptions=False)
            base = node.config.external_url or "http://localhost"
            clients.append(httpx.AsyncClient(transport=transport, base_url=base))
        return clients[0]

    async def ask(bot: User, operation: str, fields: Mapping[str, Any], mark: str) -> ApiResponse:
        if operation not in _OPERATIONS:
            return ApiResponse(
                400, {"result": "error", "msg": "Embedded bots can't use this endpoint."}
            )
        method, path = _OPERATIONS[operation]
        rest = {name: value for name, value in fields.items() if value is not None}
        if "{message_id}" in path:
            path = path.replace("{message_id}", quote(str(rest.pop("message_id", 0)), safe=""))
        if operation == "get_message":
            rest = {"apply_markdown": False, "allow_empty_topic_name": False}
        if operation == "send_message":
            # Done again after a node was lost, it is the same message.
            rest |= {"queue_id": "service", "local_id": mark}
        values = {name: _text(value) for name, value in rest.items()}
        # (By types, what is unfolded might be any parameter of the client's.)
        reply = await client().request(
            method,
            f"{PREFIX}{path}",
            **{"params" if method == "GET" else "data": values},  # type: ignore[arg-type]
            auth=(bot.address, node.vault.api_key(node.state.credentials[bot.id])),
            headers={"User-Agent": "Embedded bot"},
        )
        try:
            content = msgspec.json.decode(reply.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            content = {
                "result": "error",
                "msg": f"The server responded with status {reply.status_code}.",
            }
        return ApiResponse(reply.status_code, content)

    return ask


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
