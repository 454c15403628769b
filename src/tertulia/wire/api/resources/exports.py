"""Exports of the organization's data: there are none over the interface."""

from typing import Annotated, Literal

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class ExportObject(Struct, kw_only=True):
    """An export that was asked for."""

    id: int
    acting_user_id: int
    export_time: float
    deleted_timestamp: float | None
    failed_timestamp: float | None
    export_url: str | None
    pending: bool
    export_type: str


class Exports(Answer, kw_only=True):
    """The exports that were asked for."""

    exports: list[ExportObject]


async def get_exports(call: Call, params: NoParams) -> Exports:
    """The exports of the organization, for administrators: none can be asked for here."""
    permissions.require_administrator(call.state, call.user)
    return Exports(exports=[])


class Export(Params, kw_only=True, frozen=True):
    """What of the organization's data is wanted."""

    export_type: Literal["public", "full_with_consent", "full_without_consent"] = "public"


async def export_realm(call: Call, params: Export) -> Answer:
    """Refused always: whoever runs the server makes a copy of everything with
    `tertulia backup`."""
    permissions.require_administrator(call.state, call.user)
    raise Refused(
        "This server doesn't offer data exports. Its operator can create a backup with `tertulia"
        " backup`."
    )


class OneExport(Params, kw_only=True, frozen=True):
    """An export."""

    export_id: Annotated[Int, Path()]


async def delete_export(call: Call, params: OneExport) -> Answer:
    """Delete an export, for administrators. There are none."""
    permissions.require_administrator(call.state, call.user)
    raise Refused("This export doesn't exist.")


class Consent(Struct, kw_only=True):
    """Whether somebody lets an export have what is private of theirs."""

    user_id: int
    consented: bool
    email_address_visibility: int


class Consents(Answer, kw_only=True):
    """Everybody's consent, by user ID."""

    export_consents: list[Consent]


async def get_consents(call: Call, params: NoParams) -> Consents:
    """Who lets an export have what is private of theirs, for administrators."""
    permissions.require_administrator(call.state, call.user)
    state = call.state
    people = [user for user in state.users if user.is_active and not user.is_bot]
    return Consents(
        export_consents=[
            Consent(
                user_id=user.id,
                consented=state.settings[user.id].allow_private_data_export,
                email_address_visibility=int(state.settings[user.id].email_address_visibility),
            )
            for user in sorted(people, key=lambda user: user.id)
        ]
    )
