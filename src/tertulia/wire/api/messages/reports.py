"""Reporting messages to the moderators."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.messages import reporting
from tertulia.service.messages.reading import stored_message
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class ReportMessage(Params, kw_only=True, frozen=True):
    message_id: Annotated[Int, Path()]
    report_type: Annotated[
        str, Meta(description="A key of `server_report_message_types` from POST /register.")
    ]
    description: Annotated[
        str,
        Meta(description=f"At most {reporting.MAX_DESCRIPTION} characters; required for `other`."),
    ] = ""


async def report_message(call: Call, params: ReportMessage) -> ApiResponse:
    """Report a message to the moderators, in the organization's channel for reports."""
    message = await stored_message(call.node, params.message_id)
    await call.submit(
        reporting.report, call.render, message, params.report_type, params.description
    )
    return ApiResponse()
