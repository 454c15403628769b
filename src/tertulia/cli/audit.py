"""`tertulia audit`: who did what in the organization."""

import json
from typing import Annotated, Any, Final

import typer

from tertulia.cli.accounts import account_called
from tertulia.cli.commands import Column, Printed, configured, listing, opened
from tertulia.cli.tables import moment
from tertulia.model.audit_log import AuditKind
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.store import audit_log
from tertulia.wire.api.audit_log import AuditRecordObject, OriginObject, record_object

EXAMPLE: Final = "Example: `tertulia audit --kind role_changed --data-dir data`"
_ACCOUNT: Final = "An account's ID or email address."


@configured
async def audit(
    config: Config,
    actor: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help=f"Only what this account did. {_ACCOUNT}")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="ACCOUNT", help=f"Only what was done to this account. {_ACCOUNT}"),
    ] = None,
    kind: Annotated[
        AuditKind | None,
        typer.Option(
            metavar="KIND",
            help="Only records of this kind, such as sign_in_failed. An unknown kind lists all.",
        ),
    ] = None,
    before: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Only records older than this one.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Number of records.")] = 50,
) -> Printed:
    """Show who did what in the organization, when, and from where, newest first.

    Records are kept for `audit_log_retention_days`. Owners see the same in the browser.
    """
    async with opened(config) as (log, _):
        state = log.state
        records = await log.store.read(
            audit_log.page,
            limit,
            before,
            actor_id=None if actor is None else account_called(state, actor).id,
            user_id=None if user is None else account_called(state, user).id,
            kind=kind,
        )
        rows = [_row(state, record_object(record)) for record in records]
    columns: dict[str, Column] = {
        "ID": "id",
        "TIME": ("timestamp", moment),
        "KIND": "kind",
        "BY": "by",
        "TO": "to",
        "FROM": ("origin", _from),
        "DETAILS": ("details", _shown),
    }
    return listing("records", columns, rows)


def _row(state: State, record: AuditRecordObject) -> dict[str, Any]:
    names = {"by": _address(state, record.actor_id), "to": _address(state, record.user_id)}
    return {**{name: getattr(record, name) for name in record.__struct_fields__}, **names}


def _address(state: State, user_id: int | None) -> str | None:
    user: User | None = None if user_id is None else state.users.get(user_id)
    return None if user is None else user.address


def _from(origin: OriginObject) -> str:
    return origin.command or origin.address or origin.way


def _shown(details: dict[str, Any]) -> str:
    text = " ".join(f"{name}={json.dumps(value)}" for name, value in details.items())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


_WIDTH: Final = 100
"""The most characters of details in a table. JSON has all of them."""
