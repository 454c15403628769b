"""The audit log, for owners."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from tertulia.domain import permissions
from tertulia.model.audit_log import AuditKind, AuditRecord, Way
from tertulia.service import links
from tertulia.store import audit_log
from tertulia.store.audit_log import StoredRecord
from tertulia.wire.api.channels.objects import WIRE_NAMES as CHANNEL_NAMES
from tertulia.wire.api.organization.objects import wire_name
from tertulia.wire.api.settings import wire_name as personal_wire_name
from tertulia.wire.http import audit, sign_in
from tertulia.wire.http.parameters import SAFE_INTEGER, Doc, Int
from tertulia.wire.http.routing import ApiResponse, Call

URL_SECONDS: Final = 300
"""How long the URL of an export is valid."""
TICKET: Final = "audit log"
"""The purpose of a ticket that opens an export."""


class OriginObject(Struct, kw_only=True):
    """The client and network that an action came from."""

    way: Annotated[
        Way,
        Doc(
            "`session`: a browser session; `api_key`: the account's API key; `access_key`: another"
            " key of the account; `page`: someone who hadn't signed in;"
            " `directory`: a directory service (SCIM), which acts as an owner; `command_line`: the"
            " server's operator; `server`: the server itself."
        ),
    ]
    address: Annotated[str, Doc("The IP address, or the network in records with a `count`.")]
    agent: Annotated[str, Doc("The User-Agent header, or the operator's account on the machine.")]
    session_id: int | None
    key_id: Annotated[int | None, Doc("The access key.")]
    command: Annotated[str, Doc("The operator's command; empty for others.")]


class AuditRecordObject(Struct, kw_only=True):
    """An action in the audit log."""

    id: Annotated[int, Doc("Later records have larger IDs.")]
    timestamp: Annotated[float, Doc("UNIX seconds.")]
    kind: Annotated[str, Doc("The action, such as `role_changed`.")]
    actor_id: Annotated[
        int | None,
        Doc(
            "The account that acted. Null for the server, and for people who aren't signed in."
            " The operator's commands act as an owner; see `origin`."
        ),
    ]
    user_id: Annotated[
        int | None, Doc("The account that the action affects. Null for none or several.")
    ]
    origin: OriginObject
    details: Annotated[
        dict[str, Any],
        Doc(
            "Additional data, which depends on the kind. `changes` has the old and the new value"
            " of each setting by name, and `count` the number of similar events that weren't"
            " recorded individually."
        ),
    ]


def record_object(stored: StoredRecord) -> AuditRecordObject:
    """Return the record as the API returns it."""
    record = stored.record
    return AuditRecordObject(
        id=stored.id,
        timestamp=record.at,
        kind=record.kind,
        actor_id=record.actor_id,
        user_id=record.user_id,
        origin=msgspec.convert(record.origin, OriginObject, from_attributes=True),
        details=_details(record),
    )


def _details(record: AuditRecord) -> dict[str, Any]:
    """Return the details, with the API's names of settings."""
    if "changes" not in record.details:
        return record.details
    changed = record.details["changes"]
    if record.kind == "settings_changed":
        changed = {wire_name(name): values for name, values in changed.items()}
    elif record.kind == "default_settings_changed":
        changed = {personal_wire_name(name): values for name, values in changed.items()}
    elif record.kind.startswith("channel_"):
        changed = {CHANNEL_NAMES.get(name, name): values for name, values in changed.items()}
    elif "address" in changed:
        changed = {("email" if name == "address" else name): v for name, v in changed.items()}
    return {**record.details, "changes": changed}


class AuditFilter(Struct, frozen=True, omit_defaults=True):
    """Conditions for the records to return."""

    before: int | None = None
    actor_id: int | None = None
    user_id: int | None = None
    kind: str | None = None


Before = Annotated[
    Annotated[int, Meta(ge=1, le=SAFE_INTEGER)] | None, Doc("Only records with smaller IDs.")
]
ActorId = Annotated[Int | None, Doc("Only what this account did.")]
UserId = Annotated[Int | None, Doc("Only what was done to this account.")]
Kind = Annotated[AuditKind | None, Doc("Only records of this kind.")]


class AuditLogResponse(ApiResponse, kw_only=True):
    """A page of the audit log, newest first."""

    records: list[AuditRecordObject]
    found_oldest: Annotated[bool, Doc("Whether there are no older records that match.")]


async def get_audit_log(
    call: Call,
    before: Before = None,
    limit: Annotated[int, Meta(ge=1, le=500)] = 100,
    actor_id: ActorId = None,
    user_id: UserId = None,
    kind: Kind = None,
) -> AuditLogResponse:
    """Get who did what in the organization, when, and from where. Requires an owner. This endpoint
    is a Tertulia extension.

    To get the next page, pass the ID of the last record as `before`.
    """
    permissions.require_owner(call.state, call.user)
    records = await call.node.store.read(
        audit_log.page, limit + 1, before, actor_id=actor_id, user_id=user_id, kind=kind
    )
    permissions.require_owner(call.state, call.user)
    return AuditLogResponse(
        records=[record_object(record) for record in records[:limit]],
        found_oldest=len(records) <= limit,
    )


class AuditLogUrlResponse(ApiResponse, kw_only=True):
    """A URL that downloads the CSV file without further authentication, for 5 minutes. It's
    relative to the organization's URL."""

    url: str


async def export_audit_log(
    call: Call,
    before: Before = None,
    actor_id: ActorId = None,
    user_id: UserId = None,
    kind: Kind = None,
) -> AuditLogUrlResponse:
    """Get a URL for downloading the audit log as a CSV file. Requires an owner. This endpoint is a
    Tertulia extension.

    The file has all records that match, newest first.
    """
    permissions.require_owner(call.state, call.user)
    sign_in.require_confirmed(call)
    asked = AuditFilter(before, actor_id, user_id, kind)
    details = {"filter": msgspec.to_builtins(asked)}
    audit.record(call.request, "audit_log_exported", actor_id=call.user.id, details=details)
    text = f"{call.user.id}:{msgspec.json.encode(asked).decode()}"
    ticket = call.node.vault.ticket(TICKET, text, int(call.now) + URL_SECONDS)
    return AuditLogUrlResponse(url=f"{links.AUDIT_LOG}{ticket}/audit-log.csv")
