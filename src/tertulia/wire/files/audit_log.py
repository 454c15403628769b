"""The audit log as a CSV file."""

import csv
import io
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tertulia.domain import permissions
from tertulia.model.errors import NotPermitted
from tertulia.state.state import State
from tertulia.store import audit_log
from tertulia.wire.api.audit_log import TICKET, AuditFilter, AuditRecordObject, record_object
from tertulia.wire.files.downloads import Gone, disposition
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for

_PAGE: Final = 500
"""Records per database query."""
_COLUMNS: Final = (
    *("id", "time", "kind", "actor_id", "actor", "user_id", "user", "way", "address"),
    *("session_id", "key_id", "command", "agent", "details"),
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""The characters at which a spreadsheet starts a formula."""


async def download(node: HttpNode, request: Request) -> Response:
    """Return the file behind a link from `GET /audit_log/export`. Raises Gone."""
    text = node.vault.text_of(TICKET, request.path_params["ticket"], node.clock())
    if text is None:
        raise Gone
    user_id, _, asked = text.partition(":")
    _require_owner(node, int(user_id))
    read_for(request, node.state.users[int(user_id)])
    wanted = msgspec.json.decode(asked, type=AuditFilter)
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": disposition("attachment", "audit-log.csv"),
        "Referrer-Policy": "no-referrer",
    }
    content = _rows(node, int(user_id), wanted)
    return StreamingResponse(content, 200, headers, "text/csv; charset=utf-8; header=present")


def _require_owner(node: HttpNode, user_id: int) -> None:
    user = node.state.users[user_id]
    if not user.is_active or node.state.realm.deactivated:
        raise NotPermitted("This account is deactivated.")
    permissions.require_owner(node.state, user)


async def _rows(node: HttpNode, user_id: int, wanted: AuditFilter) -> AsyncIterator[str]:
    # A byte order mark, without which spreadsheets don't read the file as UTF-8.
    yield "\ufeff" + _line(_COLUMNS)
    before = wanted.before
    while True:
        results = await node.store.read(
            audit_log.page,
            _PAGE,
            before,
            actor_id=wanted.actor_id,
            user_id=wanted.user_id,
            kind=wanted.kind,
        )
        _require_owner(node, user_id)  # If that changed, this aborts the response.
        if not results:
            return
        records = map(record_object, results)
        yield "".join(_line(_cells(node.state, record)) for record in records)
        before = results[-1].id


def _cells(state: State, record: AuditRecordObject) -> list[Any]:
    origin = record.origin
    time = datetime.fromtimestamp(record.timestamp, UTC).isoformat(timespec="seconds")
    return [
        *(record.id, time, record.kind, record.actor_id, _name(state, record.actor_id)),
        *(record.user_id, _name(state, record.user_id), origin.way, origin.address),
        *(origin.session_id, origin.key_id, origin.command, origin.agent),
        msgspec.json.encode(record.details).decode() if record.details else "",
    ]


def _name(state: State, user_id: int | None) -> str:
    user = None if user_id is None else state.users.get(user_id)
    return "" if user is None else f"{user.full_name} <{user.address}>"


def _line(cells: Iterable[Any]) -> str:
    """Return a row (RFC 4180). Text that a spreadsheet would execute begins with an apostrophe."""
    text = io.StringIO()
    safe = (
        f"'{item}" if isinstance(item, str) and item.startswith(_FORMULA) else item
        for item in cells
    )
    csv.writer(text, lineterminator="\r\n").writerow(safe)
    return text.getvalue()
