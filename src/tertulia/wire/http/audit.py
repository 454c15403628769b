"""Origins of requests, and audit log records for actions that don't change the organization."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Scope

from tertulia.log.origin import current_origin
from tertulia.model.audit_log import AuditKind, Origin, Way
from tertulia.service.audit_log import AuditRecorder
from tertulia.wire.http.request_head import client_address, client_network, header

_LONGEST_AGENT: Final = 200


class RequestOrigin:
    """The origin of a request. Within its context, it's also the origin of commands."""

    __slots__ = ("_scope", "_token", "is_over", "recorder")

    def __init__(self, scope: Scope, recorder: AuditRecorder) -> None:
        self._scope = scope
        self.recorder = recorder
        self.is_over = False

    def __enter__(self) -> None:
        # In the scope, it would create a reference cycle, which only a full garbage collection
        # frees.
        self._token = current_origin.set(self)

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        current_origin.reset(self._token)

    def origin(self) -> Origin:
        state = self._scope["state"]
        session, key = state.get("session"), state.get("access_key")
        origin: Way = "page"
        if state.get("is_directory"):
            origin = "directory"
        elif session is not None:
            origin = "session"
        elif key is not None:
            origin = "access_key"
        elif state.get("user") is not None:
            origin = "api_key"
        return Origin(
            way=origin,
            address=client_address(Request(self._scope)),
            agent=(header(self._scope["headers"], b"user-agent") or "")[:_LONGEST_AGENT],
            session_id=None if session is None else session.id,
            key_id=None if key is None else key.id,
        )


def record(
    request: Request,
    kind: AuditKind,
    *,
    actor_id: int | None = None,
    user_id: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a record to the audit log for an action that doesn't change the organization, such as a
    refused code. `actor_id` is the account that acted, if that is proven, and `user_id` the account
    that it acted on. Without an organization, nothing is recorded."""
    command_origin = current_origin.get()
    if isinstance(command_origin, RequestOrigin):
        network = client_network(request) or ""
        command_origin.recorder.record(
            kind,
            command_origin.origin(),
            network=network,
            actor_id=actor_id,
            user_id=user_id,
            details=details,
        )
